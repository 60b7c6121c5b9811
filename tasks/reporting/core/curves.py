"""Curves by length of the list: one line per system, and the charts that need nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.reporting.core import published
from tasks.reporting.core.chart import Chart, Level, Panel, Point, Series
from tasks.reporting.core.figures import point_of, series_of
from tasks.reporting.core.results import Results


def ranking(results: Results, table: published.Table, _: int) -> Chart:
    """Every ranking metric of the table against the length of the list, under its protocol."""
    first = {column.metric: f"{column.group}@K" for part in table.parts for column in part.columns}
    protocol = table.parts[0].columns[0].protocol
    panels = [curves(results, metric, f"{title}, {protocol}", title) for metric, title in first.items()]
    return Chart(
        f"chart-{table.anchor}",
        "Ranking by length of the list",
        "Higher is better. Bars: 95 % intervals over seeds.",
        [panel for panel in panels if panel.series],
    )


def curves(results: Results, metric: str, title: str, label: str, levels: Sequence[Level] = ()) -> Panel:
    """A metric of every system against the length of the list."""
    cutoffs = results.cutoffs(metric)
    found: list[Series] = []
    for system in results.compared:
        points: list[Point | None] = [point_of(results, system, metric, k, float(k)) for k in cutoffs]
        found.append(series_of(results, system, [point for point in points if point]))
    ticks = [(float(k), str(k)) for k in cutoffs]
    return Panel(title, "K", label, [one for one in found if one.points], levels, ticks, named=True)
