"""What a report on PrivSR shows beside what every report does."""

from __future__ import annotations

from tasks.papers.privsr import claims, differences, figures
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.sections import data_statistics

REPORT = PaperReport(
    tables={},
    figures={
        "figure3": figures.by_share,
        "figure4": figures.by_share,
        "figure5": figures.by_parameter,
    },
    claims=claims.claims,
    statistics=data_statistics.network,
    counts=data_statistics.network_counts,
    elsewhere=True,
    differences=differences.REASONS,
)
