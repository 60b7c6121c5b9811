"""How many iterations a total ε can afford: what noise calibrated to it leaves, by the number of iterations."""

from __future__ import annotations

from dataclasses import replace

from tasks.reporting.core.chart import Chart, Panel, Point, Series
from tasks.reporting.core.figures import crossing_levels, point_of
from tasks.reporting.core.results import Results, System, unique
from tasks.reporting.core.sweeps import base_value, parse_setting

METRIC = "iterations"


def chart(results: Results, k: int) -> Chart:
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
        "How many iterations a given total ε can afford",
        "Noise is calibrated so that all iterations together spend ε (where the noise is the paper's, ε is what it "
        f"claims): more iterations, more noise in each. Iterations on a log scale. Bars: 95 % intervals over "
        f"{layout.words.run}s.",
        same,
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
        point = point_of(results, system, utility.metric, utility.cutoff(k), x, setting, utility.digits)
        if point:
            text = f"{point.text}; {done.mean():g} iterations"
            points_by_epsilon.setdefault(epsilon, {}).setdefault(x, replace(point, text=text))
    return {epsilon: [points[x] for x in sorted(points)] for epsilon, points in points_by_epsilon.items()}
