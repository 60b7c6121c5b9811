"""What a paper's reports are made of: one entry per paper, in `tasks.papers.<paper>.report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.reporting.core import comparison, layout
from tasks.reporting.core.chart import Chart
from tasks.reporting.core.claim_specs import Claim, Readings, Spec
from tasks.reporting.core.differences import Reason
from tasks.reporting.core.published import Figure, Table
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Section


@dataclass(frozen=True)
class PaperReport:
    """What a paper's report needs beside its description."""

    tables: dict[str, Callable[[Results, Table, int], Chart]]
    """Anchor of a table -> what draws it, at a cut-off where the paper names none; a table that is read needs none."""
    figures: dict[str, Callable[[Results, Figure, int], Chart]]
    """Key of a figure -> what draws it."""
    claims: Callable[[Results, int], tuple[Sequence[Spec | Readings], list[Claim]]]
    """The claims that tests decide, and those already judged."""
    elsewhere: bool = False
    """Whether claims are also tested on data of which the paper prints nothing."""
    statistics: Callable[[Results], layout.Table | None] | None = None
    """The paper's statistics of the data; None: what its protocol left of users, items and interactions."""
    counts: Callable[[Results], list[comparison.Count]] | None = None
    """The same and the settings of its method as numbers, beside the printed ones in comparison.csv; None: as above."""
    settings: Callable[[Results], layout.Table | None] | None = None
    """The settings of its method; None where they are not shown."""
    lacking: Callable[[Results], dict[str, list[str]]] | None = None
    """Key of a table or figure -> why these data cannot give it, or a part of it; None where they all can."""
    differences: tuple[Reason, ...] = ()
    """Why pairs of methods are ordered otherwise than printed; of several that cover a pair the first counts."""
    guide: str = ""
    """Page of docs/ that says how its suites run on the official data; empty for the one of the paper's name."""
    sections: tuple[Callable[[Results, int], Section], ...] = ()
    """Sections that no other paper has, before what is published: of the results and the headline's cut-off."""

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
