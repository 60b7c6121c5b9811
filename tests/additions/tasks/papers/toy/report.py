"""What a report on the toy paper shows beside what every report does."""

from __future__ import annotations

from tasks.papers.toy import claims, figures
from tasks.reporting.core.figures import ranking_by_length
from tasks.reporting.core.paper_report import PaperReport

REPORT = PaperReport(
    tables={"table2": ranking_by_length, "table3": figures.attack},
    figures={"figure1": figures.by_length},
    claims=claims.claims,
)
