"""What the numbers say: differences between systems, attackers and chance, each with its interval over seeds.

Two rules. A system is said to rank better than another only if the paired test over seeds stays significant after
Holm's correction for all comparisons of that kind. An attacker is said to gain as soon as the interval over seeds lies
above zero, uncorrected, because missing a leak is worse than naming one too many; but a gain of so few users that no
test could tell it from chance (`FEWEST_USERS`) is not called one: seeds do not vary the attacked users, and a system
without randomness has an interval of no width.
"""

from __future__ import annotations

from dataclasses import dataclass

from tasks.evaluation import statistics
from tasks.reporting.results import BASE, YARDSTICKS, Results, System

SIGNIFICANCE = 0.05
FEWEST_USERS = 5
"""More users guessed right than before, none lost: below this the sign test gives p = 2^-n > SIGNIFICANCE."""
FULL_NDCG = "full/ndcg"
SAMPLED_HIT = "sampled-100/hit"


@dataclass(frozen=True)
class Difference:
    """`system` minus something else on one metric, over the seeds both have."""

    system: System
    other: str
    mean: float
    low: float
    high: float
    n_seeds: int
    found: bool
    """Whether the rule for such differences calls it a difference."""

    @property
    def better(self) -> bool:
        """A found difference above zero."""
        return self.found and self.mean > 0

    @property
    def worse(self) -> bool:
        """A found difference below zero."""
        return self.found and self.mean < 0


def beside_yardsticks(results: Results, metric: str, k: int) -> list[Difference]:
    """Every other system minus popularity and minus dp-popularity.

    For each pair both claims, that one beats the other and the reverse, are tested; all are corrected together. With
    a single seed nothing can be tested and no difference is found.
    """
    pairs = [
        (system, yardstick, *results.paired(system, metric, k, yardstick, metric, k))
        for yardstick in results.yardsticks
        for system in results.systems
        if system.model not in YARDSTICKS
    ]
    pairs = [pair for pair in pairs if len(pair[2])]
    claims = {}
    for number, (_, _, left, right) in enumerate(pairs):
        if len(left) > 1:
            claims[f"{number} above"], claims[f"{number} below"] = (left, right), (right, left)
    tests = statistics.paired_tests(claims)
    found = []
    for number, (system, yardstick, left, right) in enumerate(pairs):
        shown = any(
            tests[claim].p_holm < SIGNIFICANCE for claim in (f"{number} above", f"{number} below") if claim in tests
        )
        found.append(_difference(system, yardstick.label, statistics.summary(left - right), shown))
    return found


def above_chance(results: Results, attribute: str, attacker: str, k: int) -> list[Difference]:
    """The attacker's advantage over the majority guess, for every system."""
    found = []
    for system in results.systems:
        values = results.values(system, f"attribute/{attribute}/{attacker}/advantage", k)
        if len(values):
            gain = statistics.summary(values)
            found.append(_difference(system, "the majority guess", gain, _gained(gain, results.n_targets)))
    return found


def above_ratings(results: Results, attribute: str, attacker: str, k: int) -> list[Difference]:
    """The attacker's F1 minus that of the same attacker on the ratings alone, for every system."""
    metric = f"attribute/{attribute}/{attacker}/f1"
    found = []
    for system in results.systems:
        left, right = results.paired(system, metric, k, system, metric, 0)
        if len(left):
            gain = statistics.summary(left - right)
            found.append(_difference(system, "ratings alone", gain, _gained(gain, results.n_targets)))
    return found


def sampling_margin(share: float, n_targets: int) -> float:
    """How far a share of `n_targets` users may lie from that of all users: longer arm of its exact 95 % interval."""
    low, high = statistics.clopper_pearson(round(share * n_targets), n_targets)
    return max(share - low, high - share)


def claims_privacy(system: System) -> bool:
    """Whether the ledger of setting `base` claims a finite budget for anything."""
    return any(spent.entry.claimed_epsilon is not None for spent in system.spent if spent.setting == BASE)


def _gained(gain: statistics.Summary, n_targets: int) -> bool:
    return gain.low > 0 and round(gain.mean * n_targets, 6) >= FEWEST_USERS


def _difference(system: System, other: str, difference: statistics.Summary, found: bool) -> Difference:
    return Difference(system, other, difference.mean, difference.low, difference.high, difference.n, found)
