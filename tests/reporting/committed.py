"""The committed results of a suite, read once per process, and what its page is made of."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from tasks.reporting import files, page, site
from tasks.reporting.core.paper_report import PaperReport
from tasks.reporting.core.results import Results, Run
from tasks.reporting.core.section import Section
from tasks.results.claims import Claim
from tasks.stages import report

ROOT = Path(__file__).resolve().parents[2]


@cache
def read(suite: str) -> tuple[Results, PaperReport, list[Claim]]:
    """As the stage `report` reads them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return report.read(suite)


def runs(suite: str, folder: Path) -> tuple[Run, ...]:
    """What git has of the runs of a suite, by way of a file in `folder`.

    `make demo` on another kind of processor leaves a record of its own in the tree.
    """
    command = ["git", "show", f":data/results/{suite}/provenance.json"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    record = folder / f"{suite}.json"
    record.write_bytes(shown.stdout)
    return files.read_runs(record)


@cache
def sections(suite: str) -> list[Section]:
    """Of the suite's page."""
    results, paper, claims = read(suite)
    return page.sections(results, paper, claims, k=page.headline_cutoff(results), docs="")


@cache
def drawn(suite: str) -> site.Suite:
    """The suite as the site has it, its page among it."""
    return site.suite(*read(suite))
