"""What the numbers say: differences between systems, attacks against controls, with intervals, and refuted claims.

Two rules. A system is said to rank better than another only if the paired test over seeds stays significant after
Holm's correction for all comparisons of that kind. An attack is said to gain only if it beats a control: if the 95 %
interval over attacked users and seeds lies above zero, uncorrected, because missing a leak is worse than naming one
too many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tasks.errors import DataError
from tasks.evaluation import statistics
from tasks.evaluation.gains import CONTROLS, Gain
from tasks.reporting.core import ledger
from tasks.reporting.core.layout import join_words
from tasks.reporting.core.results import BASE, Results, System
from tasks.results.verdicts import ONE_SIDED as ONE_SIDED
from tasks.results.verdicts import SIGNIFICANCE as SIGNIFICANCE


@dataclass(frozen=True)
class Difference:
    """`system` minus something else, with its 95 % interval."""

    system: System
    other: str
    mean: float
    low: float
    high: float
    significant: bool
    """Whether the rule for such differences calls it a difference."""
    lower: bool = False
    """Whether less is better."""

    @property
    def better(self) -> bool:
        """A significant difference above zero, or below where less is better."""
        return self.significant and (self.mean < 0 if self.lower else self.mean > 0)

    @property
    def worse(self) -> bool:
        """A significant difference below zero, or above where less is better."""
        return self.significant and (self.mean > 0 if self.lower else self.mean < 0)


def paired_tests(
    results: Results, claims: Mapping[str, tuple[ArrayLike, ArrayLike]]
) -> dict[str, statistics.PairedTest]:
    """Paired tests over the suite's seeds and splits, or over its folds with the correction for their overlap.

    claims: name -> two arrays (n_runs,) in the order of the runs' numbers.
    """
    by_split = {name: (_by_split(results, left), _by_split(results, right)) for name, (left, right) in claims.items()}
    return statistics.paired_tests(by_split, overlap=results.layout.overlap)


def _by_split(results: Results, values: ArrayLike) -> NDArray[np.float64]:
    """(n_runs,) values as (n_splits, n_seeds), where they are of all splits; all systems have the same seeds there.

    Raises:
        DataError: they are of more runs than one split has, and not of all.
    """
    array = np.asarray(values, np.float64)
    n_runs = max(len(system.seeds) for system in results.compared) if results.n_splits > 1 else 0
    if n_runs and n_runs // results.n_splits < len(array) != n_runs:
        raise DataError(f"{results.suite}: {len(array)} of {n_runs} runs on {results.n_splits} splits have a value")
    return array.reshape(results.n_splits, -1) if len(array) == n_runs else array


def interval(results: Results, values: NDArray[np.float64]) -> Gain:
    """Mean of (n,) values with its 95 % interval: bootstrapped over seeds; by the t-test over folds, or over splits.

    A bootstrap takes values for independent, which those of folds and those of one split are not.
    """
    independent = results.layout.overlap is None and _by_split(results, values).ndim == 1
    if independent or len(values) < 2:
        over_seeds = statistics.summary(values)
        return Gain(over_seeds.mean, over_seeds.low, over_seeds.high)
    test = paired_tests(results, {"": (values, np.zeros(len(values)))})[""]
    return Gain(test.difference, test.low, test.high)


def yardstick_differences(results: Results, metric: str, k: int, *, lower: bool = False) -> list[Difference]:
    """Every other system minus each yardstick (popularity and dp-popularity; of ratings, their means).

    For each pair both claims, that one beats the other and the reverse, are tested; all are corrected together. With
    a single seed nothing can be tested and no difference is found. Intervals are bootstrapped over seeds; over folds
    they are those of the test, since a bootstrap takes folds for independent.

    lower: whether less of the metric is better.
    """
    pairs = [
        (system, yardstick, *results.paired_values(system, metric, k, yardstick, metric, k))
        for yardstick in results.yardsticks
        for system in results.compared
        if not system.is_yardstick
    ]
    pairs = [pair for pair in pairs if len(pair[2])]
    claims = {}
    for number, (_, _, left, right) in enumerate(pairs):
        if len(left) > 1:
            claims[f"{number} above"], claims[f"{number} below"] = (left, right), (right, left)
    tests = paired_tests(results, claims)
    differences = []
    for number, (system, yardstick, left, right) in enumerate(pairs):
        shown = any(
            tests[claim].p_holm < SIGNIFICANCE for claim in (f"{number} above", f"{number} below") if claim in tests
        )
        gain = interval(results, left - right)
        differences.append(Difference(system, yardstick.label, gain.mean, gain.low, gain.high, shown, lower))
    return differences


def above_chance(results: Results, attribute: str, attacker: str, k: int) -> list[Difference]:
    """The attack minus the majority guess, for every system."""
    return _differences_above(results, attribute, attacker, k, "majority")


def above_ratings(results: Results, attribute: str, attacker: str, k: int) -> list[Difference]:
    """The attack minus the same attacker that sees the ratings alone, for every system."""
    return _differences_above(results, attribute, attacker, k, "ratings")


def above_random(results: Results, attribute: str, attacker: str, k: int) -> list[Difference]:
    """The attack minus the same attacker on shuffled attributes, for every system."""
    return _differences_above(results, attribute, attacker, k, "random")


def controls(results: Results, system: System, attribute: str, attacker: str, k: int) -> dict[str, Gain]:
    """Control -> what the attack gains over it, for the controls that were measured."""
    gains = {control: results.gain(system, attribute, attacker, k, control) for control in CONTROLS}
    return {control: gain for control, gain in gains.items() if gain is not None}


def beats(gain: Gain) -> bool:
    """The rule: an attack beats a control if its whole interval lies above zero."""
    return gain.low > 0


def any_beats(gains: Sequence[Gain], level: float = 0.0) -> bool:
    """Whether one attack at least beats `level`, when so many were tried.

    Each interval is made as long as all of them together need to be, by Bonferroni's inequality, its lower half as
    that of a normal distribution. One attack's stays as it is. Attacks that see the same lists succeed by chance
    together, so several that do are no further evidence.
    """
    from scipy.stats import norm  # half a second to import, and not every report tests

    longer = float(norm.isf(ONE_SIDED / len(gains)) / norm.isf(ONE_SIDED)) if gains else 1.0
    return any(gain.mean - longer * (gain.mean - gain.low) > level for gain in gains)


def claims_privacy(system: System) -> bool:
    """Whether the ledger of setting `base` claims a finite budget for anything; not with the noise of released code."""
    claimed = any(spent.entry.claimed_epsilon is not None for spent in system.spent if spent.setting == BASE)
    return claimed and not is_released_code(system)


def is_released_code(system: System) -> bool:
    """Whether its noise is that of the code which a paper's authors released, not what their claim is for."""
    return any(spent.entry.accounting == "released" for spent in system.spent)


