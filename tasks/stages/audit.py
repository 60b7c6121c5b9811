"""Stage `audit`: attack what a suite's private systems release, at the budgets that its experiments use.

Writes data/runs/<suite>/audit.json, one record for each audit and budget (`tasks.audits.verdicts.record`): the bound
that samples prove, the largest one that so many could have proved, what the same audit proves of the same system with
half of its noise and with none, and in `covers` the experiments and settings that it is an audit of. Audits call the
shipped models and mechanisms on worst cases of their own, so that the stage needs the parameters and the processed
data's schemas, no trained model. Each audit is a unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from tasks.audits import AUDITS, CLAIMS, OF_CODE, of_model
from tasks.audits.verdicts import corrected_confidence, is_fault, record
from tasks.config.fields import PerturbedFeatures
from tasks.config.params import Experiment, Params, Suite, entry, load
from tasks.config.tasks import TASKS
from tasks.core import contracts
from tasks.core.contracts import Feature
from tasks.core.errors import ConfigurationError, PrivacyError
from tasks.pipeline import runs
from tasks.pipeline.common import PROCESSED, RUNS, read_json, text_digest, write_json
from tasks.pipeline.jobs import Job
from tasks.pipeline.parent import workers
from tasks.pipeline.screen import Screen
from tasks.pipeline.table_audits import releases, releases_behind
from tasks.privacy.audits.audit import verdict
from tasks.privacy.mechanisms import edges
from tasks.privacy.mechanisms.multidimensional import sampled_features

if TYPE_CHECKING:
    from tasks.core.rows import Row

SEED = 0
"""Of every audit's samples: they say something about the code alone, and need only be the same in every run."""
MOST: int | None = None
"""Samples of either world; None: as many as each audit takes by itself."""
RECORD = "record.json"
"""Of a unit, what it found."""


class Planned(NamedTuple):
    """One audit to be run."""

    audit: str
    """Its name in `tasks.audits.AUDITS`."""
    network: str
    """Whose users' data it is of, of a pair of networks; empty where there is one alone."""
    arguments: tuple[tuple[str, Any], ...]
    """Keyword arguments of the auditor."""


Plan = dict[Planned, dict[str, list[str]]]
"""Every audit -> the experiments and their settings that it is an audit of."""


def plan(name: str, params: Params) -> Plan:
    """All audits of a suite; reads the schemas of processed data that perturbed data were made of."""
    suite, planned = params.suites[name], Plan()
    for key, experiment in suite.experiments.items():
        for setting, config in experiment.settings().items():
            for audit, arguments in of_model(experiment.model, config).items():
                _add(planned, audit, arguments, "" if audit in OF_CODE else key, [setting])
    if TASKS[suite.task].networks:
        for release in releases(name, params):
            _networks(planned, release, suite, params)
    else:
        for key, experiment in suite.experiments.items():
            _features(planned, key, experiment, params)
    return planned


def _features(planned: Plan, key: str, experiment: Experiment, params: Params) -> None:
    """The local mechanisms, at every budget at which an experiment reads features."""
    for setting, config in experiment.settings().items():
        epsilon = params.features_epsilon(experiment, config)
        if epsilon is None:
            continue
        features = contracts.read_schema(PROCESSED / experiment.data / "schema.json").features
        each = epsilon / sampled_features(epsilon, len(features))
        widths = [len(feature.columns) for feature in features if feature.kind == "categorical"]
        if len(widths) < len(features):
            _add(planned, "features/numbers", {"epsilon": each}, key, [setting])
        if widths:
            _add(planned, "features/categories", {"epsilon": each, "n_categories": max(widths)}, key, [setting])
        _add(planned, "features", {"epsilon": epsilon, "features": features}, key, [setting])


def _networks(planned: Plan, name: str, suite: Suite, params: Params) -> None:
    release = params.perturbed[name]
    assert not isinstance(release, PerturbedFeatures), "params.load lets nothing else pass"
    source, public = PROCESSED / release.data, release.accounting == "rigorous"
    as_authors = release.accounting == "released"
    networks = contracts.read_schema(source / "schema.json").networks
    schemas = {network: contracts.read_schema(source / network / "schema.json") for network in networks}
    readers = {
        key: experiment
        for key, experiment in suite.experiments.items()
        if name in releases_behind(experiment.features, params)
    }

    def add(setting: str, audit: str, epsilon: float, network: str = "", **more: object) -> None:
        arguments = {"epsilon": epsilon, **more}
        _add(planned, audit, arguments, network=network)
        for key, experiment in readers.items():
            _add(planned, audit, arguments, key, {setting} & experiment.settings().keys(), network)

    for setting, budgets in release.settings().items():
        for network, schema in schemas.items():
            features: tuple[Feature, ...] = tuple(
                feature for feature in schema.features if not public or feature.bounds == "public"
            )
            if features and as_authors:
                add(setting, "features/released", budgets.features_epsilon, network, features=features)
            elif features:
                add(setting, "features", budgets.features_epsilon, network, features=features)
        if as_authors:
            add(setting, "edges/released", budgets.edges_epsilon, count_share=release.count_share)
            continue
        cells, count = edges.budgets(budgets.edges_epsilon, release.count_share, release.accounting)
        add(setting, "edges/number", count)
        if not public:
            add(setting, "edges/filled", budgets.edges_epsilon, count_share=release.count_share)
        if public:
            add(setting, "edges", budgets.edges_epsilon, count_share=release.count_share)
            add(setting, "edges/cells", cells)
        if public and budgets.text_epsilon is not None:
            add(setting, "texts", budgets.text_epsilon)


