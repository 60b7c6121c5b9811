"""The committed results of a suite, read once per process, and what its page is made of."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tasks.reporting import page, site
from tasks.reporting.core.claim_specs import Claim
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results
from tasks.reporting.core.section import Section
from tasks.stages import report

ROOT = Path(__file__).resolve().parents[2]


@cache
def read(suite: str) -> tuple[Results, PaperReport, list[Claim]]:
    """As the stage `report` reads them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return report.read(suite)


@cache
def sections(suite: str) -> list[Section]:
    """Of the suite's page."""
    results, paper, claims = read(suite)
    return page.sections(results, paper, claims, k=page.headline_cutoff(results), docs="")


@cache
def drawn(suite: str) -> site.Suite:
    """The suite as the site has it, its page among it."""
    return site.suite(*read(suite))
