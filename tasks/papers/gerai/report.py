"""What a report on GERAI shows beside what every report does."""

from __future__ import annotations

from tasks.papers.gerai import claims, figures
from tasks.reporting.core import curves
from tasks.reporting.core.paper_report import PaperReport

REPORT = PaperReport(
    tables={
        "table2": figures.attacks,
        "table3": curves.ranking,
        "table3-full": curves.ranking,
        "table4": figures.ablation,
        "table5": figures.attackers,
    },
    figures={"figure2": figures.swept_figure},
    claims=claims.claims,
)
