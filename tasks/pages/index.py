"""The first page: what this is, three doors, utility against user-level ε, and the five papers with a verdict each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import polars as pl

from tasks.pages import leaderboards, terms
from tasks.pages.page import Page
from tasks.privacy.terms import Level
from tasks.results.facts import BASE, KINDS
from tasks.results.standings import Board, Measure, outcome
from tasks.results.summary import Change

ADDRESS = "index.html"
LEVEL: Level = "user"
"""The level of the first page's charts."""


@dataclass(frozen=True)
class Reproduced:
    """What a suite has of its paper."""

    suite: str
    paper: str
    name: str
    """Of the paper, after its method."""
    kind: str
    measure: Measure
    entries: pl.DataFrame
    """`tasks.results.standings.ENTRIES`."""
    verdicts: Mapping[str, int]
    """Verdict -> claims."""


def page(
    boards: Sequence[Board],
    suites: Iterable[Reproduced],
    coverage: pl.DataFrame,
    changes: Sequence[Change] | None,
    since: str,
) -> Page:
    """The first page.

    Args:
        boards: of all suites.
        suites: those that reproduce a paper.
        coverage: of all papers (`tasks.results.coverage`).
        changes: what changed since a revision; None where none was asked for.
        since: that revision.
    """
    papers = _papers(suites)
    levels = [level for level in get_args(Level) if any(level in paper["spent"] for paper in papers)]
    counted = coverage.group_by("paper").agg(pl.col("printed", "real", "part", "near").sum())
    numbers = {row["paper"]: row for row in counted.to_dicts()}
    about = {"papers": papers, "levels": levels, "numbers": numbers, "changes": changes, "since": since}
    return Page(ADDRESS, "index.html.j2", about | {"charts": _charts(boards)})


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


def _papers(suites: Iterable[Reproduced]) -> list[dict[str, Any]]:
    """A row for each paper: its own method in the suite that has it on the best data."""
    known: dict[str, Reproduced] = {}
    for suite in sorted(suites, key=lambda of: (_own(of).is_empty(), KINDS.index(of.kind), -sum(of.verdicts.values()))):
        known.setdefault(suite.paper, suite)
    return [_paper(suite) for _, suite in sorted(known.items())]


def _own(suite: Reproduced) -> pl.DataFrame:
    """What the paper's own method spends at setting `base`."""
    return suite.entries.filter(pl.col("system") == suite.measure.own, pl.col("setting") == BASE)


def _paper(suite: Reproduced) -> dict[str, Any]:
    rows = _own(suite).to_dicts()
    first = rows[0] if rows else {}
    noisy = suite.entries.filter("noisy", pl.col("setting") == BASE)["utility"].to_list()
    return {
        "name": suite.name,
        "paper": suite.paper,
        "suite": suite.suite,
        "kind": terms.english()["kinds"][suite.kind],
        "measure": suite.measure,
        "spent": {row["level"]: row for row in rows if row["private"]},
        "utility": first.get("utility"),
        "noisy": noisy[0] if noisy else None,
        "outcome": outcome(rows),
        "verdicts": suite.verdicts,
        "tested": sum(suite.verdicts.values()) - suite.verdicts.get("not run", 0),
    }
