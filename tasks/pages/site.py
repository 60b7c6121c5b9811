"""The site over all suites: what is drawn of one suite, and the pages over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.pages import cards, documents, index, leaderboards, suite, terms
from tasks.pages.index import Reproduced
from tasks.pages.page import Page, render
from tasks.results.cards import Card, card
from tasks.results.facts import BASE, Suite
from tasks.results.load import Results
from tasks.results.paper import Paper
from tasks.results.standings import Measure, boards, entries, measure
from tasks.results.summary import Change

GLOSSARY = "glossary.html"


@dataclass(frozen=True)
class Made:
    """What the pages over all suites need of one, and its own files."""

    facts: Suite
    measure: Measure
    name: str
    """What its paper is called."""
    methods: Mapping[str, str]
    """Its paper's names of methods -> labels of systems."""
    entries: pl.DataFrame
    cards: tuple[Card, ...]
    comparison: pl.DataFrame
    verdicts: Mapping[str, int]
    revisions: tuple[str, ...]
    files: Mapping[str, str]
    """Address -> page, or JSON."""


def folder(name: str) -> str:
    """Where the pages of a suite lie."""
    return f"suites/{name}"


def make(results: Results, paper: Paper) -> Made:
    """Everything that is shown of one suite.

    paper: whose tables, figures and claims its pages have.
    """
    by = measure(results, paper)
    known = tuple(card(results, system, by) for system in results.suite.compared)
    drawn = [*suite.pages(results, paper), *map(cards.page, known)]
    files = {page.address: render(page, results.revisions) for page in drawn}
    files |= {cards.address(of, "json"): of.model_dump_json(indent=1) + "\n" for of in known}
    return Made(
        results.suite,
        by,
        paper.name,
        dict(paper.methods),
        entries(results, by),
        known,
        results.comparison,
        dict(results.claims["verdict"].value_counts().iter_rows()),
        results.revisions,
        files,
    )


def pages(
    made: Sequence[Made], coverage: pl.DataFrame, changes: Sequence[Change] | None = None, since: str = ""
) -> list[Page]:
    """All pages that are not one suite's, and no documents.

    Args:
        made: of every suite.
        coverage: how much of the printed numbers these have.
        changes: what changed since a revision; None where none was asked for.
        since: that revision.
    """
    drawn = boards((of.measure, of.entries) for of in made)
    known = {of.basic.experiment: of for suite in made for of in suite.cards}
    reproduced = [
        Reproduced(of.facts.suite, of.facts.paper, of.name, of.facts.kind, of.measure, of.entries, of.verdicts)
        for of in made
        if of.facts.paper is not None
    ]
    sources = {of.facts.source.dataset: of.facts.source for of in made}
    return [
        index.page(drawn, reproduced, coverage, changes, since),
        *leaderboards.pages(drawn, known),
        cards.index([*known.values()], [row for of in made for row in _private(of, known)]),
        Page("coverage.html", "coverage.html.j2", {"rows": coverage.to_dicts()}),
        Page(
            GLOSSARY,
            "glossary.html.j2",
            {"data": [*sources.values()]},
        ),
    ]


def _private(of: Made, known: Mapping[str, Card]) -> list[dict[str, Any]]:
    """A row for each system and level of a suite at which it is private."""
    private = of.entries.filter("private", pl.col("setting") == BASE)
    return [
        leaderboards.spent_row(row)
        | {
            "system": row["system"],
            "system_href": cards.link(known[row["experiment"]], cards.INDEX),
            "suite": row["suite"],
            "suite_href": cards.suite_link(row["suite"], cards.INDEX),
            "level": row["level"],
            "kind": terms.english()["kinds"][row["kind"]],
            "metric": of.measure.label,
            "utility": row["utility"],
            "difference": row["difference"],
            "filters": leaderboards.filters(row, lower=of.measure.lower),
        }
        for row in private.to_dicts()
    ]


def document_pages(texts: Mapping[str, str]) -> dict[str, str]:
    """Address -> page of each document, and of the list of their sections.

    texts: name without suffix -> Markdown.
    """
    return {page.address: render(page) for page in documents.pages(texts)}
