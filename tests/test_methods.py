"""docs/methods.md: its index names symbols and sections that exist, and docstrings cite sections that exist."""

import re
from pydoc import locate

from tests.parameters import ROOT

PAGE = ROOT / "docs" / "methods.md"


def index() -> list[tuple[str, str]]:
    """What the lists below the heading Index name, with search words, and where that is."""
    lines = PAGE.read_text().split("\n## Index\n")[1].split("\n## ")[0].splitlines()
    return [line[2:].rpartition(": ")[::2] for line in lines if line.startswith("* ")]


def test_every_symbol_of_the_index_exists() -> None:
    """Public ones, in backticks, each of a module below tasks."""
    missing = []
    for what, where in index():
        match = re.fullmatch(r"`(tasks(?:\.[A-Za-z][A-Za-z_0-9]*)+)`", where)
        if not match or locate(match[1]) is None:
            missing.append(f"{what}: {where}")
    assert not missing


def test_docstrings_cite_sections_that_exist() -> None:
    """Each `docs/methods.md §N`, or `§N and §M`, of the code."""
    texts = [path.read_text() for folder in ("tasks", "flows") for path in (ROOT / folder).rglob("*.py")]
    cited = {
        section
        for text in texts
        for group in re.findall(r"docs/methods\.md\s+(§\d+(?:(?:, | and )§\d+)*)", text)
        for section in re.findall(r"§\d+", group)
    }
    assert len(cited) > 5
    assert cited <= set(re.findall(r"^## (§\d+) ", PAGE.read_text(), re.MULTILINE))


def test_files_that_the_page_links_to_exist() -> None:
    """Relative to docs/."""
    links = re.findall(r"\]\(([^)#]+)\)", PAGE.read_text())
    assert all((PAGE.parent / link).is_file() for link in links)
