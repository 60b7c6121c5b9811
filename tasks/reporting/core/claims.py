"""What a paper says about its tables and figures, judged on our numbers (`tasks.results.verdicts`), with evidence.

Tests over seeds speak of the users and items at hand, as the paper's averages do: seeds share the attacked users or the
held-out items, or split the same users anew (embeddings).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import get_args

import polars as pl

from tasks.evaluation.statistics import PairedTest
from tasks.reporting.core import comparison
from tasks.reporting.core.claim_specs import compared_with_floor, comparisons
from tasks.reporting.core.findings import paired_tests
from tasks.reporting.core.layout import count, format_difference, join_words, number
from tasks.reporting.core.paper_report import Arithmetic, PaperReport
from tasks.reporting.core.results import Results, unique
from tasks.results import verdicts
from tasks.results.claims import Claim, Computed, Readings, Row, Spec, Trend, Verdict
from tasks.results.verdicts import Compared, Comparison, Tested

COLUMNS = ("artefact", "claim", "verdict", "evidence")
NONE: Mapping[str, Arithmetic] = MappingProxyType({})
LISTED = 3
"""Up to so many comparisons are all told, of more only the least favourable one."""


def published_claims(results: Results, report: PaperReport, k: int) -> list[Claim]:
    """Every claim of the suite's paper, table by table; none without a paper.

    On other data than the paper's there are none either, unless the paper is tested there, too (`Paper.elsewhere`).

    Args:
        results: what the suite's runs produced.
        k: the cut-off of claims for which the paper names none.
    """
    paper = results.reproduced
    if paper is None or not (paper.elsewhere or comparison.is_printed(results, paper)):
        return []
    claims = evaluate(results, rows(results, report, k), report.arithmetic)
    order = [paper.data_table, paper.settings_table]
    order += [table.key for table in paper.tables] + [figure.key for figure in paper.figures]
    return sorted(claims, key=lambda claim: order.index(claim.artefact))


def rows(results: Results, report: PaperReport, k: int) -> list[Row]:
    """What the paper claims, for these results; `k` is the cut-off of claims for which it names none."""
    paper = results.layout
    known = {
        "k": k,
        "data": results.origin,
        "printed": comparison.is_printed(results, paper),
        "systems": [system.name for system in results.compared],
    }
    return paper.claim_rows(known | (report.numbers(results) if report.numbers else {}))


def evaluate(results: Results, claims: Sequence[Row], arithmetic: Mapping[str, Arithmetic] = NONE) -> list[Claim]:
    """Every claim with its verdict and a few sentences of numbers.

    arithmetic: the functions that claims of arithmetic name.
    """
    compared = [Compared(spec, *comparisons(results, spec)) for claim in claims for spec in _specs(claim)]
    decided = verdicts.decide(compared, partial(paired_tests, results))
    judged = (
        Claim(claim.spec.artefact, claim.spec.claim, verdict, _evidence(results, claim, tests))
        for claim, (verdict, tests) in zip(compared, decided, strict=True)
    )
    made = []
    for claim in claims:
        if isinstance(claim, Readings):
            made.append(_merge(claim, {reading: next(judged) for reading in claim.specs}))
        elif isinstance(claim, Computed):
            made.append(Claim(claim.artefact, claim.claim, *arithmetic[claim.computed_by](results)))
        else:
            made.append(claim if isinstance(claim, Claim) else next(judged))
    return made


def _specs(claim: Row) -> Sequence[Spec]:
    """What of a claim tests decide."""
    if isinstance(claim, Readings):
        return [*claim.specs.values()]
    return () if isinstance(claim, Computed | Claim) else (claim,)


def _merge(readings: Readings, judged: Mapping[str, Claim]) -> Claim:
    """One claim of all readings of a sentence."""
    verdict = verdicts.of_readings([claim.verdict for claim in judged.values()])
    evidence = [f"{_capital(reading)}: {of.verdict}. {_capital(of.evidence)}" for reading, of in judged.items()]
    return Claim(readings.artefact, readings.claim, verdict, " ".join(evidence))


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def verdict_counts(claims: Sequence[Claim]) -> str:
    """How many claims there are of each verdict, as running text."""
    given = [claim.verdict for claim in claims]
    counted = [f"{given.count(verdict)} {verdict}" for verdict in get_args(Verdict) if verdict in given]
    return join_words([text if text.startswith("1 ") else text.replace("depends", "depend") for text in counted])


def frame(claims: Sequence[Claim]) -> pl.DataFrame:
    """`claims.csv`: the columns `COLUMNS`, in the order of the paper."""
    rows = [(claim.artefact, claim.claim, claim.verdict, claim.evidence) for claim in claims]
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def _evidence(results: Results, claim: Compared, tests: Sequence[Tested]) -> str:
    """The numbers behind a verdict, in a few sentences."""
    made = claim.comparisons
    lacking = f" Not run: {join_words(claim.absent)}." if claim.absent else ""
    if not made:
        return (lacking.strip() or "Not run.") + compared_with_floor(results, claim.spec)
    effect = results.layout.overlap is not None
    effects = [_effect(test.test, steps=isinstance(claim.spec, Trend)) if effect else "" for test in tests]
    as_claimed, reversed_ = (sum(flags) for flags in zip(*((t.as_claimed, t.reversed) for t in tests), strict=True))
    evidence = _counted(made, as_claimed, reversed_, effects)
    single = sum(test.test is None for test in tests)
    evidence += f" Over {join_words(unique([_runs(results, len(comparison.left)) for comparison in made]))}."
    if single:
        evidence += " A single seed decides nothing." if single == len(tests) else f" Of a single seed: {single}."
    return evidence + lacking + compared_with_floor(results, claim.spec)


def _runs(results: Results, n: int) -> str:
    """What a test of n runs is over."""
    if results.n_splits == 1:
        return count(n, results.word_for_run)
    every = max(len(system.seeds) for system in results.compared)
    return count(n, "run") + (f" on {results.n_splits} splits" if n == every else " on the first split")


def _effect(test: PairedTest | None, *, steps: bool) -> str:
    """How much left exceeds right by as it is claimed: the difference with its interval, and d_z where it has one."""
    if test is None:
        return ""
    size = "" if test.effect is None else f", d = {number(test.effect, 1)}"
    per = " per step" if steps else ""
    if test.low == test.high:
        return f" (as claimed by {format_difference(test.difference)}{per} in every run, which no test decides)"
    return (
        f" (as claimed by {format_difference(test.difference)}{per}, {number(test.low)} to {number(test.high)}{size})"
    )


def _counted(comparisons: Sequence[Comparison], held: int, broken: int, effects: list[str]) -> str:
    order = sorted(range(len(comparisons)), key=lambda at: float((comparisons[at].left - comparisons[at].right).mean()))
    texts = [f"{comparison.text}{effect}" for comparison, effect in zip(comparisons, effects, strict=True)]
    n = len(comparisons)
    if n == 1:
        significance = (
            "significant as claimed" if held else "significant the other way" if broken else "not significant"
        )
        return f"{texts[0]}; {significance}."
    by_mean = sum(float((comparison.left - comparison.right).mean()) > 0 for comparison in comparisons)
    counted = f"As claimed in {by_mean} of {n} comparisons ({held} significant), significant the other way in {broken}"
    every = sum(len(of.left) > 1 and bool((of.left < of.lowest).all()) for of in comparisons)
    counted += f", the other way in every run in {every}." if every > broken else "."
    if n <= LISTED:
        return f"{counted} {'; '.join(texts)}."
    return f"{counted} Least as claimed: {texts[order[0]]}."
