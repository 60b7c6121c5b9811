"""The chart beside each published table, and the paper's own figure, from results to charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tasks.reporting import comparison, published
from tasks.reporting.chart import SMALL, Chart, Level, Panel, Point, Series
from tasks.reporting.figures import axis, name_of, point_of, series_of
from tasks.reporting.results import Results, System
from tasks.reporting.sweeps import NAMES, swept

SHORT = {
    "decision_tree": "tree",
    "naive_bayes": "Bayes",
    "knn": "kNN",
    "gaussian_process": "Gauss. proc.",
}
"""Names of attackers that fit below an axis."""
SPREAD = 0.7
"""Share of the room of an attacker over which the systems are spread."""
RIVAL = "rap"
"""The model whose ranking GERAI's Figure 2 is set beside."""


def beside_tables(results: Results, k: int) -> dict[str, Chart]:
    """Anchor of a table, or key of a figure -> its chart, where there is anything to draw.

    Args:
        results: what the suite's runs produced.
        k: the cut-off of a figure for which the paper names none.
    """
    layout = comparison.layout_of(results)
    drawn = {table.anchor: _CHARTS[table.anchor](results, table) for table in layout.tables}
    drawn |= {figure.key: swept_figure(results, figure, k) for figure in layout.figures}
    return {key: chart for key, chart in drawn.items() if chart.panels}


def attacks(results: Results, table: published.Table) -> Chart:
    """F1 of the neural attacker against the length of the list it sees."""
    panels = []
    for attribute in results.attributes():
        metric = f"attribute/{attribute}/neural/f1"
        panels.append(_curves(results, metric, f"Attribute: {attribute}", "F1", _levels(results, attribute)))
    return Chart(
        f"chart-{table.anchor}",
        "F1 by length of the list",
        "What the recommendations reveal is the rise above the attacker that sees the ratings alone; a curve on the "
        "majority line means that the attacker does no better than guessing.",
        [panel for panel in panels if panel.series],
    )


def ranking(results: Results, table: published.Table) -> Chart:
    """Hit and NDCG against the length of the list, under the protocol of the table."""
    first = {part.columns[0].metric: part.title for part in table.parts}
    protocol = table.parts[0].columns[0].protocol
    panels = [_curves(results, metric, f"{title}, {protocol}", title) for metric, title in first.items()]
    return Chart(
        f"chart-{table.anchor}",
        "Ranking by length of the list",
        "Higher is better. Bars: 95 % intervals over seeds.",
        [panel for panel in panels if panel.series],
    )


def ablation(results: Results, table: published.Table) -> Chart:
    """Every column of the table as a panel, the versions of the method side by side."""
    known = comparison.layout_of(results).methods
    systems = [system for name in table.methods if (system := results.with_model(known[name]))]
    ticks = [(float(place), system.label) for place, system in enumerate(systems)]
    panels = []
    for column in table.parts[0].columns:
        series = [
            replace(series_of(results, system, [point], line=False), muted=False)
            for place, system in enumerate(systems)
            if (point := point_of(results, system, column.metric, column.k, float(place)))
        ]
        levels = _levels(results, column.group) if column.better == "lower" else []
        if series:
            panels.append(Panel(column.label, "", column.label, series, levels, ticks))
    return Chart(
        f"chart-{table.anchor}",
        "What each noise does",
        "Hit and NDCG: higher is better; F1: lower is safer. Bars: 95 % intervals over seeds.",
        panels,
    )


def attackers(results: Results, table: published.Table) -> Chart:
    """F1 of every attacker of the table, the systems side by side."""
    panels = []
    for part in table.parts:
        ticks = [(float(place), SHORT[_attacker(column)]) for place, column in enumerate(part.columns)]
        series = []
        for index, system in enumerate(results.systems):
            shift = SPREAD * ((index + 0.5) / len(results.systems) - 0.5)
            points = [
                point_of(results, system, column.metric, column.k, place + shift)
                for place, column in enumerate(part.columns)
            ]
            series.append(series_of(results, system, [point for point in points if point], line=False))
        series = [one for one in series if one.points]
        majority = _levels(results, part.columns[0].group)[:1]
        if series:
            panels.append(Panel(part.title, "attacker", "F1", series, majority, ticks))
    return Chart(
        f"chart-{table.anchor}", "F1 of other attackers", "Lower is safer. Bars: 95 % intervals over seeds.", panels
    )


def swept_figure(results: Results, figure: published.Figure, k: int) -> Chart:
    """Per swept key: ranking beside the level of the rival, and F1 of the neural attacker on every attribute."""
    system = results.with_model(comparison.layout_of(results).methods[figure.method])
    rival = results.with_model(RIVAL)
    hit = "sampled-100/hit"
    above = []
    if rival is not None and len(values := results.values(rival, hit, k)):
        above = [Level(f"level of {rival.label}", float(values.mean()), "dashdot")]
    panels: list[Panel] = []
    if system is None:
        return Chart(f"chart-{figure.key}", "", "", panels)
    found = swept(results, system)
    for key in [*(name for name in NAMES if name in found), *(name for name in found if name not in NAMES)]:
        settings = found[key]
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
    ticks, place = axis(key, list(settings))
    points = [point_of(results, system, metric, k, place(value), setting) for value, setting in settings.items()]
    line = series_of(results, system, [point for point in points if point])
    if not line.points:
        return []
    return [Panel(title, name_of(key), title.partition(",")[0], [line], levels, ticks, size=SMALL)]


def _curves(results: Results, metric: str, title: str, label: str, levels: Sequence[Level] = ()) -> Panel:
    cutoffs = results.cutoffs(metric)
    found: list[Series] = []
    for system in results.systems:
        points: list[Point | None] = [point_of(results, system, metric, k, float(k)) for k in cutoffs]
        found.append(series_of(results, system, [point for point in points if point]))
    ticks = [(float(k), str(k)) for k in cutoffs]
    return Panel(title, "K", label, [one for one in found if one.points], levels, ticks, named=True)


def _levels(results: Results, attribute: str) -> list[Level]:
    """Majority guess, and the neural attacker on the ratings alone."""
    majority = results.majority(attribute)
    levels = [] if majority is None else [Level("majority guess", majority, "dashed")]
    metric = f"attribute/{attribute}/neural/f1"
    alone = [value for system in results.systems for value in results.values(system, metric, 0)]
    if alone:
        levels.append(Level("ratings alone (mean over systems and seeds)", sum(alone) / len(alone), "dotted"))
    return levels


def _attacker(column: published.Column) -> str:
    return column.metric.split("/")[2]


_CHARTS = {
    "table2": attacks,
    "table3": ranking,
    "table3-full": ranking,
    "table4": ablation,
    "table5": attackers,
}
"""Anchor of a table -> what draws it."""
