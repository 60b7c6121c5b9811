"""Privacy cards: a page and a JSON file for each private system, and a table of all of them for each level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from tasks.pages import terms
from tasks.pages.page import Page, relative
from tasks.privacy.terms import Level
from tasks.results.cards import Card
from tasks.results.facts import KINDS

INDEX = "cards.html"


def address(card: Card, suffix: str = "html") -> str:
    """Where the card of a system lies."""
    return f"cards/{card.basic.suite}/{card.basic.experiment}.{suffix}"


def link(card: Card, here: str) -> str:
    """The address of a card as seen from a page."""
    return relative(here, address(card))


def suite_link(suite: str, here: str) -> str:
    """The address of a suite's report as seen from a page."""
    return relative(here, f"suites/{suite}/index.html")


def is_private(card: Card) -> bool:
    """Whether a budget is claimed, or a finite one accounted, at any level."""
    return any(loss.claimed is not None or loss.privacy_parameters is not None for loss in card.privacy_loss)


def run(card: Card) -> dict[str, Any]:
    """What a row of a table opens to."""
    of = card.implementation
    reasons = list(dict.fromkeys(reason for loss in card.privacy_loss for reason in loss.reasons))
    return {"command": of.command, "commits": of.commits, "configuration": of.configuration, "reasons": reasons}


def page(card: Card) -> Page:
    """The card of one system: a column for each level, so that no two levels share one."""
    losses = {f"{loss.level}": loss for loss in card.privacy_loss}
    return Page(address(card), "card.html.j2", {"card": card, "losses": losses, "run": run(card)})


def index(cards: Sequence[Card], rows: Sequence[Mapping[str, Any]]) -> Page:
    """Every private system of all suites, a table for each level; real data first.

    rows: a row for each system and level.
    """
    by_level = {level: [row for row in rows if row["level"] == level] for level in get_args(Level)}
    order = [terms.english()["kinds"][kind] for kind in KINDS]
    shown = {level: sorted(of, key=lambda row: order.index(row["kind"])) for level, of in by_level.items() if of}
    return Page(INDEX, "cards.html.j2", {"levels": shown, "n": sum(map(is_private, cards))})
