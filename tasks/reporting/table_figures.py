"""The chart beside each published table, and the paper's own figures."""

from __future__ import annotations

from tasks.reporting import comparison
from tasks.reporting.chart import Chart
from tasks.reporting.kits import KITS
from tasks.reporting.results import Results


def beside_tables(results: Results, k: int) -> dict[str, Chart]:
    """Anchor of a table, or key of a figure -> its chart, where there is anything to draw.

    Args:
        results: what the suite's runs produced.
        k: the cut-off of a figure for which the paper names none.
    """
    layout = comparison.layout_of(results)
    kit = KITS[layout.key]
    here = [table for table in layout.tables if comparison.has(results, table)]
    drawn = {table.anchor: kit.tables[table.anchor](results, table, k) for table in here}
    drawn |= {figure.key: kit.figures[figure.key](results, figure, k) for figure in layout.figures}
    return {key: chart for key, chart in drawn.items() if chart.panels}
