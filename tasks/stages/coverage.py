"""What of the papers was measured, on which data: behind `dprec coverage` and the site, from data/results/ alone."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tasks import papers
from tasks.config.params import load
from tasks.datasets import FORMATS
from tasks.errors import DataError
from tasks.reporting import coverage, files
from tasks.reporting.core.results import label, unique
from tasks.reporting.page import headline_cutoff
from tasks.stages.common import REFERENCE, RESULTS
from tasks.stages.papers import describe
from tasks.stages.report import read, report_of

DOCS = Path("docs")
HEADINGS = ("paper", "artefact", "printed", *coverage.COLUMNS)
"""Of the rows that a terminal shows."""


def lines(collected: list[coverage.Evidence]) -> list[coverage.Line]:
    """Every printed table and every figure, counted over what suites have."""
    figures = {paper: describe(paper).figures for paper in papers.PAPERS}
    printed = files.read_published(REFERENCE / "paper_tables.csv")
    suites = load().suites
    planned = {of.suite: [label(name, of.suite) for name in suites[of.suite].experiments]
               for of in collected if of.suite in suites}  # fmt: skip
    return coverage.lines(collected, printed, figures, official_steps(), planned)


def committed() -> list[coverage.Line]:
    """The same over all of data/results/.

    Raises:
        DataError: there are no results, or a file is not what was written.
    """
    names = sorted(path.parent.name for path in RESULTS.glob("*/results.json"))
    if not names:
        raise DataError(f"{RESULTS}: no results; `dprec run SUITE` collects some")
    read_all = [(results, report) for results, report, _ in map(read, names)]
    collected = [coverage.evidence(results, report, headline_cutoff(results)) for results, report in read_all]
    return lines([of for of in collected if of is not None])


def rows() -> tuple[list[tuple[str, ...]], list[str]]:
    """Every table and figure under `HEADINGS` and their total, and notes on numbers that are not of real data.

    Raises:
        DataError: there are no results, or a file is not what was written.
    """
    counted = committed()
    notes = [
        f"{', '.join(filter(None, [line.paper, line.name, line.dataset]))}: {reason}"
        for line in counted
        for reason in line.reasons
    ]
    notes += unique([f"With the official data: {', '.join(line.steps)}" for line in counted if line.steps])
    return coverage.by_artefact(counted), notes


def official_steps() -> dict[tuple[str, str], tuple[str, ...]]:
    """Paper and published data set -> what to do with its official files, where params.yaml has a stand-in of it.

    The files are those in the format of the stand-in; the paper's page of the documentation says what to change.
    """
    steps = dict[tuple[str, str], tuple[str, ...]]()
    for dataset in load().datasets.values():
        if (original := dataset.replica_of or dataset.part_of) is not None:
            source = import_module(FORMATS[dataset.format]).SOURCE.name
            for paper in papers.PAPERS:
                page = DOCS / f"{report_of(paper).guide or paper}.md"
                steps[paper, original] = f"dprec data verify {source}", f"then {page}"
    return steps
