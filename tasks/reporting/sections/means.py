"""Predictors of ratings beside means of ratings, which learn no vectors: what a private one has to beat."""

from __future__ import annotations

from tasks.reporting.core import findings
from tasks.reporting.core.findings import Difference
from tasks.reporting.core.layout import (
    Cell,
    Heading,
    Row,
    Table,
    format_difference,
    join_words,
    missing_cell,
    name_some,
    number,
)
from tasks.reporting.core.results import MEANS, Results, System


def lead(results: Results, k: int) -> str:
    """Which systems lose to means without noise, and to how many of them; empty where there are none."""
    layout = results.layout
    utility, free = layout.utility, _noiseless_means(results, k)
    if not free:
        return ""
    level, best = min(free, key=lambda pair: -utility.sign * pair[0])
    differences = _differences(results, k)
    groups = [
        (verb, [of.system.label for of in differences if of.other == best.label and which(of)])
        for verb, which in (
            ("worse than that", lambda difference: difference.worse),
            ("better", lambda difference: difference.better),
            ("undecided", lambda difference: not difference.significant),
        )
    ]
    text = "; ".join(f"{verb}: {name_some(group)}" for verb, group in groups if group)
    head = (
        f"Means of ratings learn no vectors and cost next to nothing: the best, {best.label}, has {utility.at(k)} "
        f"{number(level, utility.digits)}"
    )
    sentences = [f"{head}.", *([f"{text[0].upper()}{text[1:]}."] if text else [])]
    names = {system.label for _, system in free}
    for name in layout.protecting:
        system = results.find(layout.methods[name])
        lost = [
            difference.other
            for difference in differences
            if system is difference.system and difference.worse and difference.other in names
        ]
        if system is not None and lost:
            sentences.append(f"{system.label} loses to {join_words(lost)}.")
    return " ".join(sentences)


def table(results: Results, k: int) -> Table | None:
    """Every system minus every kind of means; None in a suite without them."""
    if not _noiseless_means(results, k):
        return None
    utility, run = results.layout.utility, results.word_for_run
    differences = _differences(results, k)
    rows = []
    for system in results.compared:
        mine = {difference.other: difference for difference in differences if difference.system is system}
        if mine:
            rows.append(
                Row(
                    system.label, [_cell(mine.get(yardstick.label), utility.digits) for yardstick in results.yardsticks]
                )
            )
    return Table(
        f"{utility.at(k)} minus that of means: mean over {run}s and 95 % interval; bold: worse than the means",
        [Heading("System", ""), *(Heading(yardstick.label) for yardstick in results.yardsticks)],
        rows,
    )


def _differences(results: Results, k: int) -> list[Difference]:
    utility = results.layout.utility
    return findings.yardstick_differences(results, utility.metric, utility.cutoff(k), lower=utility.lower)


def _noiseless_means(results: Results, k: int) -> list[tuple[float, System]]:
    """Means without noise, and what they reach."""
    utility = results.layout.utility
    return [
        (float(values.mean()), system)
        for system in results.compared
        if system.name == MEANS[0] and len(values := results.values(system, utility.metric, utility.cutoff(k)))
    ]


def _cell(difference: Difference | None, digits: int) -> Cell:
    if difference is None:
        return missing_cell("not run")
    verdict = "worse" if difference.worse else "better" if difference.better else "undecided"
    span = f"{number(difference.low, digits)} to {number(difference.high, digits)}"
    return Cell(
        format_difference(difference.mean, digits), (span, verdict), "number found" if difference.worse else "number"
    )
