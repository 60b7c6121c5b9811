"""The pages of one suite: a report of one screen, and a page for each kind of evidence behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from tasks.pages.page import Page
from tasks.pages.suite import attacks, reproduction
from tasks.pages.suite.data import data
from tasks.pages.suite.ledger import ledger
from tasks.pages.suite.overview import overview
from tasks.pages.suite.provenance import provenance
from tasks.pages.suite.training import training
from tasks.results.load import Results
from tasks.results.paper import Paper
from tasks.results.standings import entries, measure


def pages(results: Results, paper: Paper) -> list[Page]:
    """All pages of a suite, the report first.

    paper: what the suite names, or the one whose metrics serve suites without.
    """
    by, suite = measure(results, paper), results.suite.suite
    table = entries(results, by)
    contents = {
        "index": overview(results, by, table, paper.reference if results.suite.paper else ""),
        "ledger": ledger(results),
        "training": training(results, by, table, paper.validation),
        "data": data(results),
        "provenance": provenance(results),
    }
    made = [Page(f"suites/{suite}/{part}.html", f"suite/{part}.html.j2", slots) for part, slots in contents.items()]
    made[2:2] = [*attacks.pages(results), *reproduction.pages(results, paper)]
    parts = [PurePosixPath(page.address).stem for page in made]
    header = {"suite": results.suite, "tabs": parts}
    return [
        replace(page, context=header | {"part": part, **page.context}) for part, page in zip(parts, made, strict=True)
    ]
