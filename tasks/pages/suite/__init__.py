"""The pages of one suite: a report of one screen, and a page for each kind of evidence behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from tasks.pages.page import Page
from tasks.pages.suite import ledger, overview
from tasks.reporting.core.published import Paper
from tasks.results.load import Results
from tasks.results.standings import measure


def pages(results: Results, paper: Paper) -> list[Page]:
    """All pages of a suite, the report first.

    paper: what the suite names, or the one whose metrics serve suites without.
    """
    suite, by = results.suite, measure(results, paper)
    reference = paper.reference if suite.paper else ""
    contents = {"index": overview.overview(results, by, reference), "ledger": ledger.ledger(results)}
    made = [
        Page(f"suites/{suite.suite}/{part}.html", f"suite/{part}.html.j2", slots) for part, slots in contents.items()
    ]
    return [with_header(page, results, made) for page in made]


def with_header(page: Page, results: Results, made: list[Page]) -> Page:
    """A page with what its header shows: its suite, and the other pages of it, in `made`."""
    parts = [PurePosixPath(other.address).stem for other in made]
    return replace(
        page,
        context={"suite": results.suite, "tabs": parts, "part": PurePosixPath(page.address).stem} | dict(page.context),
    )
