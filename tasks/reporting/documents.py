"""Documents in Markdown as parts of pages: their sections, links between them, and a table that is searched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markupsafe import Markup

from tasks.reporting.core.layout import Cell, Heading, Row, Table
from tasks.reporting.core.section import Blocks, Section, heading


@dataclass(frozen=True)
class Part:
    """A section of a document."""

    title: str
    anchor: str
    """As GitHub makes it of the title, so that links hold here and there."""
    html: Markup
    text: str


def parts(text: str, folder: str = "") -> list[Part]:
    """A document by its headings of the second level; what stands before them is its first part.

    folder: where other documents lie, seen from the page that shows it.
    """
    first, *others = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, body = first.removeprefix("# ").partition("\n")
    pairs = [(title, body), *((other.partition("\n")[0], other.partition("\n")[2]) for other in others)]
    return [Part(title, _anchor(title), _html(body, folder), body) for title, body in pairs]


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _html(text: str, folder: str) -> Markup:
    """Markdown as HTML; HTML within it stays text, and links to other documents lead to their pages in a folder.

    Links to files that no site has become text.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    linked = re.sub(r"\]\((?:docs/)?([a-z-]+)\.md(#[^)]*)?\)", rf"]({folder}\1.html\2)", text)
    linked = re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|[a-z/-]+\.html)[^)]*\)", r"\1", linked)
    html = markdown.render(linked).replace("<table>", '<div class="scroll" tabindex="0"><table class="plain">')
    return Markup(re.sub(r"<img[^>]*>", "", html.replace("</table>", "</table></div>")))


def document(text: str) -> Section:
    """A document as the section of its page."""
    first, *others = parts(text)
    blocks: list[Blocks] = [first.html]
    for part in others:
        blocks += [heading("{}", part.title, anchor=part.anchor), part.html]
    return Section("document", first.title, blocks)


def search(documents: Mapping[str, str]) -> Table:
    """Every section with its text: the filter of the table searches them."""
    rows = []
    for name, text in documents.items():
        for place, part in enumerate(parts(text)):
            at = f"docs/{name}.html" + (f"#{part.anchor}" if place else "")
            words = " ".join(re.sub(r"[#*`|]|---", " ", part.text).split())
            rows.append(Row(name, [Cell(part.title, href=at, kind="wide"), Cell(words, kind="clipped")]))
    return Table("Sections of the documentation", [Heading(text, "") for text in ("Document", "section", "text")], rows)
