"""What a suite's runs produced, in the form the report asks for it: values by seed of one system and metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.errors import DataError
from tasks.evaluation.gains import Gain
from tasks.evaluation.run_numbers import split_of
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core.setting_names import BASE as BASE
from tasks.reporting.core.setting_names import by_value, comparison_text, parts
from tasks.reporting.core.words import wording
from tasks.results.paper import Paper

YARDSTICKS = ("popularity", "dp-popularity")
"""Systems that every table of a top-K recommender carries (docs/methods.md §8)."""
MEANS = ("rating-means", "dp-rating-means")
"""The same of a predictor of ratings: means of all ratings, of users and of items, and noisy ones."""

GAIN_ORDER = ("experiment", "setting", "attribute", "attacker", "k", "control")
METRIC_ORDER = ("suite", "experiment", "dataset", "model", "setting", "metric", "k", "seed")


@dataclass(frozen=True)
class Spent:
    """A ledger entry of one run."""

    setting: str
    seed: int
    entry: LedgerEntry
    network: str = ""
    """Whose users it was spent on, of a pair of networks; empty where there is one alone."""


@dataclass(frozen=True)
class Run:
    """Provenance of one stage of the suite: it decides nothing."""

    stage: str
    name: str
    """An experiment's, an entry's of `aligned` or `embeddings`, or the suite's."""
    revision: str
    """Git commit, with "+changes" where the code differed from it."""
    started: str
    """ISO 8601, UTC."""
    seconds: float
    """Of the last part, where a run was resumed."""
    cpu_seconds: float
    """Of all processes that worked on it, also before an interruption."""
    peak_memory_mb: int
    processor: str
    cores: int
    packages: dict[str, str]
    epoch_seconds: float | None = None
    """Median over epochs and seeds at setting `base`; None without epochs."""
    training_seconds: float | None = None
    """Sum over epochs, mean over seeds at setting `base`; None without epochs."""


@dataclass(frozen=True)
class System:
    """One experiment: a model on a data set, with its seeds and sweep points."""

    experiment: str
    name: str
    """Its system: what published tables and claims call it, and files `model`. Several experiments may have one."""
    label: str
    """Name in tables and figures, unique within the suite."""
    dataset: str
    """What it was trained and tested on."""
    seeds: tuple[int, ...]
    """Of its runs at setting `base`: seeds, on further splits as `tasks.evaluation.run_numbers` counts them."""
    parameters: dict[str, Any]
    """Its entry in the suite's params.yaml."""
    history: dict[str, dict[str, list[dict[str, Any]]]]
    """Setting -> seed -> records {epoch, loss, valid}; empty without epochs."""
    cut_off: dict[str, tuple[int, ...]]
    """Setting -> seeds whose training the cap on epochs ended, not validation."""
    spent: tuple[Spent, ...]
    """What its runs spent; empty for a model without privacy."""

    @cached_property
    def trainings(self) -> dict[tuple[int, str], list[dict[str, Any]]]:
        """(seed, network; empty where there are none) -> its records, at setting `base`; none is empty."""
        trained: dict[tuple[int, str], list[dict[str, Any]]] = {}
        for seed, records in sorted(self.history.get(BASE, {}).items(), key=lambda item: int(item[0])):
            for record in records:
                trained.setdefault((int(seed), record.get("network", "")), []).append(record)
        return trained

    @property
    def config(self) -> dict[str, Any]:
        """Its model's configuration at setting `base`."""
        return dict(self.parameters["config"])

    @property
    def is_yardstick(self) -> bool:
        """Whether it is there to be beaten."""
        return self.name in (*YARDSTICKS, *MEANS)


@dataclass(frozen=True)
class Processed:
    """What a protocol left of a data set: of its schema.json and counts.json."""

    dataset: str
    """The data set that was prepared, as the published tables name it."""
    features: int
    """Features of a user."""
    counts: tuple[dict[str, Any], ...]
    """One record {step, users, items, interactions} per step of the protocol, in order."""


