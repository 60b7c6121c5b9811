"""The site over all suites: what is drawn of one suite, the first page, leaderboards and privacy cards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from tasks.pages import charts, suite
from tasks.pages.page import Page, conditions, english, epsilon, relative, render, tested_on, units
from tasks.privacy.terms import Level
from tasks.results.budgets import budgets, units_of
from tasks.results.cards import Card, card
from tasks.results.facts import BASE, KINDS, Suite
from tasks.results.load import Results
from tasks.results.paper import Paper, artefact_name
from tasks.results.standings import ANSWERED, Board, Measure, boards, entries, measure, outcome
from tasks.results.summary import Change

if TYPE_CHECKING:
    from tasks.core.rows import Row

LEVEL: Level = "user"
"""The level of the first page's charts."""
INDEX, CARDS = "leaderboards.html", "cards.html"
FEWEST = 2
"""Systems that a chart of utility by ε needs."""
Prepared = Mapping[str, Mapping[str, Any]]
"""Data set -> `Suite.preparation`."""


@dataclass(frozen=True)
class Made:
    """What the pages over all suites need of one."""

    facts: Suite
    measure: Measure
    paper: Paper
    entries: pl.DataFrame
    cards: tuple[Card, ...]
    comparison: pl.DataFrame
    verdicts: Mapping[str, int]
    revisions: tuple[str, ...]
    deep: tuple[Measure, pl.DataFrame] | None
    """The same entries at the largest cut-off of its measure; None where there is no larger one."""


def draw(results: Results, paper: Paper, cards: Iterable[Card]) -> dict[str, str]:
    """Address -> page, or JSON, of one suite and its systems.

    paper: whose tables, figures and claims its pages have; cards: of its systems.
    """
    suite_pages = [*suite.pages(results, paper), *map(card_page, cards)]
    files = {page.address: render(page, results.revisions) for page in suite_pages}
    folder = f"cards/{results.suite.suite}"
    return files | {f"{folder}/{each.basic.experiment}.json": each.model_dump_json(indent=1) + "\n" for each in cards}


def make(results: Results, paper: Paper) -> Made:
    """What the pages over all suites need of one; paper: as of `draw`."""
    by, deep, budget_rows = measure(results, paper), measure(results, paper, deepest=True), budgets(results)
    cards = tuple(card(results, system, by, budget_rows) for system in results.suite.compared)
    return Made(
        results.suite,
        by,
        paper,
        entries(results, by),
        cards,
        results.comparison,
        dict(results.claims["verdict"].value_counts().iter_rows()),
        results.revisions,
        (deep, entries(results, deep)) if deep.k > by.k else None,
    )


def pages(
    suites: Sequence[Made],
    coverage: pl.DataFrame,
    sizes: pl.DataFrame | None,
    changes: Sequence[Change] | None = None,
    since: str = "",
) -> list[Page]:
    """All pages that are not one suite's, and no documents.

    Args:
        suites: everything that is shown of each.
        coverage: how much of the printed numbers these have.
        sizes: utility of a release by the number of users (docs/release-users.csv), where it is known.
        changes: what changed since a revision; None where none was asked for.
        since: that revision.
    """
    tables = [(each.measure, each.entries) for each in suites]
    all_boards, prepared = boards(tables), {each.facts.dataset: each.facts.preparation for each in suites}
    papers = _papers(each for each in suites if each.facts.paper is not None)
    levels = [level for level in get_args(Level) if any(level in paper["spent"] for paper in papers)]
    counted = coverage.group_by("paper").agg(pl.col("printed", "real", "part", "reproduced").sum())
    numbers = {row["paper"]: row for row in counted.to_dicts()}
    about: Row = {"papers": papers, "levels": levels, "numbers": numbers, "changes": changes, "since": since}
    about |= {"prepared": prepared, "by_users": None if sizes is None else _by_users(sizes)} | _frontiers(
        all_boards, boards(each.deep for each in suites if each.deep), prepared
    )
    printed = [row | {"artefact": artefact_name(row["artefact"])} for row in coverage.to_dicts()]
    cards = {each.basic.experiment: each for suite in suites for each in suite.cards}
    return [
        Page("index.html", "index.html.j2", about),
        *board_pages(all_boards, cards, prepared),
        cards_page(tables),
        Page("coverage.html", "coverage.html.j2", {"rows": printed}),
    ]


