"""The site over all suites: what is drawn of one suite, and the pages over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, get_args

import polars as pl

from tasks.pages import documents, leaderboards, suite, terms
from tasks.pages.page import Page, render
from tasks.privacy.terms import Level
from tasks.results.budgets import budgets
from tasks.results.cards import Card, card
from tasks.results.facts import BASE, KINDS, Suite
from tasks.results.load import Results
from tasks.results.paper import Paper
from tasks.results.standings import Board, Measure, boards, entries, measure, outcome
from tasks.results.summary import Change

LEVEL: Level = "user"
"""The level of the first page's charts."""


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


def make(results: Results, paper: Paper) -> Made:
    """Everything that is shown of one suite.

    paper: whose tables, figures and claims its pages have.
    """
    by, spent = measure(results, paper), budgets(results)
    known = tuple(card(results, system, by, spent) for system in results.suite.compared)
    drawn = [*suite.pages(results, paper), *map(leaderboards.card_page, known)]
    files = {page.address: render(page, results.revisions) for page in drawn}
    folder = f"cards/{results.suite.suite}"
    files |= {f"{folder}/{of.basic.experiment}.json": of.model_dump_json(indent=1) + "\n" for of in known}
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
    tables = [(of.measure, of.entries) for of in made]
    drawn = boards(tables)
    papers = _papers(of for of in made if of.facts.paper is not None)
    levels = [level for level in get_args(Level) if any(level in paper["spent"] for paper in papers)]
    counted = coverage.group_by("paper").agg(pl.col("printed", "real", "part", "near").sum())
    numbers = {row["paper"]: row for row in counted.to_dicts()}
    about = {"papers": papers, "levels": levels, "numbers": numbers, "changes": changes, "since": since}
    sources = {of.facts.source.dataset: of.facts.source for of in made}
    return [
        Page("index.html", "index.html.j2", about | {"charts": _charts(drawn)}),
        *leaderboards.pages(drawn, {of.basic.experiment: of for suite in made for of in suite.cards}),
        leaderboards.cards_page(tables),
        Page("coverage.html", "coverage.html.j2", {"rows": coverage.to_dicts()}),
        Page("glossary.html", "glossary.html.j2", {"data": [*sources.values()]}),
    ]


def _charts(boards: Sequence[Board]) -> list[dict[str, Any]]:
    """Of each real data set the board with most points at `LEVEL`, with its chart."""
    chosen: dict[str, Board] = {}
    for board in boards:
        best = chosen.setdefault(board.publication, board)
        if board.kind == "real" and len(board.curve(LEVEL)) > len(best.curve(LEVEL)):
            chosen[board.publication] = board
    return [
        leaderboards.headline(board)
        | {"best": leaderboards.best(board, LEVEL), "svg": chart, "href": leaderboards.address(board.dataset)}
        for board in chosen.values()
        if board.kind == "real" and leaderboards.best(board, LEVEL) and (chart := leaderboards.frontier(board, LEVEL))
    ]


def _papers(suites: Iterable[Made]) -> list[dict[str, Any]]:
    """A row for each paper, of its suites: those that have its own method first, on the best data."""

    def order(made: Made) -> tuple[Any, ...]:
        own = made.entries.filter("own", setting=BASE)
        return made.facts.paper, own.is_empty(), KINDS.index(made.facts.kind), -sum(made.verdicts.values())

    by_paper = groupby(sorted(suites, key=order), key=lambda made: made.facts.paper)
    return [_paper([*made]) for _, made in by_paper]


def _paper(suites: Sequence[Made]) -> dict[str, Any]:
    """Utility and data are of the first suite; a level that it lacks, and claims, of the first suite that has them."""
    first, claims = suites[0], next((made for made in suites if made.verdicts), suites[0])
    kinds, spent = terms.english()["kinds"], dict[str, dict[str, Any]]()
    for made in suites:
        for row in made.entries.filter("own", "private", setting=BASE).to_dicts():
            spent.setdefault(row["level"], row | {"data": "" if made is first else kinds[made.facts.kind]})
    base = first.entries.filter(setting=BASE)
    own, noisy = base.filter("own").to_dicts(), base.filter("noisy")["utility"].to_list()
    return {
        "name": first.name,
        "paper": first.facts.paper,
        "suite": first.facts.suite,
        "kind": kinds[first.facts.kind],
        "measure": first.measure,
        "spent": spent,
        "utility": own[0]["utility"] if own else None,
        "noisy": noisy[0] if noisy else None,
        "outcome": outcome([*spent.values()]),
        "claims_of": claims.facts.suite,
        "verdicts": claims.verdicts,
        "tested": sum(claims.verdicts.values()) - claims.verdicts.get("not run", 0),
    }


def document_pages(texts: Mapping[str, str]) -> dict[str, str]:
    """Address -> page of each document, and of the list of their sections.

    texts: name without suffix -> Markdown.
    """
    return {page.address: render(page) for page in documents.pages(texts)}
