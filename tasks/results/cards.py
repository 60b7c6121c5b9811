"""The privacy card of a system: the same typed fields for every one, in ids and numbers, as JSON.

Its sections are those of OpenDP's registry of deployments. A system of a benchmark is no deployment: the form is for
whoever deploys it. Where no finite ε follows there are no `privacy_parameters`, and `reasons` say why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from tasks.privacy.accounting.ledger import LedgerEntry, Noise
from tasks.privacy.audits.unaudited import is_private, reason
from tasks.privacy.remarks import Explanation, KnownGap
from tasks.privacy.terms import Condition, Level, Neighbouring, Observer, Unaudited, Unit
from tasks.results.budgets import level
from tasks.results.facts import BASE, Facts, Kind, Source, System
from tasks.results.load import Results
from tasks.results.standings import Measure

if TYPE_CHECKING:
    from tasks.core.rows import Row

    _Value = TypeVar("_Value")


class Basic(Facts):
    """What the system is."""

    name: str
    model: str
    suite: str
    experiment: str
    title: str
    dataset: str
    kind: Kind
    stands_for: str
    """Published data set that these are a replica or a part of; empty for themselves."""


class Utility(Facts):
    """What it reaches, next to noisy popularity."""

    metric: str
    lower_is_better: bool
    mean: float
    std: float | None
    runs: int
    noisy_popularity: float | None


class Parameters(Facts):
    """A finite budget."""

    epsilon: float
    delta: float
    observer: Observer
    """Of all observers the one towards whom most is spent."""


class Audit(Facts):
    """What audits prove, at most."""

    epsilon: float
    """Lower bound."""
    provable: float
    """The largest bound that so many samples could prove."""
    verdict: str


class Loss(Facts):
    """What is spent at one level, by all releases of one run."""

    level: Level
    units: tuple[Unit, ...]
    neighbouring: tuple[Neighbouring, ...]
    observers: tuple[Observer, ...]
    claimed: float | None
    privacy_parameters: Parameters | None
    conditions: tuple[Condition, ...]
    reasons: tuple[Explanation, ...]
    """Why there is no finite ε; empty where there is one."""
    audit: Audit | None
    unaudited: tuple[Unaudited, ...]
    """Why there is no audit."""


class Implementation(Facts):
    """How to run it again."""

    command: str
    commits: tuple[str, ...]
    seeds: tuple[int, ...]
    configuration: dict[str, Any]
    noise: tuple[Noise, ...]


class Card(Facts):
    """A system at setting `base`."""

    basic: Basic
    utility: Utility | None
    privacy_loss: tuple[Loss, ...]
    accounting: tuple[LedgerEntry, ...]
    """Lines of the ledger, each once."""
    gaps: tuple[KnownGap, ...]
    implementation: Implementation
    administrative: Source
    """Where its data are from."""

    def run(self) -> dict[str, object]:
        """How to run it again, and why what has no finite ε has none."""
        of_run = self.implementation.model_dump(include={"command", "commits", "configuration"})
        return of_run | {
            "experiment": self.basic.experiment,
            "reasons": _once(reason for loss in self.privacy_loss for reason in loss.reasons),
        }


def card(results: Results, system: System, by: Measure, budget_rows: pl.DataFrame) -> Card:
    """The card of a system; one without a private line has what it lacks.

    spent: `tasks.results.budgets.BUDGETS` of the suite.
    """
    entries, suite = [line.entry for line in results.lines_of(system.experiment)], results.suite
    private = [entry for entry in entries if is_private(entry)]
    return Card(
        basic=Basic(
            **{name: getattr(system, name) for name in ("model", "experiment", "dataset")},
            **{name: getattr(suite, name) for name in ("suite", "title", "kind", "stands_for")},
            name=system.label,
        ),
        utility=_utility(results, system, by),
        privacy_loss=tuple(
            _loss(row, [entry for entry in entries if level(entry.unit, entry.protects) == row["level"]])
            for row in budget_rows.filter(experiment=system.experiment, setting=BASE).iter_rows(named=True)
        ),
        accounting=tuple({entry.model_dump_json(): entry for entry in entries}.values()),
        gaps=_once(gap for entry in private for gap in entry.gaps),
        implementation=Implementation(
            command=f"dvc repro suites/{suite.suite}/dvc.yaml:train@{system.experiment}",
            commits=_once(run.revision for run in results.runs if run.name == system.experiment),
            seeds=system.seeds,
            configuration=system.config,
            noise=_once(entry.noise for entry in private),
        ),
        administrative=suite.source,
    )


def _utility(results: Results, system: System, by: Measure) -> Utility | None:
    rows = results.means.filter(experiment=system.experiment, setting=BASE, metric=by.metric, k=by.k).to_dicts()
    noisy = next((other.experiment for other in results.suite.compared if other.label == by.noisy), "")
    fields: Row = {"metric": by.label, "lower_is_better": by.lower}
    fields |= {"noisy_popularity": results.mean(noisy, by.metric, by.k)}
    return Utility(mean=rows[0]["mean"], std=rows[0]["std"], runs=rows[0]["n"], **fields) if rows else None


def _loss(row: Row, entries: Sequence[LedgerEntry]) -> Loss:
    """row: of `BUDGETS`, of one level, with its entries."""
    audited, finite = row["audited"] is not None, not math.isinf(row["accounted"])
    whys = (reason(entry) for entry in entries if is_private(entry) and not audited)
    return Loss(
        level=row["level"],
        units=_once(entry.unit for entry in entries),
        neighbouring=_once(entry.neighbouring for entry in entries),
        observers=_once(entry.observer for entry in entries),
        claimed=row["claimed"],
        privacy_parameters=(
            Parameters(epsilon=row["accounted"], delta=row["delta"], observer=row["observer"]) if finite else None
        ),
        conditions=row["given"],
        reasons=_once(why for entry in entries if entry.accounted_epsilon is None for why in entry.reasons),
        audit=Audit(epsilon=row["audited"], provable=row["provable"], verdict=row["verdict"]) if audited else None,
        unaudited=_once(why for why in whys if why is not None),
    )


def _once(values: Iterable[_Value]) -> tuple[_Value, ...]:
    return tuple(dict.fromkeys(values))


def schema() -> str:
    """JSON schema of cards."""
    header = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:dprec:card"}
    return json.dumps(header | Card.model_json_schema(mode="serialization"), indent=1) + "\n"
