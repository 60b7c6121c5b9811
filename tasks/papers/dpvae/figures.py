"""The charts beside DP-VAE's tables, and its Figure 3, from results to charts."""

from __future__ import annotations

from tasks.reporting.core import comparison
from tasks.reporting.core.chart import N_COLOURS, Chart, Level, Panel, Point, Series, sample_size
from tasks.reporting.core.figures import name_of, point_of
from tasks.reporting.core.layout import number
from tasks.reporting.core.results import Results, unique
from tasks.results.paper import Column, Table

PAPER = ", paper"
"""What the name of a printed line ends with."""
BARS = "Higher is better. Bars: 95 % intervals over seeds."
BUDGET = "epsilon_max"


def versions(results: Results, table: Table, _: int) -> Chart:
    """Every column as a panel: methods along the axis, their versions and the printed numbers side by side."""
    entries = [entry for entry in comparison.entries(results) if entry.table == table]
    names = [name for name in table.methods if any(_method(results, entry) == name for entry in entries)]
    kinds = unique([_kind(entry) for entry in entries if _method(results, entry) in names])
    drawn = [(kind, PAPER) for kind in kinds] if results.reproduced else []
    order = [version for kind in kinds for version in ((kind, ""), *((kind, PAPER),) * bool(drawn))]
    panels = []
    for column in table.parts[0].columns:
        of_column = [entry for entry in entries if entry.column == column and _method(results, entry) in names]
        points_of: dict[tuple[str, str], list[Point]] = {version: [] for version in order}
        for entry in of_column:
            kind, system, x = _kind(entry), entry.method.system, _method(results, entry)
            for source in ("", PAPER):
                if (kind, source) not in points_of:
                    continue
                if source and entry.printed is not None:
                    text = f"{entry.method.name}{PAPER}: {number(entry.printed, column.digits)}"
                    points_of[kind, source].append(Point(x, entry.printed, text))
                elif not source and system is not None:
                    point = point_of(results, system, column.metric, column.k, x, entry.method.setting, swept=True)
                    points_of[kind, source] += [point] if point else []
        series = [
            Series(_system_label(kind, source), kinds.index(kind) + N_COLOURS * bool(source), points, line=False)
            for (kind, source), points in points_of.items()
            if points
        ]
        if any(points_of[kind, ""] for kind in kinds):
            panels.append(Panel(column.label, "", column.label, series, _lists(results, column), names))
    marks = {(line.name, point.x): point.n for panel in panels for line in panel.series for point in line.points}
    runs = [n for n in marks.values() if n]
    sample = sample_size(len(runs), runs, "seed", "version")
    return Chart(f"chart-{table.anchor}", table.title, BARS, panels, sample=sample)


def budgets(results: Results, table: Table, _: int) -> Chart:
    """Every column as a panel: DP-VAE against the largest budget, beside the method without privacy."""
    entries = [entry for entry in comparison.entries(results) if entry.table == table]
    panels = []
    for column in table.parts[0].columns:
        swept = [
            (_value(entry), entry)
            for entry in entries
            if entry.column == column and entry.method.version is not None and _value(entry) > 0
        ]
        ours = [
            point_of(results, system, column.metric, column.k, value, entry.method.setting, swept=True)
            for value, entry in swept
            if (system := entry.method.system) is not None
        ]
        printed_points = [
            Point(value, entry.printed, f"{entry.method.name}{PAPER}: {number(entry.printed)}")
            for value, entry in swept
            if entry.printed is not None
        ]
        series = [Series("DP-VAE", 0, [point for point in ours if point])]
        series += [Series(f"DP-VAE{PAPER}", N_COLOURS, printed_points)] if printed_points else []
        levels = _lists(results, column)
        vae = results.find("vae")
        if vae is not None and len(values := results.values(vae, column.metric, column.k)):
            levels.append(Level(f"level of {vae.label}", float(values.mean()), "dashdot"))
        ticks = [value for value, _ in swept]
        if series[0].points:
            panels.append(Panel(column.label, name_of(BUDGET), column.label, series, levels, ticks, log=True))
    return Chart(f"chart-{table.anchor}", "Ranking by ε_max", f"ε_max on a log scale. {BARS}", panels)


def _method(results: Results, entry: comparison.Entry) -> str:
    version = entry.method.version
    if version is not None:
        return version.method
    label = "" if entry.method.system is None else entry.method.system.label
    return next((name for name, ours in results.layout.methods.items() if ours == label), entry.method.name)


def _system_label(kind: str, source: str) -> str:
    return f"{kind}{source}" if kind else source.removeprefix(", ") or "ours"


def _kind(entry: comparison.Entry) -> str:
    return "" if entry.method.version is None else entry.method.version.kind


def _value(entry: comparison.Entry) -> float:
    """The largest budget of a version; 0 where it has none."""
    version = entry.method.version
    key, _, value = (version.setting if version else "").partition("=")
    return float(value) if key == BUDGET else 0.0


def _lists(results: Results, column: Column) -> list[Level]:
    """How well the popularity lists rank by this column."""
    return [
        Level(f"level of {system.label}", float(values.mean()), kind)
        for system, kind in zip(results.yardsticks, ("dashed", "dotted"), strict=False)
        if len(values := results.values(system, column.metric, column.k))
    ]
