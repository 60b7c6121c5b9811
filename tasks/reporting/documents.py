"""Documents in Markdown as parts of pages: their sections, links between them, and a table that is searched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markupsafe import Markup

from tasks.reporting.core.layout import Cell, Heading, Row, Table
from tasks.reporting.core.section import Section


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
    made, used = list[Part](), Counter[str]()
    for title, _, body in (text.partition("\n") for text in (first.removeprefix("# "), *others)):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        unique = f"{anchor}-{used[anchor]}" if used[anchor] else anchor
        used[anchor] += 1
        made.append(Part(re.sub(r"[*`]", "", title), unique, _html(body, folder), body))
    return made


def _html(text: str, folder: str) -> Markup:
    """Markdown as HTML; HTML within it stays text, and links to other documents lead to their pages in a folder.

    What may scroll can be reached by keyboard.

    Links to files that no site has become text.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    linked = re.sub(r"\]\((?:docs/)?([a-z-]+)\.md(#[^)]*)?\)", rf"]({folder}\1.html\2)", text)
    linked = re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|[a-z/-]+\.html)[^)]*\)", r"\1", linked)
    html = markdown.render(linked).replace("<table>", '<div class="scroll" tabindex="0"><table class="plain">')
    html = html.replace("</table>", "</table></div>").replace("<pre>", '<pre tabindex="0">')
    return Markup(re.sub(r"<img[^>]*>", "", html))


def document(text: str) -> list[Section]:
    """A document as the sections of its page; the first, which has no heading, stands below the page's own."""
    first, *others = parts(text)
    return [Section(first.anchor, "", [first.html]), *(Section(p.anchor, p.title, [p.html]) for p in others)]


def search(documents: Mapping[str, str]) -> Table:
    """Every section with its text: the filter of the table searches them."""
    rows = []
    for name, text in documents.items():
        for place, part in enumerate(parts(text)):
            at = f"docs/{name}.html" + (f"#{part.anchor}" if place else "")
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", part.text)
            words = " ".join(re.sub(r"[#*`|]|---", " ", plain).split())
            rows.append(Row(name, [Cell(part.title, href=at, kind="wide"), Cell(words, kind="clipped")]))
    return Table("Sections of the documentation", [Heading(text, "") for text in ("Document", "section", "text")], rows)
