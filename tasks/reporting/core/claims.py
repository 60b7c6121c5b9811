"""What a paper says about its tables and figures, held against our numbers.

A claim is one or more comparisons, each tested in both directions by a paired t-test over seeds. What is claimed
together is corrected together by Holm's method: the comparisons of one claim, and all trends of one table or figure.
A claim is supported if every comparison is significant as claimed, contradicted if one is significant the other way,
and not decided otherwise; a claim of what holds "in most cases" needs more than half of its cases, and is contradicted
by half of them. Tests over seeds speak of the same attacked users and held-out items, as the paper's averages do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.evaluation.statistics import PairedTest
from tasks.reporting.core import comparison
from tasks.reporting.core.claim_specs import Claim, Comparison, Spec, Verdict
from tasks.reporting.core.findings import SIGNIFICANCE, paired_tests
from tasks.reporting.core.layout import format_difference, join_words, number
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results, unique

COLUMNS = ("artefact", "claim", "verdict", "evidence")
Tests = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
LISTED = 3
"""Up to so many comparisons are all told, of more only the least favourable one."""


def published_claims(results: Results, report: PaperReport, k: int) -> list[Claim]:
    """Every claim of the suite's paper, table by table; none without a paper.

    On other data than the paper's there are none either, unless the paper's report says so (`PaperReport.elsewhere`).

    Args:
        results: what the suite's runs produced.
        k: the cut-off of claims for which the paper names none.
    """
    paper = results.reproduced
    if paper is None or not (report.elsewhere or comparison.is_printed(results, paper)):
        return []
    specs, judged = report.claims(results, k)
    claims = [*evaluate(results, specs), *judged]
    order = [paper.data_table, paper.settings_table]
    order += [table.key for table in paper.tables] + [figure.key for figure in paper.figures]
    return sorted(claims, key=lambda claim: order.index(claim.artefact))


def evaluate(results: Results, specs: Sequence[Spec]) -> list[Claim]:
    """Every claim with its verdict and one or two sentences of numbers."""
    made = [spec.comparisons(results) for spec in specs]
    families: dict[str, Tests] = {}
    for index, (spec, (comparisons, _)) in enumerate(zip(specs, made, strict=True)):
        tests = families.setdefault(spec.family, {})
        for place, sides in enumerate(comparisons):
            if len(sides.left) > 1:
                tests[f"{index} {place} as claimed"] = sides.left, sides.right
                tests[f"{index} {place} reversed"] = sides.right, sides.left
    tested = {name: test for tests in families.values() for name, test in paired_tests(results, tests).items()}
    claims, effect = [], results.layout.overlap is not None
    for index, (spec, (comparisons, absent)) in enumerate(zip(specs, made, strict=True)):
        both = [
            (tested.get(f"{index} {place} as claimed"), tested.get(f"{index} {place} reversed"))
            for place in range(len(comparisons))
        ]
        claim = _check_claim(spec, comparisons, both, absent, effect=effect)
        claims.append(replace(claim, evidence=claim.evidence + spec.compared_with_floor(results)))
    return claims


def verdict_counts(claims: Sequence[Claim]) -> str:
    """How many claims there are of each verdict, as running text."""
    verdicts = [claim.verdict for claim in claims]
    return join_words([f"{verdicts.count(verdict)} {verdict}" for verdict in get_args(Verdict) if verdict in verdicts])


def frame(claims: Sequence[Claim]) -> pl.DataFrame:
    """`claims.csv`: the columns `COLUMNS`, in the order of the paper."""
    rows = [(claim.artefact, claim.claim, claim.verdict, claim.evidence) for claim in claims]
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def _check_claim(
    spec: Spec,
    comparisons: list[Comparison],
    tests: list[tuple[PairedTest | None, PairedTest | None]],
    absent: list[str],
    *,
    effect: bool,
) -> Claim:
    lacking = f" Not run: {join_words(absent)}." if absent else ""
    if not comparisons:
        return Claim(spec.artefact, spec.claim, "not run", lacking.strip() or "Not run.")
    as_claimed, reversed_ = ([_is_shown(pair[side]) for pair in tests] for side in (0, 1))
    groups = unique([comparison.group for comparison in comparisons])
    held, broken = 0, 0
    for group in groups:
        mine = [place for place, comparison in enumerate(comparisons) if comparison.group == group]
        held += all(as_claimed[place] for place in mine)
        broken += any(reversed_[place] for place in mine)
    verdict: Verdict = "not decided"
    if (2 * broken >= max(len(groups), spec.cases)) if spec.most else broken:  # what was not run may go either way
        verdict = "contradicted"
    elif not absent and ((2 * held > len(groups)) if spec.most else held == len(groups)):
        verdict = "supported"
    effects = [_effect(pair[0]) if effect else "" for pair in tests]
    evidence = _evidence(comparisons, sum(as_claimed), sum(reversed_), effects)
    if all(test is None for pair in tests for test in pair):
        evidence += " A single seed decides nothing."
    return Claim(spec.artefact, spec.claim, verdict, evidence + lacking)


def _is_shown(test: PairedTest | None) -> bool:
    return test is not None and test.p_holm < SIGNIFICANCE


def _effect(test: PairedTest | None) -> str:
    """How much left exceeds right by as it is claimed: the difference with its interval, and d_z where it has one."""
    if test is None:
        return ""
    size = "" if test.effect is None else f", d = {number(test.effect, 1)}"
    return f" (as claimed by {format_difference(test.difference)}, {number(test.low)} to {number(test.high)}{size})"


def _evidence(comparisons: list[Comparison], held: int, broken: int, effects: list[str]) -> str:
    order = sorted(range(len(comparisons)), key=lambda at: float((comparisons[at].left - comparisons[at].right).mean()))
    texts = [f"{comparison.text}{effect}" for comparison, effect in zip(comparisons, effects, strict=True)]
    n = len(comparisons)
    if n == 1:
        significance = (
            "significant as claimed" if held else "significant the other way" if broken else "not significant"
        )
        return f"{texts[0]}; {significance}."
    by_mean = sum(float((comparison.left - comparison.right).mean()) > 0 for comparison in comparisons)
    counted = f"As claimed in {by_mean} of {n} comparisons ({held} significant), significant the other way in {broken}."
    if n <= LISTED:
        return f"{counted} {'; '.join(texts)}."
    return f"{counted} Least as claimed: {texts[order[0]]}."
