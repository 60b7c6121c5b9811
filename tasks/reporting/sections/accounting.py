"""Published and rigorous accounting of one method side by side: what it claims, what follows, and what it is worth."""

from __future__ import annotations

from tasks.evaluation.statistics import summary
from tasks.reporting.core import ledger
from tasks.reporting.core.chart import Chart, Panel, Series
from tasks.reporting.core.figures import point_of, yardstick_levels
from tasks.reporting.core.layout import NUMBER, Cell, Heading, Row, Table, join_words, missing_cell, number
from tasks.reporting.core.published import Mode
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.section import Section, optional, paragraph
from tasks.reporting.sections import iterations


def section(results: Results, k: int) -> Section:
    """Every mode of accounting."""
    return Section(
        "accounting",
        "Published and rigorous accounting",
        [table(results, k), optional(chart(results, k), iterations.chart(results, k))],
        link="Accounting",
        about=paragraph(
            "The same method, its noise spent and counted in different ways. ∞ means that no finite guarantee "
            "follows; the reason stands at the right."
        ),
    )


def table(results: Results, k: int) -> Table | None:
    """Ranking, claimed and accounted budget of every mode; None where the paper's entry names none or none was run."""
    qualities = results.layout.qualities
    rows = []
    for mode, system in _run(results):
        cells = []
        for quality in qualities:
            values = results.values(system, quality.metric, quality.cutoff(k), mode.setting)
            measured = summary(values) if len(values) else None
            deviation = () if measured is None or measured.n < 2 else (f"± {number(measured.std, quality.digits)}",)
            cells.append(
                missing_cell("not run") if measured is None else Cell(number(measured.mean, quality.digits), deviation)
            )
        setting = "" if mode.setting == BASE else f", {mode.setting}"
        rows.append(
            Row(mode.name, [Cell(f"{system.label}{setting}", kind=""), *cells, *_budgets(results, mode, system)])
        )
    if not rows:
        return None
    headings = ["Mode", "system", *(quality.at(k) for quality in qualities), "claimed", "accounted", "why"]
    run = results.layout.words.run
    return Table(
        f"Published and rigorous accounting: mean ± standard deviation over {run}s, and ε of one run",
        [Heading(text, NUMBER if 1 < place < 2 + len(qualities) else "") for place, text in enumerate(headings)],
        rows,
    )


def chart(results: Results, k: int) -> Chart:
    """The utility of every mode beside the popularity lists."""
    utility = results.layout.utility
    modes = _run(results)
    series = [
        Series(mode.name, place, [point], line=False)
        for place, (mode, system) in enumerate(modes)
        if (point := point_of(results, system, utility.metric, k, mode.name, mode.setting, utility.digits))
    ]
    panel = Panel(
        f"{utility.at(k)}, {utility.spoken}",
        "",
        utility.at(k),
        series,
        yardstick_levels(results, k),
        [mode.name for mode, _ in modes],
    )
    return Chart(
        "chart-accounting",
        "What each mode of accounting costs",
        f"In the order of the table. Bars: 95 % intervals over {results.layout.words.run}s.",
        [panel] if series else [],
    )


def _run(results: Results) -> list[tuple[Mode, System]]:
    """The modes whose system and setting were run."""
    return [
        (mode, system)
        for mode in results.layout.modes
        if (system := results.find(mode.system)) is not None and mode.setting in results.settings(system)
    ]


def _budgets(results: Results, mode: Mode, system: System) -> list[Cell]:
    """Claimed and accounted, one line per protected thing, and why there is none."""
    lines = [line for line in ledger.lines_of(results, system) if line.setting == mode.setting]
    if not lines:
        return [missing_cell("no entry")] * 3
    budgets = ledger.budgets(lines)
    claimed = unique([f"{budget.what}: {budget.claimed}" for budget in budgets])
    accounted = unique([f"{budget.what}: {budget.accounted}" for budget in budgets])
    why: dict[str, list[str]] = {}
    for line in lines:
        if line.entry.reason:
            why.setdefault(line.entry.reason, []).append(line.protects)
    reasons = [f"{join_words(unique(protected))}: {reason}" for reason, protected in why.items()]
    return [Cell("", tuple(claimed), "stack"), Cell("", tuple(accounted), "stack"), Cell("", tuple(reasons), "reasons")]
