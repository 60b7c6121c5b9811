"""What a paper says about its tables and figures, held against our numbers.

A claim is one or more comparisons, each tested in both directions by a paired t-test over seeds, each direction at
2.5 %. A claim is supported if every comparison is significant as claimed: all of them must be, so none is corrected
(the intersection-union test). It is contradicted if a comparison is significant the other way after Holm's correction
over all of the claim's, or in another claim that has it, too. Otherwise it is not decided. A claim of what holds "in
most cases", "in general" or "generally" needs more than half of its cases, and is contradicted by half of them; there
both directions of all comparisons are corrected together. A sentence that can be read in several ways is one claim;
where the readings have different verdicts it depends on the reading, and where some were not run it is not decided.
Tests over seeds speak of the users and items at hand, as the paper's averages do: seeds share the attacked users or the
held-out items, or split the same users anew (embeddings).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import get_args

import polars as pl

from tasks.evaluation.statistics import PairedTest
from tasks.reporting.core import comparison
from tasks.reporting.core.claim_specs import Comparison, compared_with_floor, comparisons
from tasks.reporting.core.findings import ONE_SIDED, SIGNIFICANCE, paired_tests
from tasks.reporting.core.layout import count, format_difference, join_words, number
from tasks.reporting.core.paper_report import Arithmetic, PaperReport
from tasks.reporting.core.results import Results, unique
from tasks.results.claims import Claim, Computed, Readings, Row, Spec, Trend, Verdict

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
    tested = [spec for claim in claims for spec in _specs(claim)]
    judged = iter(_verdicts(results, tested))
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
    verdicts = unique([claim.verdict for claim in judged.values() if claim.verdict != "not run"])
    verdict: Verdict = "depends on the reading" if len(verdicts) > 1 else verdicts[0] if verdicts else "not run"
    if len(verdicts) == 1 and any(claim.verdict == "not run" for claim in judged.values()):
        verdict = "not decided"  # what was not run may go either way
    evidence = [f"{_capital(reading)}: {of.verdict}. {_capital(of.evidence)}" for reading, of in judged.items()]
    return Claim(readings.artefact, readings.claim, verdict, " ".join(evidence))


def _verdicts(results: Results, specs: Sequence[Spec]) -> list[Claim]:
    made = [(spec, *comparisons(results, spec)) for spec in specs]
    tested = [_tests(results, spec, compared) for spec, compared, _ in made]
    broken = {  # by any claim that has the comparison
        _key(comparison)
        for (_, compared, _), tests in zip(made, tested, strict=True)
        for comparison, test in zip(compared, tests, strict=True)
        if test.reversed
    }
    claims = []
    for (spec, compared, absent), own in zip(made, tested, strict=True):
        tests = [
            replace(test, reversed=_key(comparison) in broken) for comparison, test in zip(compared, own, strict=True)
        ]
        claim = _check_claim(results, spec, compared, tests, absent)
        claims.append(replace(claim, evidence=claim.evidence + compared_with_floor(results, spec)))
    return claims


@dataclass(frozen=True)
class _Tested:
    """A comparison: whether it is significant as claimed, and the other way; its test, None where it is of one run."""

    as_claimed: bool
    reversed: bool
    test: PairedTest | None


def _tests(results: Results, spec: Spec, comparisons: Sequence[Comparison]) -> list[_Tested]:
    places = [place for place, sides in enumerate(comparisons) if len(sides.left) > 1]
    claimed = {f"{place} as claimed": (comparisons[place].left, comparisons[place].right) for place in places}
    other = {f"{place} reversed": (comparisons[place].lowest, comparisons[place].left) for place in places}
    if spec.most:
        tests = paired_tests(results, claimed | other)
        shown = {name: test.p_holm < SIGNIFICANCE for name, test in tests.items()}
    else:
        tests, reversed_ = paired_tests(results, claimed), paired_tests(results, other)
        shown = {name: test.p < ONE_SIDED for name, test in tests.items()}
        shown |= {name: test.p_holm < ONE_SIDED for name, test in reversed_.items()}
    return [
        _Tested(
            shown.get(f"{place} as claimed", False),
            shown.get(f"{place} reversed", False),
            tests.get(f"{place} as claimed"),
        )
        for place in range(len(comparisons))
    ]


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _key(comparison: Comparison) -> tuple[bytes, bytes]:
    """What is compared, in whichever claim."""
    return comparison.left.tobytes(), comparison.lowest.tobytes()


def verdict_counts(claims: Sequence[Claim]) -> str:
    """How many claims there are of each verdict, as running text."""
    verdicts = [claim.verdict for claim in claims]
    counted = [f"{verdicts.count(verdict)} {verdict}" for verdict in get_args(Verdict) if verdict in verdicts]
    return join_words([text if text.startswith("1 ") else text.replace("depends", "depend") for text in counted])


def frame(claims: Sequence[Claim]) -> pl.DataFrame:
    """`claims.csv`: the columns `COLUMNS`, in the order of the paper."""
    rows = [(claim.artefact, claim.claim, claim.verdict, claim.evidence) for claim in claims]
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def _check_claim(
    results: Results, spec: Spec, comparisons: list[Comparison], tests: list[_Tested], absent: list[str]
) -> Claim:
    lacking = f" Not run: {join_words(absent)}." if absent else ""
    if not comparisons:
        return Claim(spec.artefact, spec.claim, "not run", lacking.strip() or "Not run.")
    as_claimed, reversed_ = [test.as_claimed for test in tests], [test.reversed for test in tests]
    groups = unique([comparison.group for comparison in comparisons])
    held, broken = 0, 0
    for group in groups:
        mine = [place for place, comparison in enumerate(comparisons) if comparison.group == group]
        held += all(as_claimed[place] for place in mine)
        broken += any(reversed_[place] for place in mine)
    verdict: Verdict = "not decided"
    if (2 * broken >= max(len(groups), spec.cases)) if spec.most else broken:  # what was not run may go either way
        verdict = "contradicted"
    elif 2 * held > max(len(groups), spec.cases) if spec.most else held == len(groups) and not absent:
        verdict = "supported"
    effect = results.layout.overlap is not None
    effects = [_effect(test.test, steps=isinstance(spec, Trend)) if effect else "" for test in tests]
    evidence = _evidence(comparisons, sum(as_claimed), sum(reversed_), effects)
    single = sum(test.test is None for test in tests)
    evidence += f" Over {join_words(unique([_runs(results, len(comparison.left)) for comparison in comparisons]))}."
    if single:
        evidence += " A single seed decides nothing." if single == len(tests) else f" Of a single seed: {single}."
    return Claim(spec.artefact, spec.claim, verdict, evidence + lacking)


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
    counted = f"As claimed in {by_mean} of {n} comparisons ({held} significant), significant the other way in {broken}"
    every = sum(len(of.left) > 1 and bool((of.left < of.lowest).all()) for of in comparisons)
    counted += f", the other way in every run in {every}." if every > broken else "."
    if n <= LISTED:
        return f"{counted} {'; '.join(texts)}."
    return f"{counted} Least as claimed: {texts[order[0]]}."
