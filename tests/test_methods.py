"""docs/methods.md: its index names symbols and sections that exist, and docstrings cite sections that exist."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "methods.md"


class Row(NamedTuple):
    """One row of the index."""

    what: str
    """With search words."""
    where: str
    section: str


def index() -> list[Row]:
    """The entries of the lists below the heading Index, each below the name of its section."""
    rows, section = list[Row](), ""
    for line in PAGE.read_text().split("\n## Index\n")[1].split("\n## ")[0].splitlines():
        if line.startswith("**"):
            section = line[2:].partition(" ")[0]
        elif line.startswith("* "):
            what, _, where = line[2:].rpartition(": ")
            rows.append(Row(what, where, section))
    return rows


def sections() -> list[str]:
    """`§N` of every heading that has one."""
    return re.findall(r"^## (§\d+) ", PAGE.read_text(), re.MULTILINE)


def resolved(where: str) -> Any:
    """What `where` names, a dotted path from a module to a symbol in it."""
    parts = where.split(".")
    for n in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:n])
        try:
            target: Any = import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise  # the module is there, and something that it imports is not
            continue
        for part in parts[n:]:
            target = getattr(target, part)
        return target
    raise ModuleNotFoundError(where)


def test_every_symbol_of_the_index_exists() -> None:
    """Public ones, in backticks, each of a module below tasks."""
    missing = []
    for row in index():
        match = re.fullmatch(r"`(tasks(?:\.[A-Za-z][A-Za-z_0-9]*)+)`", row.where)
        try:
            assert match is not None
            resolved(match[1])
        except (AssertionError, AttributeError, ModuleNotFoundError):
            missing.append(f"{row.what}: {row.where}")
    assert not missing


def test_docstrings_cite_sections_that_exist() -> None:
    """Each `docs/methods.md §N`, or `§N and §M`, of the code; and no other way to cite the page."""
    texts = {path: path.read_text() for folder in ("tasks", "flows") for path in (ROOT / folder).rglob("*.py")}
    cited = {
        section
        for text in texts.values()
        for group in re.findall(r"docs/methods\.md\s+(§\d+(?:(?:, | and )§\d+)*)", text)
        for section in re.findall(r"§\d+", group)
    }
    assert len(cited) > 5
    assert cited <= set(sections())
    vague = re.compile(r"docs/methods\.md(?!\s+§\d)|\bMETHODS (?:§|section)")
    assert not [str(path) for path, text in texts.items() if vague.search(text)]


def test_links_within_the_page_lead_to_headings() -> None:
    """As GitHub names headings: lower case, without punctuation, hyphens for blanks."""
    text = PAGE.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


def test_files_that_the_page_links_to_exist() -> None:
    """Relative to docs/."""
    links = re.findall(r"\]\(([^)#]+)\)", PAGE.read_text())
    assert all((PAGE.parent / link).is_file() for link in links)