@dataclass(frozen=True)
class Network:
    """One of a pair of networks: of its schema.json and counts.json."""

    name: str
    users: int
    posts: int
    """0 where none are published."""
    friendships: int
    """0 where none are published; such a network is not embedded."""
    labelled: bool
    """Whether users' interests are known."""
    sensitive: tuple[str, ...]
    """Attributes that attacks try to infer."""
    texts: Literal["posts", "vectors", "none"]
    """What is published of users' texts: the texts themselves, or one vector for each user, or nothing."""
    attributed: bool = True
    """Whether users have attributes at all."""

    @property
    def title(self) -> str:
        """As it is told."""
        return self.name.capitalize()


@dataclass(frozen=True)
class Aligned:
    """A pair of networks whose accounts were matched without a model of a suite: an entry of `aligned`."""

    name: str
    sees: str
    """What its ways see, in a few words, such as "embeddings by deepwalk"."""
    judged: int
    """Anchors on which every way is judged."""


@dataclass(frozen=True)
class Results:
    """Everything a report is made of."""

    suite: str
    title: str
    layout: Paper
    """The paper whose tables the suite is shown in."""
    paper: str | None
    """Whose tables, figures and claims the report has (a key of `tasks.papers.PAPERS`); None: of no paper."""
    dataset: str
    synthetic: bool
    stands_for: str
    """Published data set that these are a replica or a part of; empty for themselves."""
    licence: str
    """Where the data are from and under which licence."""
    systems: tuple[System, ...]
    """In the order of params.yaml, be it on other data than the suite's or not: `compared` and `elsewhere`."""
    metrics: pl.DataFrame
    """METRICS of every experiment, train and attack."""
    gains: pl.DataFrame
    """GAINS of every experiment, with the columns experiment and model before them."""
    audit: tuple[dict[str, Any], ...]
    """Records of `audit.json`."""
    checks: tuple[dict[str, Any], ...]
    """Checks {contract, name, success, evaluated, failed} that runs and metrics passed."""
    published: pl.DataFrame
    """paper_tables.csv (paper, artefact, dataset, method, setting, metric, value, std), values as float."""
    n_targets: int
    """Users whose attributes attackers had to guess; 0 where nothing was attacked."""
    attack: dict[str, Any] | None
    """Parameters of the suite's attack; None in a suite without."""
    processed: Processed
    """What the protocol left of the data."""
    counted: Processed | None
    """The same of all real data that these are a part or a replica of; None where only the suite's own were counted."""
    limits: str
    """What these data can and cannot show, as paragraphs with an empty line between them; told as it is."""
    validation: str
    """The metric that chose epochs, with its cut-off ("Recall@20"); empty for what the suite's layout calls it."""
    one_run: tuple[dict[str, Any], ...]
    """What one training run with canaries proves (`one_run.FIELDS`), one record per audited setting."""
    words: tuple[dict[str, Any], ...]
    """Where word vectors of users' metadata come from (`word_vectors.FIELDS`), with the `name` of each set of them."""
    part: str
    """What part of the data set this is, as a sentence; empty where it is whole."""
    fingerprints: dict[str, str]
    """Processed data set -> SHA-256 of its files as `tasks.stages.common.digest` has it; none of somebody's own."""
    edges: pl.DataFrame | None = None
    """What the attack on single interactions found (`edges.COLUMNS`); None in a suite without that attack."""
    membership: pl.DataFrame | None = None
    """What the attack on membership found (`membership.COLUMNS`); None in a suite without that attack."""
    networks: tuple[Network, ...] = ()
    """The two networks, where the data are a pair."""
    anchors: int = 0
    """People who are known to be in both."""
    aligned: tuple[Aligned, ...] = ()
    """Entries of `aligned` whose data are the suite's; their metrics are among the others, under their own names."""
    spreads: tuple[dict[str, Any], ...] = ()
    """Records {experiment, metric, k, bins} of (low, high, users), ten users a bin or more; of ranked lists alone."""
    runs: tuple[Run, ...] = ()
    """When, where and how the stages ran; empty where their outputs were pulled without a record."""

    @property
    def reproduced(self) -> Paper | None:
        """The paper that the suite is set beside, on real data. Synthetic data are never compared."""
        return None if self.synthetic or self.paper is None else self.layout

    @cached_property
    def n_splits(self) -> int:
        """On how many splits of the data systems were run at setting `base`."""
        return 1 + max((split_of(seed) for system in self.compared for seed in system.seeds), default=0)

    @property
    def word_for_run(self) -> str:
        """What is repeated, in the singular: a seed, a fold, or a run of a seed on a split."""
        return wording(self.layout).run if self.n_splits == 1 else "run"

    def run(self, stage: str, name: str) -> Run | None:
        """The provenance of a stage; None where there is no record of it."""
        return next((run for run in self.runs if (run.stage, run.name) == (stage, name)), None)

    @cached_property
    def compared(self) -> tuple[System, ...]:
        """Systems on the suite's own data: all that may be set side by side."""
        return tuple(system for system in self.systems if system.dataset == self.dataset)

    @cached_property
    def elsewhere(self) -> tuple[System, ...]:
        """Systems on other data, such as the same before its protocol: they stand in a table that says so, alone."""
        return tuple(system for system in self.systems if system.dataset != self.dataset)

    def full_label(self, system: System) -> str:
        """A system's label, with its data where they are not the suite's."""
        return system.label if system.dataset == self.dataset else f"{system.label}, on {system.dataset}"

    @cached_property
    def _index(self) -> dict[tuple[str, str, str, int], dict[int, float]]:
        """(experiment, setting, metric, k) -> seed -> value; a metric without a cut-off has k = 0."""
        index: dict[tuple[str, str, str, int], dict[int, float]] = {}
        for row in self.metrics.iter_rows(named=True):
            key = (row["experiment"], row["setting"], row["metric"], row["k"] or 0)
            by_seed = index.setdefault(key, {})
            if row["seed"] in by_seed:
                raise DataError(
                    f"metrics of {row['experiment']}: {row['metric']} at k = {key[3]}, setting {key[1]}, "
                    f"seed {row['seed']} is given twice; run its train and attack stages again"
                )
            by_seed[row["seed"]] = row["value"]
        return index

    @cached_property
    def _gains(self) -> dict[tuple[str, str, str, str, int, str], Gain]:
        """Values of `GAIN_ORDER` -> gain."""
        index: dict[tuple[str, str, str, str, int, str], Gain] = {}
        for row in self.gains.iter_rows(named=True):
            key = (row["experiment"], row["setting"], row["attribute"], row["attacker"], row["k"], row["control"])
            if key in index:
                raise DataError(
                    f"gains of {row['experiment']}: {row['attacker']} on {row['attribute']} over {row['control']} at "
                    f"k = {row['k']}, setting {row['setting']}, is given twice; run its attack stage again"
                )
            index[key] = Gain(row["gain"], row["low"], row["high"])
        return index

    def gain(self, system: System, attribute: str, attacker: str, k: int, control: str) -> Gain | None:
        """What an attack at setting `base` gains over one of `CONTROLS`; None where that was not measured."""
        return self._gains.get((system.experiment, BASE, attribute, attacker, k, control))

    def by_seed(self, system: System, metric: str, k: int, setting: str = BASE) -> dict[int, float]:
        """Values of a metric by seed; empty where it was not measured."""
        return self._index.get((system.experiment, setting, metric, k), {})

    def metric_values(self, name: str, metric: str, k: int = 0) -> dict[int, float]:
        """Values of a metric by seed at setting `base`, of a system's experiment or of an entry of `aligned`."""
        return self._index.get((name, BASE, metric, k), {})

    def metrics_of(self, name: str) -> list[str]:
        """Metrics that were measured at setting `base` of a system's experiment or of an entry of `aligned`, sorted."""
        return sorted(
            {metric for experiment, setting, metric, _ in self._index if (experiment, setting) == (name, BASE)}
        )

    def values(
        self, system: System, metric: str, k: int, setting: str = BASE, *, first_split: bool = False
    ) -> NDArray[np.float64]:
        """Values in order of seed: (n_seeds,) float64, empty if not measured; `first_split`: as of sweep points."""
        by_seed = self.by_seed(system, metric, k, setting)
        return np.array([by_seed[seed] for seed in sorted(by_seed) if not (first_split and split_of(seed))], np.float64)

    def paired_values(
        self,
        system: System,
        metric: str,
        k: int,
        other: System,
        other_metric: str,
        other_k: int,
        setting: str = BASE,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of two metrics at the seeds both have: two (n_seeds,) float64 arrays, at one setting."""
        left = self.by_seed(system, metric, k, setting)
        right = self.by_seed(other, other_metric, other_k, setting)
        seeds = sorted(left.keys() & right.keys())
        return np.array([left[seed] for seed in seeds]), np.array([right[seed] for seed in seeds])

    def find_setting(self, system: System, setting: str) -> str | None:
        """The measured setting in which a system has the values that `setting` names ("prior=standard,privacy=none").

        What a version is, its configuration says and not its name: values that are already those of `base` are in no
        name of a sweep point. None where nothing of this configuration was run.
        """
        measured = self.settings(system)
        if setting in measured:
            return setting
        base = {(key, comparison_text(value)) for key, value in system.config.items()}
        wanted = parts(setting) - base
        return next((candidate for candidate in measured if parts(candidate) - base == wanted), None)

    def settings(self, system: System) -> list[str]:
        """Settings that were measured: `base`, then the sweep points by key and value."""
        settings = {setting for experiment, setting, _, _ in self._index if experiment == system.experiment}
        return sorted(settings, key=lambda setting: (setting != BASE, *by_value(setting)))

    def cutoffs(self, metric: str) -> list[int]:
        """Cut-offs at which a metric was measured for any system."""
        return sorted({k for _, _, name, k in self._index if name == metric and k > 0})

    def attributes(self) -> list[str]:
        """Attributes that were attacked, in order of name."""
        return sorted({name.split("/")[1] for _, _, name, _ in self._index if name.startswith("attribute/")})

    def attackers(self, attribute: str) -> list[str]:
        """Attackers of an attribute; `neural` first, `majority` left out."""
        prefix = f"attribute/{attribute}/"
        names = {name.split("/")[2] for _, _, name, _ in self._index if name.startswith(prefix)} - {"majority"}
        return sorted(names, key=lambda attacker: (attacker != "neural", attacker))

    @cached_property
    def shown_attacker(self) -> str:
        """Whose guesses of attributes headlines and figures show: the first attacker's; empty where there is none."""
        return next((self.attackers(attribute)[0] for attribute in self.attributes()), "")

    def majority(self, attribute: str) -> float | None:
        """F1 of guessing the most frequent class of an attribute for everyone, averaged over systems and seeds."""
        known = {system.experiment for system in self.compared}
        values = [
            value
            for (experiment, _, name, _), by_seed in self._index.items()
            if experiment in known and name == f"attribute/{attribute}/majority/f1"
            for value in by_seed.values()
        ]
        return float(np.mean(values)) if values else None

    def find_compared(self, name: str) -> System | None:
        """The first experiment in params.yaml that is this system, on the suite's own data."""
        return next((system for system in self.compared if system.name == name), None)

    def find(self, name: str) -> System | None:
        """The experiment of that label; where there is none, the first that is this system."""
        return next((system for system in self.systems if system.label == name), None) or self.find_compared(name)

    @property
    def origin(self) -> str:
        """The data set as the published tables name it."""
        return self.processed.dataset

    @property
    def yardsticks(self) -> list[System]:
        """Popularity (of ratings: their means) and its private version, as far as the suite has them."""
        return [system for system in self.compared if system.is_yardstick]


def label(experiment: str, suite: str) -> str:
    """An experiment's name without its suite: `gerai-bpr` of the suite `gerai` is `bpr`."""
    short = experiment.removeprefix(f"{suite}-")
    return short or experiment


def unique(values: Sequence[Any]) -> list[Any]:
    """Distinct values in order of first appearance."""
    return list(dict.fromkeys(values))
