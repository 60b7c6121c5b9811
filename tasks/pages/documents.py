"""Documents in Markdown as pages: their sections, the links between them, and their text to be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from tasks.pages.page import Page, anchors

FOLDER = "docs"
INDEX = f"{FOLDER}/index.html"


@dataclass(frozen=True)
class Part:
    """A section of a document."""

    title: str
    anchor: str
    html: Markup
    text: str
    """Without marks."""


def _markdown() -> MarkdownIt:
    """HTML within Markdown stays text, images are left out, and what may scroll can be reached by keyboard."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")

    def code(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
        return str(Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(tokens[index].content))

    rules = {
        "image": lambda *_: "",
        "fence": code,
        "code_block": code,
        "table_open": lambda *_: '<div class="scroll" tabindex="0"><table class="plain">\n',
        "table_close": lambda *_: "</table></div>\n",
    }
    for name, rule in rules.items():
        parser.add_render_rule(name, rule)
    return parser


MARKDOWN = _markdown()


def parts(text: str, names: Sequence[str] = ()) -> list[Part]:
    """A document by its headings of the second level; what stands before them is its first part.

    names: of the documents that links may lead to; other links to files become text.
    """
    tokens, anchor = MARKDOWN.parse(text), anchors()
    starts = [index for index, token in enumerate(tokens) if (token.type, token.tag) == ("heading_open", "h2")]
    first = [0] if tokens and tokens[0].tag == "h1" else []
    result = []
    for begin, end in zip([*first, *starts], [*starts[: len(first)], *starts[1:], len(tokens)], strict=False):
        title = _plain(tokens[begin + 1])
        body = tokens[begin + 3 : end]
        for token in body:
            _link(token.children or [], names)
        html = Markup(MARKDOWN.renderer.render(body, MARKDOWN.options, {}))
        text = " ".join(_plain(token) for token in body if token.content)
        result.append(Part(title, anchor(title), html, text))
    return result


def _plain(token: Token) -> str:
    breaks = ("softbreak", "hardbreak")
    return "".join(" " if child.type in breaks else child.content for child in token.children or [token])


def _link(children: list[Token], names: Sequence[str]) -> None:
    """Let links to documents lead to their pages; hide those to files that no site has."""
    hidden = False
    for token in children:
        if token.type == "link_open":
            target, hidden = urlsplit(str(token.attrs["href"])), False
            if target.path and not target.scheme:
                name = PurePosixPath(target.path)
                hidden = name.stem not in names or name.suffix not in (".md", ".html")
                token.attrs["href"] = target._replace(path=f"{name.stem}.html").geturl()
        if hidden and token.type in ("link_open", "link_close"):
            token.type, token.tag, token.nesting = "text", "", 0


def pages(documents: Mapping[str, str]) -> list[Page]:
    """A page for each document, and one that lists and searches their sections.

    documents: name without suffix -> Markdown.
    """
    names = [*documents, "index"]
    sections = {name: parts(text, names) for name, text in documents.items()}
    rows = [
        {"document": name, "section": part.title, "text": part.text, "section_href": f"{name}.html{to}"}
        for name, document in sections.items()
        for index, part in enumerate(document)
        for to in [f"#{part.anchor}" if index else ""]
    ]
    result = [
        Page(f"{FOLDER}/{name}.html", "document.html.j2", {"parts": document})
        for name, document in sections.items()
        if document
    ]
    return [*result, Page(INDEX, "documents.html.j2", {"rows": rows})]
