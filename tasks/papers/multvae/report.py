"""What a report on held-out users shows beside what every report does."""

from __future__ import annotations

from tasks.reporting.core.claim_specs import Claim, Spec
from tasks.reporting.core.figures import ranking_by_length
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results


def no_claims(_: Results, __: int) -> tuple[list[Spec], list[Claim]]:
    """The rows are of four papers, which were each compared with older ones: no sentence is of all of them."""
    return [], []


REPORT = PaperReport(tables={"table2": ranking_by_length}, figures={}, claims=no_claims, guide="scale")
