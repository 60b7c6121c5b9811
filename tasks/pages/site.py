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
    by, budget_rows = measure(results, paper), budgets(results)
    cards = tuple(card(results, system, by, budget_rows) for system in results.suite.compared)
    suite_pages = [*suite.pages(results, paper), *map(leaderboards.card_page, cards)]
    files = {page.address: render(page, results.revisions) for page in suite_pages}
    folder = f"cards/{results.suite.suite}"
    files |= {f"{folder}/{each.basic.experiment}.json": each.model_dump_json(indent=1) + "\n" for each in cards}
    return Made(
        results.suite,
        by,
        paper.name,
        dict(paper.methods),
        entries(results, by),
        cards,
        results.comparison,
        dict(results.claims["verdict"].value_counts().iter_rows()),
        results.revisions,
        files,
    )


def pages(
    suites: Sequence[Made], coverage: pl.DataFrame, changes: Sequence[Change] | None = None, since: str = ""
) -> list[Page]:
    """All pages that are not one suite's, and no documents.

    Args:
        suites: everything that is shown of each.
        coverage: how much of the printed numbers these have.
        changes: what changed since a revision; None where none was asked for.
        since: that revision.
    """
    tables = [(each.measure, each.entries) for each in suites]
    all_boards = boards(tables)
    papers = _papers(each for each in suites if each.facts.paper is not None)
    levels = [level for level in get_args(Level) if any(level in paper["spent"] for paper in papers)]
    counted = coverage.group_by("paper").agg(pl.col("printed", "real", "part", "near").sum())
    numbers = {row["paper"]: row for row in counted.to_dicts()}
    about = {"papers": papers, "levels": levels, "numbers": numbers, "changes": changes, "since": since}
    sources = {each.facts.source.dataset: each.facts.source for each in suites}
    return [
        Page("index.html", "index.html.j2", about | {"charts": _charts(all_boards)}),
        *leaderboards.pages(all_boards, {each.basic.experiment: each for suite in suites for each in suite.cards}),
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

    def order(each: Made) -> tuple[Any, ...]:
        method_rows = each.entries.filter("own", setting=BASE)
        return each.facts.paper, method_rows.is_empty(), KINDS.index(each.facts.kind), -sum(each.verdicts.values())

    by_paper = groupby(sorted(suites, key=order), key=lambda each: each.facts.paper)
    return [_paper([*each]) for _, each in by_paper]


def _paper(suites: Sequence[Made]) -> dict[str, Any]:
    """Utility and data are of the first suite; a level that it lacks, and claims, of the first suite that has them."""
    first, claims = suites[0], next((each for each in suites if each.verdicts), suites[0])
    kinds, budget_rows = terms.english()["kinds"], dict[str, dict[str, Any]]()
    for each in suites:
        for row in each.entries.filter("own", "private", setting=BASE).to_dicts():
            budget_rows.setdefault(row["level"], row | {"data": "" if each is first else kinds[each.facts.kind]})
    base = first.entries.filter(setting=BASE)
    method_rows, noisy = base.filter("own").to_dicts(), base.filter("noisy")["utility"].to_list()
    return {
        "name": first.name,
        "paper": first.facts.paper,
        "suite": first.facts.suite,
        "kind": kinds[first.facts.kind],
        "measure": first.measure,
        "spent": budget_rows,
        "utility": method_rows[0]["utility"] if method_rows else None,
        "noisy": noisy[0] if noisy else None,
        "outcome": outcome([*budget_rows.values()]),
        "claims_of": claims.facts.suite,
        "verdicts": claims.verdicts,
        "tested": sum(claims.verdicts.values()) - claims.verdicts.get("not run", 0),
    }


def document_pages(texts: Mapping[str, str]) -> dict[str, str]:
    """Address -> page of each document, and of the list of their sections.

    texts: name without suffix -> Markdown.
    """
    return {page.address: render(page) for page in documents.pages(texts)}
