"""Predictors of ratings beside means of ratings, which learn no vectors: what a private one has to beat."""

from __future__ import annotations

from tasks.reporting.core import findings
from tasks.reporting.core.findings import Difference
from tasks.reporting.core.layout import Cell, Heading, Row, Table, joined, missing, number, signed
from tasks.reporting.core.results import MEANS, Results, System


def lead(results: Results, k: int) -> str:
    """Which systems lose to means without noise, and to how many of them; empty where there are none."""
    layout = results.layout
    utility, free = layout.utility, _free(results, k)
    if not free:
        return ""
    level, best = min(free, key=lambda one: -utility.sign * one[0])
    beside = _beside(results, k)
    groups = [
        (verb, [one for one in beside if one.other == best.label and which(one)])
        for verb, which in (
            ("worse than that", lambda one: one.worse),
            ("better", lambda one: one.better),
            ("undecided", lambda one: not one.found),
        )
    ]
    told = [
        f"{verb}: {joined([f'{one.system.label} {signed(one.mean, utility.digits)}' for one in group])}"
        for verb, group in groups
        if group
    ]
    head = (
        f"Means of ratings learn no vectors and cost next to nothing: the best, {best.label}, has {utility.at(k)} "
        f"{number(level, utility.digits)}"
    )
    sentences = [f"{head}; {'; '.join(told)}." if told else f"{head}."]
    names = {system.label for _, system in free}
    for name in layout.protecting:
        system = results.named(layout.methods[name])
        lost = [one.other for one in beside if system is one.system and one.worse and one.other in names]
        if system is not None and lost:
            sentences.append(f"{system.label} loses to {joined(lost)}.")
    return " ".join(sentences)


def table(results: Results, k: int) -> Table | None:
    """Every system minus every kind of means; None in a suite without them."""
    if not _free(results, k):
        return None
    utility, run = results.layout.utility, results.layout.words.run
    beside = _beside(results, k)
    rows = []
    for system in results.compared:
        mine = {one.other: one for one in beside if one.system is system}
        if mine:
            rows.append(Row(system.label, [_cell(mine.get(one.label), utility.digits) for one in results.yardsticks]))
    return Table(
        f"{utility.at(k)} minus that of means: mean over {run}s and 95 % interval; bold: worse than the means",
        [Heading("System", ""), *(Heading(one.label) for one in results.yardsticks)],
        rows,
    )


def _beside(results: Results, k: int) -> list[Difference]:
    utility = results.layout.utility
    return findings.beside_yardsticks(results, utility.metric, utility.cutoff(k), lower=utility.lower)


def _free(results: Results, k: int) -> list[tuple[float, System]]:
    """Means without noise, and what they reach."""
    utility = results.layout.utility
    return [
        (float(values.mean()), system)
        for system in results.compared
        if system.name == MEANS[0] and len(values := results.values(system, utility.metric, utility.cutoff(k)))
    ]


def _cell(one: Difference | None, digits: int) -> Cell:
    if one is None:
        return missing("not run")
    verdict = "worse" if one.worse else "better" if one.better else "undecided"
    span = f"{number(one.low, digits)} to {number(one.high, digits)}"
    return Cell(signed(one.mean, digits), (span, verdict), "number found" if one.worse else "number")
