"""What a paper's reports need beside its description: the functions that its paper.yaml names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.reporting.core import comparison, layout
from tasks.reporting.core.chart import Chart
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Section
from tasks.results.claims import Reason, Verdict
from tasks.results.paper import Figure, Paper, Table

Arithmetic = Callable[[Results], tuple[Verdict, str]]
"""Verdict and evidence of a claim of arithmetic."""


@dataclass(frozen=True)
class PaperReport:
    """The functions of one paper, in the places of `Paper` that name them."""

    tables: dict[str, Callable[[Results, Table, int], Chart]]
    """Anchor of a table -> what draws it, at a cut-off where the paper names none; a table that is read needs none."""
    figures: dict[str, Callable[[Results, Figure, int], Chart]]
    """Key of a figure -> what draws it."""
    arithmetic: Mapping[str, Arithmetic]
    """Name -> what decides a claim of arithmetic."""
    numbers: Callable[[Results], dict[str, Any]] | None = None
    """What computes further names for the rows of claims."""
    statistics: Callable[[Results], layout.Table | None] | None = None
    """The paper's statistics of the data; None: what its protocol left of users, items and interactions."""
    counts: Callable[[Results], list[comparison.Count]] | None = None
    """The same and the settings of its method as numbers, for comparison.csv; None: as above."""
    settings: Callable[[Results], layout.Table | None] | None = None
    """The settings of its method; None where they are not shown."""
    lacking: Callable[[Results], dict[str, list[str]]] | None = None
    """Key of a table or figure -> why these data cannot give it, or a part of it; None where they all can."""
    sections: tuple[Callable[[Results, int], Section], ...] = ()
    """Sections that no other paper has, before what is published: of the results and the headline's cut-off."""
    differences: tuple[Reason, ...] = ()
    """Why pairs of methods are ordered otherwise than printed; of several that cover a pair the first counts."""
    guide: str = ""
    """Page of docs/ that says how its suites run on the official data; empty for the one of the paper's name."""

    @classmethod
    def of(cls, paper: Paper, functions: Mapping[str, Callable[..., Any]]) -> PaperReport:
        """Of a paper; functions: all that its file names, by these names."""
        return cls(
            tables={table.anchor: functions[table.chart] for table in paper.tables if table.chart},
            figures={figure.key: functions[figure.chart] for figure in paper.figures if figure.chart},
            arithmetic=functions,
            numbers=functions.get(paper.numbers),
            statistics=functions.get(paper.statistics),
            counts=functions.get(paper.counts),
            settings=functions.get(paper.settings),
            lacking=functions.get(paper.lacking),
            sections=tuple(functions[name] for name in paper.sections),
            differences=paper.reasons,
            guide=paper.guide,
        )

    def charts(self, results: Results, k: int) -> dict[str, Chart]:
        """Anchor of a table, or key of a figure -> its chart, where there is anything to draw.

        Args:
            k: the cut-off of a figure for which the paper names none.
        """
        tables = [table for table in results.layout.tables if table.anchor in self.tables]
        here = [table for table in tables if comparison.has_table(results, table)]
        drawn = {table.anchor: self.tables[table.anchor](results, table, k) for table in here}
        drawn |= {figure.key: self.figures[figure.key](results, figure, k) for figure in results.layout.figures}
        return {key: chart for key, chart in drawn.items() if chart.panels}