def _others(board: Board, deep: Mapping[str, Board]) -> dict[float, Row]:
    """ε -> who leads at the largest cut-off, where that is another; deep: boards at that by data set."""
    if (other := deep.get(board.dataset)) is None:
        return {}
    leads = {row["limit"]: row["system"] for row in board.answers()}
    label = other.measure.label
    return {
        row["limit"]: {"label": label, "system": row["system"]}
        for row in other.answers()
        if row["system"] != leads.get(row["limit"])
    }


def _frontiers(boards: Sequence[Board], deep: Sequence[Board], prepared: Prepared) -> dict[str, object]:
    """Of each real data set the board that answers most: its chart, and who is best at which ε.

    deep: boards at the largest cut-offs.
    """
    chosen: dict[str, Board] = {}
    for board in boards:
        fullest = chosen.setdefault(board.publication, board)
        if board.kind == "real" and board.answering() > fullest.answering():
            chosen[board.publication] = board
    shown = [board for board in chosen.values() if board.kind == "real" and board.best(LEVEL)]
    names = sorted({name for board in shown for name in board.curve(LEVEL)["system"]})
    leaders = {board.dataset: board for board in deep}
    charts = [
        headline(board)
        | {"best": board.best(LEVEL), "svg": chart, "href": board_address(board.dataset)}
        | {"deep": _others(board, leaders), "users": prepared[board.dataset].get("users")}
        | {"within": {row["limit"]: row for row in answers(board, "index.html")}}
        for board in shown
        if (chart := frontier(board, LEVEL, names))
    ]
    return {"charts": charts, "limits": ANSWERED}


def _by_users(sizes: pl.DataFrame) -> charts.Picture:
    """Utility of a release by the number of users, a line for each ε; the dashed line is the best noisy popularity."""
    points = [
        {"name": f"ε = {epsilon(budget)}", "x": users, "y": ndcg, "low": ndcg - error, "high": ndcg + error}
        for users, budget, ndcg, error in sizes.select("users", "epsilon", "ndcg", "error").iter_rows()
    ]
    level = max(sizes["popularity"].to_list())
    return charts.curves("NDCG@10 by users", points, "users", "NDCG@10", log=True, level=level, size=(300, 150))


def _papers(suites: Iterable[Made]) -> list[Row]:
    """A row for each paper, of its suites: those that have its own method first, on the best data."""

    def order(each: Made) -> tuple[object, ...]:
        method_rows = each.entries.filter("own", setting=BASE)
        return each.facts.paper, method_rows.is_empty(), KINDS.index(each.facts.kind), -sum(each.verdicts.values())

    by_paper = groupby(sorted(suites, key=order), key=lambda each: each.facts.paper)
    return [_paper([*each]) for _, each in by_paper]


def _paper(suites: Sequence[Made]) -> dict[str, object]:
    """Utility and data are of the first suite; a level that it lacks of the first suite that has it.

    Claims are of the suite that is compared with most that is printed.
    """
    first, claims = suites[0], max(suites, key=lambda each: (each.comparison["published"].count(), bool(each.verdicts)))
    kinds, budget_rows = english()["kinds"], dict[str, dict[str, Any]]()
    for each in suites:
        for row in each.entries.filter("own", "private", setting=BASE).to_dicts():
            budget_rows.setdefault(row["level"], row | {"data": "" if each is first else kinds[each.facts.kind]})
    base = first.entries.filter(setting=BASE)
    method_rows, noisy = base.filter("own").to_dicts(), base.filter("noisy")["utility"].to_list()
    return {
        "name": first.paper.name,
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
        "tested": sum(claims.verdicts.values()) - claims.verdicts.get("not-run", 0),
    }


# Leaderboards and privacy cards: a page for each data set under one split, one for each system, and lists of both.


def board_address(dataset: str) -> str:
    """Where the leaderboard of a data set under one split lies."""
    return f"leaderboards/{dataset}.html"


def board_pages(boards: Sequence[Board], cards: Mapping[str, Card], prepared: Prepared) -> list[Page]:
    """A page for each data set and split, with all its metrics, and one that lists them.

    cards: experiment -> its card, of all compared systems of all suites.
    """
    result = []
    for name in dict.fromkeys(board.dataset for board in boards):
        views = [view(board, cards, board_address(name)) for board in boards if board.dataset == name]
        result.append(Page(board_address(name), "leaderboard.html.j2", {"boards": views, "prepared": prepared[name]}))
    rows = [_summary(board) | {"test": tested_on(prepared[board.dataset])} for board in boards]
    return [*result, Page(INDEX, "leaderboards.html.j2", {"rows": rows})]


