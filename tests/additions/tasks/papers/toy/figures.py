"""Drawings of the toy paper."""

from __future__ import annotations

from tasks.reporting.core.chart import Chart
from tasks.reporting.core.figures import curves
from tasks.reporting.core.published import Figure, Table
from tasks.reporting.core.results import Results


def attack(results: Results, table: Table, _: int) -> Chart:
    """F1 of the toy attacker against the length of the list that it sees."""
    panel = curves(results, table.parts[0].columns[0].metric, "F1, colour", "F1")
    return Chart(f"chart-{table.anchor}", table.title, "Lower is safer.", [panel])


def by_length(results: Results, figure: Figure, _: int) -> Chart:
    """Hit of every system against the length of the list."""
    utility = results.layout.utility
    panel = curves(results, utility.metric, utility.label, utility.label)
    return Chart(f"chart-{figure.key}", figure.title, "Bars: 95 % intervals over seeds.", [panel])
