"""What each ε buys: systems against their budget, beside what ranks without any, with claimed and accounted apart.

Where the noise is the paper's, the ε on the axis is what the paper claims for it, and the accounted one stands beside
it; where it is calibrated, both are one.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from tasks.evaluation.statistics import summary
from tasks.reporting.core import ledger
from tasks.reporting.core.chart import WIDE, Chart, Panel
from tasks.reporting.core.figures import crossing_levels, point_of, series_of
from tasks.reporting.core.layout import Cell, Heading, Row, Table, join_words, missing_cell, number
from tasks.reporting.core.results import Results, System, unique
from tasks.reporting.core.section import Section, paragraph
from tasks.reporting.core.sweeps import settings_along
from tasks.reporting.core.words import wording

ROUNDED = 1.01
"""By which factor an accounted ε may exceed the one that a system was run at and still be called the same."""


def section(results: Results, k: int) -> Section:
    """Utility against ε."""
    return Section(
        "tradeoff",
        "Utility by ε",
        [chart(results, k), numbers] if (numbers := table(results, k)) else [],
        about=paragraph(
            "The figure to read first: a private system is worth its noise {}. A claimed ε is no guarantee where the "
            "accounted one is larger or none.",
            wording(results.layout).worth,
        ),
    )


def chart(results: Results, k: int) -> Chart:
    """The utility of every system at every ε that was run; empty where no system has two."""
    utility, run = results.layout.utility, results.word_for_run
    runs = _run(results)
    values = _budgets(runs)
    series, notes = [], []
    for system, settings in runs:
        points = []
        for value, setting in settings.items():
            point = point_of(results, system, utility.metric, k, value, setting, utility.digits, swept=True)
            if point:
                accounted = _accounted(results, system, setting)
                points.append(replace(point, text=f"{point.text}; ε = {value:g}, accounted: {accounted}"))
        if points:
            line = series_of(results, system, points)
            claimed = _is_published(system)
            series.append(replace(line, name=f"{line.name}, claimed" if claimed else line.name, muted=False))
            totals = [ledger.total_epsilon(results, system, setting) for setting in settings.values()]
            spent = unique([_accounted(results, system, setting) for setting in settings.values()])
            if claimed:
                notes.append(f"{system.label}'s ε is claimed; accounted: {join_words(spent)}")
            elif any(total is None or total > ROUNDED * value for total, value in zip(totals, settings, strict=True)):
                notes.append(
                    f"{system.label} was run at this ε; accounted for all that can be seen: "
                    + " to ".join(unique([ledger.format_budget(totals[0]), ledger.format_budget(totals[-1])]))
                )
    others = " The ε of the others is accounted." if len(notes) < len(series) else ""
    note = f" {'; '.join(notes)}.{others}" if notes else ""
    title, levels = f"{utility.at(k)}, {utility.spoken}", crossing_levels(results, k)
    panel = Panel(title, "ε", utility.at(k), series, levels, values, named=True, size=WIDE, log=True)
    return Chart(
        "chart-tradeoff",
        f"{utility.at(k)} by ε",
        f"ε on a log scale. Bars: 95 % intervals over {run}s.{note}",
        [panel] if series else [],
        run=run,
    )


def table(results: Results, k: int) -> Table | None:
    """The numbers of the chart, with the accounted budget below each; None where there is no chart."""
    utility, run = results.layout.utility, results.word_for_run
    runs = _run(results)
    values = _budgets(runs)
    if not runs:
        return None
    rows = []
    for system, settings in runs:
        cells = []
        for value in values:
            setting = settings.get(value)
            ys = () if setting is None else results.values(system, utility.metric, k, setting, first_split=True)
            if setting is None or not len(ys):
                cells.append(missing_cell("not run"))
                continue
            measured = summary(ys)
            deviation = f" ± {number(measured.std, utility.digits)}" if measured.n > 1 else ""
            accounted, _, delta = _accounted(results, system, setting).partition(", ")
            lines = (f"accounted: {accounted}", *([delta] if delta else []))
            cells.append(Cell(f"{number(measured.mean, utility.digits)}{deviation}", lines))
        rows.append(Row(f"{system.label}, claimed ε" if _is_published(system) else system.label, cells))
    return Table(
        f"{utility.at(k)} by ε: mean ± standard deviation over {run}s, and the ε that follows from what was run",
        [Heading("System", ""), *(Heading(f"ε = {value:g}") for value in values)],
        rows,
    )


def _run(results: Results) -> list[tuple[System, dict[float, str]]]:
    """System, and value -> setting, for the systems of the figure that were run at two values or more."""
    return [
        (system, {value: setting for value, setting in settings.items() if value > 0})
        for sweep in results.layout.budget_sweeps
        if (system := results.find(sweep.system)) is not None
        and len(settings := settings_along(results, system, sweep.key)) > 1
    ]


def _budgets(runs: list[tuple[System, dict[float, str]]]) -> list[float]:
    """Every ε at which any of them was run."""
    return sorted({value for _, settings in runs for value in settings})


def _accounted(results: Results, system: System, setting: str) -> str:
    """The accounted budgets of one setting: of each protected thing the weakest that the ledger has for it."""
    entries = [line.entry for line in ledger.lines_of(results, system) if line.setting == setting]
    weakest = {}
    for entry in sorted(entries, key=lambda entry: inf if entry.accounted_epsilon is None else entry.accounted_epsilon):
        weakest[entry.protects] = entry
    budgets = {protects: ledger.accounted_budget(entry) for protects, entry in weakest.items()}
    if len(set(budgets.values())) > 1:
        return join_words([f"{text} for {protects}s" for protects, text in sorted(budgets.items())])
    return next(iter(budgets.values()), "no entry")


def _is_published(system: System) -> bool:
    """Whether some noise is what the paper prescribes, so that its ε is a claim."""
    return any(
        spent.entry.accounting != "rigorous" and spent.entry.accounted_epsilon != spent.entry.claimed_epsilon
        for spent in system.spent
    )
