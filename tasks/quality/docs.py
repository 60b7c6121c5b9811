"""Data docs that can be opened from a folder, without a network: everything is inline, and text of the data escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VIEWS = Path(__file__).parent / "views"


def write_docs(verdict: dict[str, Any], rows: Mapping[str, int], folder: Path) -> None:
    """Write index.html (the verdict, the failing rows, the files that were read) and one page per table.

    Args:
        verdict: as `tasks.quality.runner.run` returns it.
        rows: name of each table -> how many it has.
        folder: an existing, empty one.
    """
    from jinja2 import Environment, FileSystemLoader

    views = Environment(loader=FileSystemLoader(VIEWS), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pages: list[dict[str, Any]] = []
    for table, n_rows in rows.items():
        results = [result for result in verdict["results"] if result["table"] == table]
        failed = [result for result in results if not result["success"]]
        file = re.sub(r"[^A-Za-z0-9=.]+", "-", table) + ".html"
        pages.append({"table": table, "file": file, "rows": n_rows, "results": results, "failed": failed})
    about = {"title": f"{verdict['contract']}/{verdict['name']}", "verdict": verdict, "pages": pages}
    for page in pages:
        text = views.get_template("table.html.j2").render(**about, page=page)
        (folder / page["file"]).write_text(text, encoding="utf-8")
    (folder / "index.html").write_text(views.get_template("index.html.j2").render(**about), encoding="utf-8")
