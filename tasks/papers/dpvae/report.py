"""What a report on DP-VAE shows beside what every report does."""

from __future__ import annotations

from tasks.papers.dpvae import claims, differences, figures, preparation
from tasks.reporting.core.paper_report import PaperReport

REPORT = PaperReport(
    tables={
        "table5": figures.versions,
        "table6": figures.versions,
        "table7": figures.versions,
        "table8": figures.versions,
        "table9": figures.versions,
        "table10": figures.budgets,
        "table11": figures.versions,
    },
    figures={"figure3": figures.lengths},
    claims=claims.claims,
    differences=differences.REASONS,
    statistics=preparation.statistics,
    counts=preparation.counts,
    settings=preparation.settings,
    lacking=preparation.missing_artefacts,
    elsewhere=True,
)