def view(board: Board, cards: Mapping[str, Card], source: str) -> Row:
    """What a template shows of a board; source: the address of its page."""

    def cells(rows: Iterable[Row]) -> list[Row]:
        return [
            row_of(row, source, lower=board.measure.lower)
            | {"row_kind": "reference" if row["noisy"] else "", "run": cards[row["experiment"]].run()}
            for row in rows
        ]

    levels = [
        {"level": level, "best": board.best(level), "chart": frontier(board, level)}
        | {"rows": cells(board.at(level).to_dicts()), "units": units_of(board.at(level))}
        for level in board.levels
    ]
    return headline(board) | {
        "answers": answers(board, source),
        "open": cells(board.open().to_dicts()),
        "levels": levels,
    }


def answers(board: Board, source: str) -> list[Row]:
    """`Board.answers` as rows of a table of the page `source`."""
    return [
        row_of(each | {"difference": each["gain"]}, source, lower=board.measure.lower)
        | {
            "share": each["share"] and 100 * each["share"],
            "publication_href": relative(source, board_address(board.dataset)),
        }
        for each in board.answers()
    ]


def headline(board: Board) -> dict[str, object]:
    """What is said of a board before its tables."""
    about = {"kind": english()["kinds"][board.kind], "suites": sorted(set(board.rows["suite"]))}
    return about | {"board": board, "ceiling": board.ceiling, "noisy": board.noisy}


def frontier(board: Board, level: Level, names: Sequence[str] = ()) -> charts.Picture | None:
    """Utility against the finite ε of a level; None for too few systems. names: as of `charts.by_epsilon`."""
    points = board.curve(level).select("utility", "accounted", "audited", claimed=None, name="system").to_dicts()
    if len({point["name"] for point in points}) < FEWEST:
        return None
    x = f"{english()['levels'][level]} ε"
    title = f"{board.publication}: {board.measure.label}"
    return charts.by_epsilon(title, points, board.lines(), x=x, y=board.measure.axis, names=names)


def row_of(row: Row, source: str, *, lower: bool) -> Row:
    """A row of `ENTRIES` as a table of the page `here` shows it; lower: whether less is better."""
    kinds, gain = english()["levels"], row["difference"] or 0.0
    return {
        **row,
        "given": conditions(row["given"] or ()),
        "towards": english()["observers"][row["observer"]] if row["observer"] else "",
        "unit": units(row["units"] or ()),
        "elsewhere": [kinds[level] for level in row["unbounded"] if level != row["level"]],
        "system_href": relative(source, f"cards/{row['suite']}/{row['experiment']}.html"),
        "suite_href": relative(source, f"suites/{row['suite']}/index.html"),
        "filters": {
            "epsilon": math.inf if row["unbounded"] or row["accounted"] is None else row["accounted"],
            "above": int((-gain if lower else gain) > 0),
            "real": int(row["kind"] == "real"),
        },
    }


def _summary(board: Board) -> dict[str, object]:
    bests, places = (
        {level: board.best(level) for level in board.levels},
        {"ceiling": board.ceiling, "noisy": board.noisy},
    )
    named = {f"best_{level}": row and row["system"] for level, row in bests.items()}
    return named | {f"{level}_utility": row and row["utility"] for level, row in bests.items()} | {
        "publication": board.publication,
        "split": board.dataset,
        "split_href": board_address(board.dataset),
        "kind": english()["kinds"][board.kind],
        "metric": board.measure.label,
        "systems": board.base["experiment"].n_unique(),
        **{name: row and row["utility"] for name, row in places.items()},
        **{f"{name}_system": row and row["system"] for name, row in places.items()},
    }  # fmt: skip


def card_page(card: Card) -> Page:
    """The card of one system: a column for each level, so that no two levels share one."""
    losses = {f"{loss.level}": loss for loss in card.privacy_loss}
    address = f"cards/{card.basic.suite}/{card.basic.experiment}.html"
    return Page(address, "card.html.j2", {"card": card, "losses": losses, "run": card.run()})


def cards_page(suites: Sequence[tuple[Measure, pl.DataFrame]]) -> Page:
    """Every private system of all suites, a table for each level; real data first.

    suites: of each its measure and its `ENTRIES`.
    """
    kinds = english()["kinds"]
    rows = [
        row_of(row, CARDS, lower=by.lower) | {"metric": by.label, "kind": kinds[row["kind"]]}
        for kind in KINDS
        for by, entries in suites
        for row in entries.filter("private", setting=BASE, kind=kind).to_dicts()
    ]
    by_level = {level: [row for row in rows if row["level"] == level] for level in get_args(Level)}
    levels = {level: part for level, part in by_level.items() if part}
    return Page(CARDS, "cards.html.j2", {"levels": levels, "n": len({row["experiment"] for row in rows})})
