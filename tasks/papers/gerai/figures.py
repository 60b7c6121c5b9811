"""The charts beside GERAI's tables, and its Figure 2, from results to charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tasks.reporting.core.chart import SMALL, WIDE, Chart, Level, Panel
from tasks.reporting.core.figures import curves, logarithmic, marks_of, name_of, point_of, series_of
from tasks.reporting.core.results import Results, System
from tasks.reporting.core.sweeps import NAMES, swept
from tasks.results.paper import Column, Figure, Table

SHORT = {
    "decision_tree": "tree",
    "naive_bayes": "Bayes",
    "knn": "kNN",
    "gaussian_process": "Gauss. proc.",
}
"""Names of attackers that fit below an axis."""
RIVAL = "rap"
"""The model whose ranking GERAI's Figure 2 is set beside."""


def attacks(results: Results, table: Table, _: int) -> Chart:
    """F1 of the neural attacker against the length of the list it sees."""
    panels = []
    for attribute in results.attributes():
        metric = f"attribute/{attribute}/neural/f1"
        panels.append(curves(results, metric, f"Attribute: {attribute}", "F1", _levels(results, attribute)))
    return Chart(
        f"chart-{table.anchor}",
        "F1 by length of the list",
        "What the recommendations reveal is the rise above the attacker that sees the ratings alone; a curve on the "
        "majority line means that the attacker does no better than guessing.",
        [panel for panel in panels if panel.series],
    )


def ablation(results: Results, table: Table, _: int) -> Chart:
    """Every column of the table as a panel, the versions of the method side by side."""
    known = results.layout.methods
    systems = [system for name in table.methods if (system := results.find(known[name]))]
    ticks = [system.label for system in systems]
    panels = []
    for column in table.parts[0].columns:
        series = [
            replace(series_of(results, system, [point], line=False), muted=False)
            for system in systems
            if (point := point_of(results, system, column.metric, column.k, system.label))
        ]
        levels = _levels(results, column.group) if column.better == "lower" else []
        if series:
            panels.append(Panel(column.label, "", column.label, series, levels, ticks))
    return Chart(
        f"chart-{table.anchor}",
        "What each noise does",
        f"Hit and NDCG: higher is better; F1: lower is safer. Bars: 95 % intervals over {results.word_for_run}s.",
        panels,
        run=results.word_for_run,
    )


def attackers(results: Results, table: Table, _: int) -> Chart:
    """F1 of every attacker of the table, the systems side by side."""
    panels = []
    for part in table.parts:
        ticks = [SHORT[_attacker(column)] for column in part.columns]
        places = [(tick, column.metric, column.k) for tick, column in zip(ticks, part.columns, strict=True)]
        series = marks_of(results, results.compared, places)
        majority = _levels(results, part.columns[0].group)[:1]
        if series:
            panels.append(Panel(part.title, "attacker", "F1", series, majority, ticks, size=WIDE))
    run = results.word_for_run
    text = f"Lower is safer. Bars: 95 % intervals over {run}s."
    return Chart(f"chart-{table.anchor}", "F1 of other attackers", text, panels, run=run)


def swept_figure(results: Results, figure: Figure, k: int) -> Chart:
    """Per swept key: ranking beside the level of the rival, and F1 of the neural attacker on every attribute."""
    system = results.find(results.layout.methods[figure.method])
    rival = results.find_compared(RIVAL)
    hit = "sampled-100/hit"
    above = []
    if rival is not None and len(values := results.values(rival, hit, k, first_split=True)):
        above = [Level(f"level of {rival.label}", float(values.mean()), "dashdot")]
    panels: list[Panel] = []
    if system is None:
        return Chart(f"chart-{figure.key}", "", "", panels)
    sweeps = swept(results, system)
    for key in [*(name for name in NAMES if name in sweeps), *(name for name in sweeps if name not in NAMES)]:
        settings = sweeps[key]
        panels += _swept_panels(results, system, key, settings, k, (hit, f"Hit@{k}, sampled-100", above))
        for attribute in results.attributes():
            measured = (f"attribute/{attribute}/neural/f1", f"F1 {attribute}", _levels(results, attribute))
            panels += _swept_panels(results, system, key, settings, k, measured)
    return Chart(
        f"chart-{figure.key}",
        f"Sweeps of {system.label}",
        f"One key of {figure.method} varies, the others stay as in the setting base; budgets on a log scale. "
        f"F1 is the neural attacker's with the top {k}: lower is safer. Bars: 95 % intervals over seeds.",
        panels,
    )


def _swept_panels(
    results: Results,
    system: System,
    key: str,
    settings: dict[float, str],
    k: int,
    measured: tuple[str, str, Sequence[Level]],
) -> list[Panel]:
    metric, title, levels = measured
    points = [point_of(results, system, metric, k, value, setting, swept=True) for value, setting in settings.items()]
    line = series_of(results, system, [point for point in points if point])
    if not line.points:
        return []
    values, label = list(settings), title.partition(",")[0]
    return [Panel(title, name_of(key), label, [line], levels, values, size=SMALL, log=logarithmic(key, values))]


def _levels(results: Results, attribute: str) -> list[Level]:
    """Majority guess, and the neural attacker on the ratings alone."""
    majority = results.majority(attribute)
    levels = [] if majority is None else [Level("majority guess", majority, "dashed")]
    metric = f"attribute/{attribute}/neural/f1"
    alone = [value for system in results.compared for value in results.values(system, metric, 0)]
    if alone:
        levels.append(Level("ratings alone (mean over systems and seeds)", sum(alone) / len(alone), "dotted"))
    return levels


def _attacker(column: Column) -> str:
    return column.metric.split("/")[2]
