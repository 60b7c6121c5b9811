"""What a report on DIPSGNN shows beside what every report does."""

from __future__ import annotations

from tasks.papers.dipsgnn import authors_code, claims, differences, figures
from tasks.reporting.core.figures import ranking_by_length
from tasks.reporting.core.paper_report import PaperReport

REPORT = PaperReport(
    tables={"table2": ranking_by_length, "table2-next-new": ranking_by_length},
    figures={
        "figure3": figures.swept_figure,
        "figure4": figures.swept_figure,
        "figure5": figures.swept_figure,
        "figure6": figures.swept_figure,
        "figure7": figures.versions,
    },
    claims=claims.claims,
    differences=differences.REASONS,
    elsewhere=True,
    sections=(authors_code.section,),
)