def _add(
    planned: Plan,
    audit: str,
    arguments: dict[str, object],
    key: str = "",
    settings: Iterable[str] = (),
    network: str = "",
) -> None:
    """Plan an audit, for the settings of an experiment in addition to those that it is of already."""
    covers = planned.setdefault(Planned(audit, network, tuple(sorted(arguments.items()))), {})
    if key:
        covered = covers.setdefault(key, [])
        covered += [setting for setting in settings if setting not in covered]


@dataclass(frozen=True)
class Unit(runs.Unit):
    """An audit of a suite."""

    planned: Planned
    covers: dict[str, list[str]]


class Audits(Job[Unit]):
    """All audits of a suite."""

    stage = "audit"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        entry("suites", name, params.suites)
        self.output, self.size = RUNS / name / "audit.json", {} if MOST is None else {"n_samples": MOST}
        self.planned = plan(name, params)
        self.confidence = corrected_confidence(len(self.planned))

    @override
    @classmethod
    def main(cls, name: str, *options: object, **named: object) -> dict[str, object]:
        job = cls(name, load())
        if job.planned:
            return super().main(name, *options, **named)
        job.assemble([], [])
        return {}

    @override
    def checks(self) -> list[dict[str, object]]:
        return []

    @override
    def plan(self) -> Iterator[Unit]:
        for planned, covers in self.planned.items():
            label = f"{planned.audit.replace('/', '-')}-{text_digest(str(planned))[:6]}"
            decides = (str(planned), self.confidence, SEED, self.size, self.code)
            yield Unit(label, runs.folder_of(self.kept, label, *decides), planned, covers)

    @override
    def run(self, unit: Unit, path: Path, screen: Screen) -> None:
        screen.begin(unit.label, 1)
        arguments = dict(unit.planned.arguments) | self.size
        write_json(path / RECORD, record(unit.planned.audit, self.confidence, SEED, **arguments))
        screen.step(1)

    @override
    def write(self, units: list[Unit], path: Path) -> None:
        self.records: list[Row] = [
            read_json(unit.done / RECORD) | {"network": unit.planned.network, "covers": unit.covers} for unit in units
        ]
        write_json(path, self.records)

    @override
    def refuse(self) -> None:
        for audited in filter(is_fault, self.records):
            raise PrivacyError(
                f"{self.output}: {audited['audit']}: {audited['mechanism']}: the ledger accounts for epsilon "
                f"{audited['epsilon_accounted']:g}, but what is released proves at least "
                f"{audited['audited_epsilon']:.3g}; mend it before anything is released"
            )


def require_known(names: Sequence[str]) -> list[str]:
    """The audits of these names, all if none is given.

    Raises:
        ConfigurationError: there is no such audit.
    """
    for name in names:
        if name not in AUDITS:
            raise ConfigurationError(f"audits: there is no {name!r}; known: {', '.join(AUDITS)}")
    return list(names) or list(AUDITS)


def run(names: Sequence[str], jobs: int) -> Iterator[dict[str, object]]:
    """The record of each audit as it ends, with `claim`: whether it is of a claim without any accounted ε.

    Args:
        jobs: processes side by side.
    """
    confidence = corrected_confidence(len(names))
    with workers(jobs) as pool:
        for done in as_completed([pool.submit(_record, name, confidence) for name in names]):
            yield done.result()


def _record(name: str, confidence: float) -> Row:
    result = record(name, confidence, SEED)
    audited, claimed, accounted = (result[key] for key in ("audited_epsilon", "epsilon_claimed", "epsilon_accounted"))
    judged = verdict(audited, claimed, accounted, tuple(result["controls"].values()))
    return result | {"verdict": judged, "fault": is_fault(result), "claim": name in CLAIMS}


work, main = Audits.commands(__name__)
