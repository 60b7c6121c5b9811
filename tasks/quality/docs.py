"""Great Expectations data docs that can be opened from a folder, without a network.

Great Expectations lays out each page of results; its own page shell loads styles, scripts and a logo from six hosts
and escapes little, so the shell here is our own (`views/`): everything is inline, and text from the data is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult

VIEWS = Path(__file__).parent / "views"

OWN_SECTIONS = ("Overview", "Run Info")
"""Sections of Great Expectations' page that the shell replaces: they link to pages that are not written here."""

SECTIONS = "{% for section in sections %}{% set section_loop = loop %}{% include 'section.j2' %}{% endfor %}"


def write_docs(
    verdict: dict[str, Any], outcomes: Sequence[tuple[str, int, ExpectationSuiteValidationResult]], folder: Path
) -> None:
    """Write index.html (the verdict, the failing rows, the files that were read) and one page per table.

    The same verdict gives the same bytes: run times and identifiers are left out.

    Args:
        verdict: as `tasks.quality.runner.run` returns it.
        outcomes: name, number of rows and outcome of each table.
        folder: an existing, empty one.
    """
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView
    from jinja2 import Environment, FileSystemLoader

    shell = Environment(loader=FileSystemLoader(VIEWS), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    layout = DefaultJinjaPageView().env.from_string(SECTIONS)
    title = f"{verdict['contract']}/{verdict['name']}"
    pages = []
    for table, rows, outcome in outcomes:
        sections = ValidationResultsPageRenderer().render(outcome).to_json_dict()["sections"]
        sections = [_escape(section) for section in sections if section["section_name"] not in OWN_SECTIONS]
        results = [result for result in verdict["results"] if result["table"] == table]
        file = re.sub(r"[^A-Za-z0-9=.]+", "-", table) + ".html"
        page = {
            "table": table,
            "file": file,
            "rows": rows,
            "results": results,
            "failed": [result for result in results if not result["success"]],
        }
        pages.append(page)
        content = layout.render(sections=sections)
        text = shell.get_template("table.html.j2").render(title=title, page=page, content=content)
        (folder / file).write_text(text, encoding="utf-8")
    text = shell.get_template("index.html.j2").render(title=title, verdict=verdict, pages=pages)
    (folder / "index.html").write_text(text, encoding="utf-8")


def _escape(value: Any, within: str = "") -> Any:
    """The content of a page with its text escaped, but for what the view escapes itself and for styling."""
    if isinstance(value, str):
        return html.escape(value, quote=False)
    if isinstance(value, list):
        return [_escape(item) for item in value]
    if isinstance(value, dict):
        left = ("params", "styling") if within == "string_template" else ("styling",)
        return {key: item if key in left else _escape(item, key) for key, item in value.items()}
    return value
