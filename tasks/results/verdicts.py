"""Verdicts on the claims of a paper.

A claim is one or more comparisons, each tested in both directions by a paired test over runs, each direction at 2.5 %.
A claim is supported if every comparison is significant as claimed: all of them must be, so none is corrected (the
intersection-union test). It is contradicted if a comparison is significant the other way after Holm's correction over
all of the claim's, or in another claim that has it, too. Otherwise it is not decided. A claim of what holds in most
cases needs more than half of its cases, and is contradicted by half of them; there both directions of all comparisons
are corrected together. A sentence that can be interpreted in several ways is one claim; where the interpretations have
different verdicts it depends on them, and where some were not run it is not decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.statistics import PairedTest
from tasks.results.claims import Spec, Verdict

SIGNIFICANCE = 0.05
ONE_SIDED = 0.025
"""Level of one direction; of attacks, the share whose 95 % interval lies above chance although nothing leaks."""
Runs = NDArray[np.float64]
"""(n_runs,) values."""
PairedTests = Callable[[Mapping[str, tuple[Runs, Runs]]], Mapping[str, PairedTest]]
"""Name -> two sides, of which the first is claimed to be larger -> tests, with p corrected for all of them."""


@dataclass(frozen=True)
class Comparison:
    """Claimed is left > right; contradicted is it by left < against, or by left < right where that is None.

    left, right, against: (n_runs,) float64; `group` is the case it belongs to.
    """

    group: str
    text: str
    left: Runs
    right: Runs
    against: Runs | None = None

    @property
    def lowest(self) -> Runs:
        """What left falls below where the claim is contradicted."""
        return self.right if self.against is None else self.against


@dataclass(frozen=True)
class Tested:
    """A comparison: whether it is significant as claimed, and the other way; its test, None where it is of one run."""

    as_claimed: bool
    reversed: bool
    test: PairedTest | None


@dataclass(frozen=True)
class Compared:
    """A claim with the comparisons that could be made, and what was not run."""

    spec: Spec
    comparisons: Sequence[Comparison]
    absent: Sequence[str]


def decide(claims: Sequence[Compared], paired_tests: PairedTests) -> list[tuple[Verdict, list[Tested]]]:
    """The verdict on each claim, and its comparisons with their tests."""
    tested = [_tests(claim, paired_tests) for claim in claims]
    broken = {  # by any claim that has the comparison
        _key(comparison)
        for claim, tests in zip(claims, tested, strict=True)
        for comparison, test in zip(claim.comparisons, tests, strict=True)
        if test.reversed
    }
    decided = []
    for claim, tests in zip(claims, tested, strict=True):
        tests = [
            replace(test, reversed=_key(comparison) in broken)
            for comparison, test in zip(claim.comparisons, tests, strict=True)
        ]
        decided.append((_verdict(claim, tests), tests))
    return decided


def of_readings(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a sentence, of those on its interpretations."""
    known = {verdict for verdict in verdicts if verdict != "not run"}
    if len(known) > 1:
        return "depends on the reading"
    if known and "not run" in verdicts:
        return "not decided"  # what was not run may go either way
    return known.pop() if known else "not run"


def _tests(claim: Compared, paired_tests: PairedTests) -> list[Tested]:
    several = {str(n): sides for n, sides in enumerate(claim.comparisons) if len(sides.left) > 1}
    claimed = {f"{n} as claimed": (sides.left, sides.right) for n, sides in several.items()}
    other = {f"{n} reversed": (sides.lowest, sides.left) for n, sides in several.items()}
    if claim.spec.most:
        tests = paired_tests(claimed | other)
        significant = {name for name, test in tests.items() if test.p_holm < SIGNIFICANCE}
    else:
        tests, reversed_ = paired_tests(claimed), paired_tests(other)
        significant = {name for name, test in tests.items() if test.p < ONE_SIDED}
        significant |= {name for name, test in reversed_.items() if test.p_holm < ONE_SIDED}
    return [
        Tested(f"{n} as claimed" in significant, f"{n} reversed" in significant, tests.get(f"{n} as claimed"))
        for n in range(len(claim.comparisons))
    ]


def _verdict(claim: Compared, tests: Sequence[Tested]) -> Verdict:
    if not tests:
        return "not run"
    groups: dict[str, list[Tested]] = {}
    for comparison, test in zip(claim.comparisons, tests, strict=True):
        groups.setdefault(comparison.group, []).append(test)
    held = sum(all(test.as_claimed for test in group) for group in groups.values())
    broken = sum(any(test.reversed for test in group) for group in groups.values())
    cases = max(len(groups), claim.spec.cases)  # what was not run may go either way
    if 2 * broken >= cases if claim.spec.most else broken:
        return "contradicted"
    if 2 * held > cases if claim.spec.most else held == len(groups) and not claim.absent:
        return "supported"
    return "not decided"


def _key(comparison: Comparison) -> tuple[bytes, bytes]:
    """What is compared, in whichever claim."""
    return comparison.left.tobytes(), comparison.lowest.tobytes()
