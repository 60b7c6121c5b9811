"""What a report on PrivSR shows beside what every report does."""

from __future__ import annotations

from tasks.papers.privsr import claims, figures
from tasks.reporting import data_statistics
from tasks.reporting.paper_report import PaperReport

REPORT = PaperReport(
    tables={},
    figures={
        "figure3": figures.by_share,
        "figure4": figures.by_share,
        "figure5": figures.by_parameter,
    },
    claims=claims.claims,
    statistics=data_statistics.network,
)
