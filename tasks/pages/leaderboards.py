"""Leaderboards and privacy cards: a page for each data set under one split, one for each system, and lists of both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import polars as pl

from tasks.pages import charts, terms
from tasks.pages.page import Page, relative
from tasks.privacy.terms import Level
from tasks.results.cards import Card
from tasks.results.facts import BASE, KINDS
from tasks.results.standings import SMALL_EPSILON, Board, Measure

INDEX, CARDS = "leaderboards.html", "cards.html"
LIMITS: Mapping[Level, float] = {"user": SMALL_EPSILON}
"""Level -> the ε up to which its best system is named; at other levels any finite one."""
FEWEST = 2
"""Systems that a chart of utility by ε needs."""


def address(dataset: str) -> str:
    """Where the leaderboard of a data set under one split lies."""
    return f"leaderboards/{dataset}.html"


def pages(boards: Sequence[Board], cards: Mapping[str, Card]) -> list[Page]:
    """A page for each data set and split, with all its metrics, and one that lists them.

    cards: experiment -> its card, of all compared systems of all suites.
    """
    result = []
    for name in dict.fromkeys(board.dataset for board in boards):
        views = [view(board, cards, address(name)) for board in boards if board.dataset == name]
        result.append(Page(address(name), "leaderboard.html.j2", {"boards": views}))
    return [*result, Page(INDEX, "leaderboards.html.j2", {"rows": [_summary(board) for board in boards]})]


def view(board: Board, cards: Mapping[str, Card], source: str) -> dict[str, Any]:
    """What a template shows of a board; source: the address of its page."""

    def cells(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            row_of(row, source, lower=board.measure.lower)
            | {"row_kind": "reference" if row["noisy"] else "", "run": run(cards[row["experiment"]])}
            for row in rows
        ]

    levels = [
        {"level": level, "best": best(board, level), "chart": frontier(board, level)}
        | {"rows": cells(board.at(level).to_dicts())}
        for level in board.levels
    ]
    answers = [answer_row(each, board, source) for each in board.answers()]
    return headline(board) | {"answers": answers, "open": cells(board.open().to_dicts()), "levels": levels}


def best(board: Board, level: Level) -> dict[str, Any] | None:
    """The best private system of a level up to its limit; None without one."""
    return board.best(level, LIMITS.get(level, math.inf))


def answer_row(answer: Mapping[str, Any], board: Board, source: str) -> dict[str, Any]:
    """One of `Board.answers` as a row: the best private system, or noisy popularity where that is no worse."""
    best, noisy, sign = answer["best"], answer["noisy"], -1 if board.measure.lower else 1
    winner = noisy if best is None or (noisy is not None and sign * (noisy["utility"] - best["utility"]) >= 0) else best
    ceiling = board.ceiling["utility"] if board.ceiling else None
    return row_of(winner, source, lower=board.measure.lower) | {
        "limit": answer["epsilon"],
        "share": None if ceiling is None or board.measure.lower else 100 * winner["utility"] / ceiling,
        "gain": None if noisy is None else winner["utility"] - noisy["utility"],
    }


def headline(board: Board) -> dict[str, Any]:
    """What is said of a board before its tables."""
    about = {"kind": terms.english()["kinds"][board.kind], "suites": sorted(set(board.rows["suite"]))}
    return about | {"board": board, "ceiling": board.ceiling, "noisy": board.noisy}


def frontier(board: Board, level: Level) -> charts.Picture | None:
    """Utility against the finite ε of a level; None for too few systems."""
    points = board.curve(level).select("utility", "accounted", "audited", claimed=None, name="system").to_dicts()
    if len({point["name"] for point in points}) < FEWEST:
        return None
    lines = [row for row in (board.ceiling, board.noisy) if row is not None]
    across = [{"name": row["system"], "utility": row["utility"]} for row in lines]
    title = f"{board.publication}: {board.measure.label}"
    return charts.by_epsilon(title, points, across, x=f"{terms.english()['levels'][level]} ε", y=board.measure.label)


def row_of(row: Mapping[str, Any], source: str, *, lower: bool) -> dict[str, Any]:
    """A row of `ENTRIES` as a table of the page `here` shows it; lower: whether less is better."""
    kinds, gain = terms.english()["levels"], row["difference"] or 0.0
    return {
        **row,
        "given": terms.conditions(row["given"] or ()),
        "towards": terms.english()["observers"][row["observer"]] if row["observer"] else "",
        "elsewhere": [kinds[level] for level in row["unbounded"] if level != row["level"]],
        "system_href": relative(source, f"cards/{row['suite']}/{row['experiment']}.html"),
        "suite_href": relative(source, f"suites/{row['suite']}/index.html"),
        "filters": {
            "epsilon": math.inf if row["unbounded"] or row["accounted"] is None else row["accounted"],
            "above": int((-gain if lower else gain) > 0),
            "real": int(row["kind"] == "real"),
        },
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


def run(card: Card) -> dict[str, Any]:
    """What a row of a table opens to: how a system was run, and why what has no finite ε has none."""
    reasons = dict.fromkeys(reason for loss in card.privacy_loss for reason in loss.reasons)
    return card.implementation.model_dump(include={"command", "commits", "configuration"}) | {"reasons": list(reasons)}


def card_page(card: Card) -> Page:
    """The card of one system: a column for each level, so that no two levels share one."""
    losses = {f"{loss.level}": loss for loss in card.privacy_loss}
    address = f"cards/{card.basic.suite}/{card.basic.experiment}.html"
    return Page(address, "card.html.j2", {"card": card, "losses": losses, "run": run(card)})


def cards_page(suites: Sequence[tuple[Measure, pl.DataFrame]]) -> Page:
    """Every private system of all suites, a table for each level; real data first.

    suites: of each its measure and its `ENTRIES`.
    """
    kinds = terms.english()["kinds"]
    rows = [
        row_of(row, CARDS, lower=by.lower) | {"metric": by.label, "kind": kinds[row["kind"]]}
        for kind in KINDS
        for by, entries in suites
        for row in entries.filter("private", setting=BASE, kind=kind).to_dicts()
    ]
    by_level = {level: [row for row in rows if row["level"] == level] for level in get_args(Level)}
    levels = {level: part for level, part in by_level.items() if part}
    return Page(CARDS, "cards.html.j2", {"levels": levels, "n": len({row["experiment"] for row in rows})})
