"""The figures of papers on the next item: sweeps with printed points beside ours, and versions side by side."""

from __future__ import annotations

from dataclasses import replace

from tasks.reporting.core import comparison
from tasks.reporting.core.chart import N_COLOURS, Chart, Panel, Point, Series
from tasks.reporting.core.figures import logarithmic, name_of, point_of, series_of, yardstick_levels
from tasks.reporting.core.layout import number
from tasks.reporting.core.results import Results
from tasks.reporting.core.sweeps import swept
from tasks.results.paper import Figure

PRINTED = "table2"
"""Where the paper prints what its methods reach at the default of every swept key."""
PAPER = ", paper"
"""What the name of a printed line ends with."""


def swept_figure(results: Results, figure: Figure, k: int) -> Chart:
    """One key varies: our means with their intervals, and what the paper prints."""
    layout = results.layout
    utility, key = layout.utility, figure.key_swept
    paper = results.reproduced
    printed = {} if paper is None else comparison.printed_values(results, paper)
    sweeps = {
        name: (system, settings)
        for name in figure.drawn
        if (system := results.find(layout.methods[name])) is not None
        and len(settings := swept(results, system).get(key, {})) > 1
    }
    values = sorted({value for _, settings in sweeps.values() for value in settings})
    series: list[Series] = []
    for name, (system, settings) in sweeps.items():
        points = [
            point_of(results, system, utility.metric, k, value, setting, utility.digits, swept=True)
            for value, setting in settings.items()
        ]
        series.append(replace(series_of(results, system, [point for point in points if point]), muted=False))
        style = series[-1].style + N_COLOURS  # the same colour, another marker
        printed_points = [
            Point(value, share, f"{name}, paper, {key} = {value:g}: {number(share, utility.digits)}")
            for value in values
            if (share := _share(printed, figure, name, value, f"{utility.label.lower()}@{k}")) is not None
        ]
        if printed_points:
            series.append(Series(f"{name}{PAPER}", style, printed_points))
    series = [curve for curve in series if curve.points]
    shown = any(curve.name.endswith(PAPER) for curve in series)
    note = " The paper's points are those it prints, of which Table 2 has the one at its default." if shown else ""
    title, levels = f"{utility.at(k)}, {utility.spoken}", yardstick_levels(results, k, swept=True)
    log = logarithmic(key, values)
    panel = Panel(title, name_of(key), utility.at(k), series, levels, values, log=log)
    return Chart(
        f"chart-{figure.key}",
        f"{utility.at(k)} by {name_of(key)}",
        f"All other keys stay as in the setting base. Bars: 95 % intervals over seeds.{note}",
        [panel] if series else [],
    )


def versions(results: Results, figure: Figure, k: int) -> Chart:
    """Versions of one method side by side, by recall and by MRR."""
    layout = results.layout
    systems = [(name, system) for name in figure.drawn if (system := results.find(layout.methods[name])) is not None]
    ticks = [name for name, _ in systems]
    panels = []
    for quality in layout.qualities:
        series = [
            Series(name, place, [point], line=False)
            for place, (name, system) in enumerate(systems)
            if (point := point_of(results, system, quality.metric, k, name, digits=quality.digits))
        ]
        if series:
            panels.append(Panel(quality.at(k), "", quality.at(k), series, (), ticks))
    run = results.word_for_run
    text = f"Higher is better. Bars: 95 % intervals over {run}s."
    return Chart(f"chart-{figure.key}", figure.title, text, panels, run=run)


def _share(
    printed: dict[tuple[str, str, str, str], float], figure: Figure, name: str, value: float, metric: str
) -> float | None:
    """What the paper prints at a value of the swept key: in the figure itself, or in its main table at the default."""
    share = printed.get((figure.key, name, f"{figure.key_swept}={value}", metric))
    return printed.get((PRINTED, name, "", metric)) if share is None and value == figure.default else share
