"""Published and rigorous accounting of one method side by side: what it claims, what follows, and what it is worth."""

from __future__ import annotations

from dataclasses import replace

from tasks.evaluation.statistics import summary
from tasks.reporting.core import ledger
from tasks.reporting.core.chart import Chart, Panel, Point, Series
from tasks.reporting.core.figures import crossing_levels, point_of, yardstick_levels
from tasks.reporting.core.layout import NUMBER, Cell, Heading, Row, Table, join_words, missing_cell, number
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.section import Section, optional, paragraph
from tasks.reporting.core.sweeps import base_value, parse_setting
from tasks.reporting.core.words import wording
from tasks.results.paper import Mode


def section(results: Results, k: int) -> Section:
    """Every mode of accounting."""
    return Section(
        "accounting",
        "Published and rigorous accounting",
        [optional(chart(results, k), iterations_chart(results, k)), table(results, k)],
        link="Accounting",
        about=paragraph(
            "The same method, its noise spent and counted in different ways. ∞ means that no finite guarantee "
            "follows; the reason stands at the right."
        ),
    )


def table(results: Results, k: int) -> Table | None:
    """Ranking, claimed and accounted budget of every mode; None where the paper's entry names none or none was run."""
    qualities = results.layout.qualities
    rows, alone = [], _on_first_split(results)
    for mode, system in _run(results):
        cells = []
        for quality in qualities:
            values = results.values(system, quality.metric, quality.cutoff(k), mode.setting, first_split=alone)
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
    run = wording(results.layout).run if alone else results.word_for_run
    return Table(
        f"Published and rigorous accounting: mean ± standard deviation over {run}s, and ε of one run",
        [Heading(text, NUMBER if 1 < place < 2 + len(qualities) else "") for place, text in enumerate(headings)],
        rows,
    )


def chart(results: Results, k: int) -> Chart:
    """The utility of every mode beside the popularity lists."""
    utility = results.layout.utility
    modes, alone = _run(results), _on_first_split(results)
    points = [
        point_of(results, system, utility.metric, k, mode.name, mode.setting, utility.digits, swept=alone)
        for mode, system in modes
    ]
    series = [Series(modes[at][0].name, at, [point], line=False) for at, point in enumerate(points) if point]
    run = wording(results.layout).run if alone else results.word_for_run
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
        "Modes of accounting",
        f"In the order of the table{', on the first split' * (alone and results.n_splits > 1)}. "
        f"Bars: 95 % intervals over {run}s.",
        [panel] if series else [],
        of="mode",
        run=run,
    )


def _on_first_split(results: Results) -> bool:
    """Whether a mode is a sweep point, which runs on the first split alone: then all of them are of that one."""
    return any(mode.setting != BASE for mode, _ in _run(results))


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


METRIC = "iterations"


def iterations_chart(results: Results, k: int) -> Chart:
    """One panel per way of accounting, one line per ε; empty where no system was run with two lengths of training."""
    layout, panels = results.layout, []
    utility = layout.utility
    for mode in {mode.system: mode for mode in layout.modes}.values():
        system = results.find(mode.system)
        if system is None or system.label != mode.system:
            continue
        lines = _lines(results, system, k)
        series = [
            Series(f"ε = {epsilon:g}", place, points)
            for place, (epsilon, points) in enumerate(sorted(lines.items()))
            if len(points) > 1
        ]
        if series:
            levels = crossing_levels(results, k)
            panels.append(Panel(mode.name, "iterations", utility.at(k), series, levels, log=True))
    names = unique(sorted((line.name for panel in panels for line in panel.series), key=lambda name: float(name[4:])))
    same = [
        replace(panel, series=[replace(line, style=names.index(line.name)) for line in panel.series])
        for panel in panels
    ]
    return Chart(
        "chart-iterations",
        "Iterations by ε",
        "Noise is calibrated so that all iterations together spend ε (where the noise is the paper's, ε is what it "
        f"claims): more iterations, more noise in each. Iterations on a log scale. Bars: 95 % intervals over "
        f"{results.word_for_run}s.",
        same,
        of="budget",
        run=results.word_for_run,
    )


def _lines(results: Results, system: System, k: int) -> dict[float, list[Point]]:
    """ε -> the utility at each number of iterations, for settings that differ in nothing else."""
    utility, points_by_epsilon = results.layout.utility, dict[float, dict[float, Point]]()
    for setting in results.settings(system):
        keys = parse_setting(setting)
        if keys is None or not set(keys) <= {"epsilon", "epochs", "iterations_per_epoch"}:
            continue
        epsilon = keys.get("epsilon", base_value(system, "epsilon"))
        done = results.values(system, METRIC, 0, setting)
        if epsilon is None or not len(done) or done.mean() <= 0:
            continue
        x = float(done.mean())
        cutoff = utility.cutoff(k)
        point = point_of(results, system, utility.metric, cutoff, x, setting, utility.digits, swept=True)
        if point:
            text = f"{point.text}; {done.mean():g} iterations"
            points_by_epsilon.setdefault(epsilon, {}).setdefault(x, replace(point, text=text))
    return {epsilon: [points[x] for x in sorted(points)] for epsilon, points in points_by_epsilon.items()}
