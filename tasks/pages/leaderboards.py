"""Leaderboards: a page for each data set under one split, with a table for each level, over all suites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from tasks.pages import cards, charts, terms
from tasks.pages.page import Page
from tasks.privacy.terms import Level
from tasks.results.cards import Card
from tasks.results.standings import SMALL_EPSILON, Board

INDEX = "leaderboards.html"
LIMITS: Mapping[Level, float] = {"user": SMALL_EPSILON}
"""Level -> the ε up to which its best system is named; at other levels any finite one."""
FEWEST = 2
"""Systems that a chart of utility by ε needs."""
Cards = Mapping[str, Card]
"""Experiment -> its card, of all compared systems of all suites."""


def address(dataset: str) -> str:
    """Where the leaderboard of a data set under one split lies."""
    return f"leaderboards/{dataset}.html"


def pages(boards: Sequence[Board], known: Cards) -> list[Page]:
    """A page for each data set and split, with all its metrics, and one that lists them."""
    made = []
    for name in dict.fromkeys(board.dataset for board in boards):
        here = address(name)
        drawn = [view(board, known, here) for board in boards if board.dataset == name]
        made.append(Page(here, "leaderboard.html.j2", {"boards": drawn}))
    return [*made, Page(INDEX, "leaderboards.html.j2", {"rows": [_summary(board) for board in boards]})]


def view(board: Board, known: Cards, here: str) -> dict[str, Any]:
    """What a template shows of a board; here: the address of its page."""
    return headline(board) | {
        "open": [_row(row, known, here, board) for row in board.open().to_dicts()],
        "levels": [
            {
                "level": level,
                "best": best(board, level),
                "chart": frontier(board, level),
                "rows": [_row(row, known, here, board) for row in board.at(level).to_dicts()],
            }
            for level in board.levels
        ],
    }


def best(board: Board, level: Level) -> dict[str, Any] | None:
    """The best private system of a level up to its limit; None without one."""
    return board.best(level, LIMITS.get(level, math.inf))


def headline(board: Board) -> dict[str, Any]:
    """What is said of a board before its tables."""
    return {
        "board": board,
        "kind": terms.english()["kinds"][board.kind],
        "ceiling": board.ceiling,
        "noisy": board.noisy,
        "suites": sorted(set(board.rows["suite"])),
    }


def frontier(board: Board, level: Level) -> Markup | None:
    """Utility against the finite ε of a level; None for too few systems."""
    points = [
        {"name": row["system"], "epsilon": row["accounted"], "utility": row["utility"], "audited": row["audited"]}
        for row in board.curve(level).to_dicts()
    ]
    if len({point["name"] for point in points}) < FEWEST:
        return None
    lines = [row for row in (board.ceiling, board.noisy) if row is not None]
    across = [{"name": row["system"], "utility": row["utility"]} for row in lines]
    title = f"{board.publication}: {board.measure.label}"
    return charts.frontier(title, points, across, x=f"{terms.english()['levels'][level]} ε", y=board.measure.label)


def spent_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row of `ENTRIES` that say what is spent at its level."""
    kinds = terms.english()["levels"]
    elsewhere = [kinds[level] for level in row["unbounded"] if level != row["level"]]
    return {name: row[name] for name in ("claimed", "accounted", "audited", "provable", "verdict")} | {
        "given": terms.conditions(tuple(row["given"] or ())),
        "elsewhere": elsewhere,
    }


def filters(row: Mapping[str, Any], *, lower: bool) -> dict[str, Any]:
    """What rows of a board are filtered by."""
    gain = 0.0 if row["difference"] is None else row["difference"] * (-1 if lower else 1)
    return {
        "epsilon": math.inf if row["unbounded"] or row["accounted"] is None else row["accounted"],
        "above": int(gain > 0),
        "real": int(row["kind"] == "real"),
    }


def _row(row: Mapping[str, Any], known: Cards, here: str, board: Board) -> dict[str, Any]:
    card = known[row["experiment"]]
    return spent_row(row) | {
        "system": row["system"],
        "system_href": cards.link(card, here),
        "suite": row["suite"],
        "suite_href": cards.suite_link(row["suite"], here),
        "utility": row["utility"],
        "utility_std": row["utility_std"],
        "n": row["n"],
        "difference": row["difference"],
        "row_kind": "reference" if row["noisy"] else "",
        "filters": filters(row, lower=board.measure.lower),
        "run": cards.run(card),
    }


def _summary(board: Board) -> dict[str, Any]:
    bests = {level: best(board, level) for level in board.levels}
    named = {f"best_{level}": row and row["system"] for level, row in bests.items()}
    return named | {f"{level}_utility": row and row["utility"] for level, row in bests.items()} | {
        "publication": board.publication,
        "split": board.dataset,
        "split_href": address(board.dataset),
        "kind": terms.english()["kinds"][board.kind],
        "metric": board.measure.label,
        "systems": board.base["experiment"].n_unique(),
        "ceiling": board.ceiling and board.ceiling["utility"],
        "noisy": board.noisy and board.noisy["utility"],
    }  # fmt: skip
