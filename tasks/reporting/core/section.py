"""Sections of a page: a heading and the blocks below it, which `templates/blocks.html.j2` draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tasks.reporting.core.chart import Chart
from tasks.reporting.core.layout import Table


@dataclass(frozen=True)
class Fold:
    """What is shown on demand: one block, or several."""

    title: str
    content: Block | Sequence[Blocks]


Block = Markup | Table | Chart | Fold
Blocks = Block | Sequence[Block] | None
"""A block, or several of a kind; None or an empty list for nothing."""


@dataclass(frozen=True)
class Section:
    """A part of a page that has a place in its contents."""

    anchor: str
    heading: str
    blocks: Sequence[Blocks]
    """A section without any does not apply to the results, and is left out."""
    about: Markup | None = None
    """A paragraph above them."""
    link: str | None = None
    """What the contents call it; None: as its heading, empty: they leave it out."""


def paragraph(html: str, *values: object, kind: str = "") -> Markup:
    """A paragraph. `html` is this project's and has {} where a value stands, escaped; `kind` is a CSS class."""
    return Markup("<p{}>{}</p>").format(
        Markup(' class="{}"').format(kind) if kind else "", Markup(html).format(*values)
    )


def heading(html: str, *values: object, anchor: str = "") -> Markup:
    """A heading within a section, made as a paragraph is."""
    identifier = Markup(' id="{}"').format(anchor) if anchor else ""
    return Markup("<h3{}>{}</h3>").format(identifier, Markup(html).format(*values))


def subsection(anchor: str, title: str, about: Markup, table: Table | None) -> list[Blocks]:
    """A table with a heading and a paragraph; nothing without the table."""
    return [] if table is None else [heading(title, anchor=anchor), about, table]


def bullets(items: Iterable[str]) -> Markup:
    """A list, its items escaped."""
    return Markup("<ul>{}</ul>").format(Markup().join(Markup("<li>{}</li>").format(item) for item in items))


def optional(*blocks: Block | None) -> list[Block]:
    """Those that are there; a chart without panels is not."""
    return [block for block in blocks if block is not None and not (isinstance(block, Chart) and not block.panels)]
