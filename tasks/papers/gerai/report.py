"""What a report on GERAI shows beside what every report does."""

from __future__ import annotations

from tasks.papers.gerai import claims, differences, figures
from tasks.reporting.core.figures import ranking_by_length
from tasks.reporting.core.paper_report import PaperReport

REPORT = PaperReport(
    tables={
        "table2": figures.attacks,
        "table3": ranking_by_length,
        "table3-full": ranking_by_length,
        "table4": figures.ablation,
        "table5": figures.attackers,
    },
    figures={"figure2": figures.swept_figure},
    claims=claims.claims,
    differences=differences.REASONS,
    guide="data",
)