def _differences_above(results: Results, attribute: str, attacker: str, k: int, control: str) -> list[Difference]:
    return [
        Difference(system, control, gain.mean, gain.low, gain.high, beats(gain))
        for system in results.compared
        if (gain := results.gain(system, attribute, attacker, k, control)) is not None
    ]


@dataclass(frozen=True)
class Refutation:
    """A claimed ε that is too small."""

    label: str
    """Systems that claim it; the mechanism where the audit did not say whose it is."""
    experiments: tuple[str, ...]
    """Of these systems; empty where the audit did not say."""
    claimed: float
    proved: float
    """Lower bound on ε at the audit's confidence."""
    confidence: float

    @property
    def text(self) -> str:
        """As a clause: who claims what, and what is proved."""
        return f"{self.label} claims ε = {self.claimed:.3g}, but ε ≥ {self.proved:.3g} is proved"


def refutations(results: Results) -> list[Refutation]:
    """Every refuted claim, the one that is furthest exceeded first; audits of several systems' lines once."""
    lines = [line for line in ledger.lines(results) if line.audit is not None]
    known = []
    for record in results.audit:
        if record["verdict"] != "refuted":
            continue
        labels = {line.system.experiment: line.system.label for line in lines if line.audit is record}
        label = join_words(list(labels.values())) or f"“{record['mechanism']}”"
        bounds = (float(record["epsilon_claimed"]), float(record["audited_epsilon"]), float(record["confidence"]))
        known.append(Refutation(label, tuple(labels), *bounds))
    return sorted(known, key=lambda refuted: refuted.claimed - refuted.proved)
