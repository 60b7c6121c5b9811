"""Figures of a paper, drawn of our runs: a metric of each method along one key, the other keys held."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from tasks.results.facts import BASE
from tasks.results.load import Results, first_split
from tasks.results.paper import Figure, Panel, Paper
from tasks.results.reproduction import find
from tasks.results.settings import along


def drawn(results: Results, paper: Paper) -> list[dict[str, Any]]:
    """`figure`, and `panels` with their `points`: `series`, `x`, `y`, `low` and `high` (the least and largest run).

    Panels without a line of two points are left out, and figures without a panel.
    """
    made = []
    for figure in paper.figures:
        panels = [{"panel": panel, "points": list(_points(results, paper, figure, panel))} for panel in figure.panels]
        shown = [of for of in panels if of["points"]]
        if shown:
            made.append({"figure": figure, "panels": shown})
    return made


def _points(results: Results, paper: Paper, figure: Figure, panel: Panel) -> Iterator[dict[str, Any]]:
    """The points of all methods with two of them at least, on the first split, which all settings have."""
    for method in figure.drawn:
        experiment = find(results, paper.methods.get(method, method))
        if panel.key:
            bases = {panel.key: panel.base} | paper.bases
            of = along(results, results.system(experiment), panel.key, dict(panel.at), bases) if experiment else {}
            held = {x: (setting, panel.k) for x, setting in of.items()}
        else:
            held = {float(k): (BASE, k) for k in results.cutoffs(panel.metric)}
        points = []
        for x, (setting, k) in sorted(held.items()):
            if runs := first_split(results.values(experiment, panel.metric, k, setting)).values():
                points.append({"series": method, "x": x, "y": fmean(runs), "low": min(runs), "high": max(runs)})
        if len(points) > 1:
            yield from points
