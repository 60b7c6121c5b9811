"""What a report on DP-CroSUE shows beside what every report does."""

from __future__ import annotations

from tasks.papers.dpcrosue import claims, differences, figures
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.sections import networks

REPORT = PaperReport(
    tables={
        "table2": figures.ratios,
        "table3": figures.scores,
        "table4": figures.tradeoff_chart,
    },
    figures={"figure3": figures.budgets},
    claims=claims.claims,
    differences=differences.REASONS,
    statistics=networks.statistics,
    counts=networks.counts,
    lacking=networks.missing_artefacts,
)
