"""Documents in Markdown, and a package's public names, as pages: their sections, links, and text to be searched."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pdoc.doc import Class, Doc, Function, Module
from pdoc.docstrings import google

from tasks.pages.page import Page, anchors

FOLDER = "docs"
INDEX = f"{FOLDER}/index.html"
QUALIFIED = r"\b(tasks|numpy|typing)(\.\w+)*\."
"""What stands before the names of types."""


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

    def code(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
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


def of_package(package: str) -> dict[str, str]:
    """Name, such as api-dprec-metrics -> Markdown, of a package and of the modules right below it, by their docstrings.

    A module is a document, a public name a section.

    Raises:
        RuntimeError: the package cannot be imported.
    """
    top = Module.from_name(package)
    return {f"api-{module.fullname.replace('.', '-')}": _document(module) for module in (top, *top.submodules)}


def _document(module: Module) -> str:
    links = [f"- [{name.fullname}](api-{name.fullname.replace('.', '-')}.html)" for name in module.submodules]
    sections = [text for member in module.own_members if not isinstance(member, Module) for text in _section(member)]
    return "\n\n".join([f"# {module.fullname}", google(module.docstring), "\n".join(links), *sections]) + "\n"


def _section(member: Doc) -> list[str]:
    """How it is called and what its docstring says; of a class, the same of every method and field of its own."""
    text = [f"## {member.name}", *_words(member)]
    if isinstance(member, Class):
        typed = inspect.get_annotations(member.obj)
        members = [inner for inner in member.own_members if not inner.name.startswith("_")]
        text += ["\n".join(_field(inner, typed) for inner in members if inner.name in typed)]
        for method in members:
            if isinstance(method, Function):
                text += [f"### {member.name}.{method.name}", *_words(method)]
    return text


def _field(member: Doc, typed: dict[str, object]) -> str:
    """typed: name -> type, as the source has it."""
    kind = typed[member.name]
    words = "" if member.docstring.startswith("Alias for field") else " ".join(member.docstring.split())
    return f"- `{member.name}: {getattr(kind, '__forward_arg__', kind)}` {words}"


def _words(member: Doc) -> list[str]:
    words = re.sub(r"^#+ (.*)$", r"**\1**", google(member.docstring), flags=re.MULTILINE)
    if not isinstance(member, Function):
        return [words]
    return [f"```python\n{member.name}{re.sub(QUALIFIED, '', str(member.signature))}\n```", words]
