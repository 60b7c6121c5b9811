"""Committed results and their drawn pages, read once."""

import re
from functools import cache
from html import unescape

from tasks.pages import page
from tasks.pages.suite import pages
from tests.results.made import COMMITTED as SUITES
from tests.results.made import REFERENCE, ROOT, paper
from tests.results.made import committed as results

__all__ = ["REFERENCE", "RESULTS", "SUITES", "draw", "paper", "parts", "results", "table", "text_of"]
RESULTS = ROOT / "data/results"


@cache
def parts(suite: str) -> dict[str, page.Page]:
    """Part -> its page, of a committed suite."""
    return {str(made.context["part"]): made for made in pages(results(suite), paper(suite))}


def draw(suite: str, part: str) -> str:
    return page.render(parts(suite)[part])


def table(html: str, caption: str) -> list[list[str]]:
    """The rows of a drawn table, the first line of each cell, its header first."""
    match = re.search(rf'<table[^>]*data-caption="{re.escape(caption)}[^"]*".*?</table>', html, re.DOTALL)
    assert match is not None, caption
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", match.group(), re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [
        [re.sub(r"<[^>]+>", "", re.sub(r"<span.*", "", cell, flags=re.DOTALL)).strip() for cell in row] for row in cells
    ]


def text_of(html: str) -> str:
    """What a page says, without tags and folded white space."""
    return " ".join(unescape(re.sub(r"<(style|script|svg).*?</\1>|<[^>]+>", " ", html, flags=re.DOTALL)).split())
