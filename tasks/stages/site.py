"""All suites as one site, from data/results/ and the published figures alone: the pages behind `dprec site`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tasks.errors import DataError
from tasks.reporting import site
from tasks.stages import changes
from tasks.stages.common import REFERENCE, RESULTS, atomic_write
from tasks.stages.parent import workers
from tasks.stages.report import read

DOCS = Path("docs")


def write(out: Path, jobs: int, since: str | None = None) -> int:
    """Replace the folder `out` by the site; returns the number of suites in it.

    since: a git revision; the index then says what changed since.

    Raises:
        DataError: there are no results, a file is not what was written, or git does not know the revision.
    """
    names = sorted(path.parent.name for path in RESULTS.glob("*/results.json"))
    if not names:
        raise DataError(f"{RESULTS}: no results; `dprec run SUITE` collects some")
    changed = changes.changes_since(since) if since else None
    with workers(jobs) as pool:
        suites = list(pool.map(_suite, names))
    printed = pl.read_csv(REFERENCE / "paper_tables.csv", infer_schema=False)
    documents = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    pages = site.pages(suites, printed, documents, changed)
    with atomic_write(out) as place:
        for entry in suites:
            folder = f"suites/{entry.report.suite}"
            pages |= {f"{folder}/index.html": entry.page}
            pages |= {f"{folder}/report.json": entry.report.model_dump_json(indent=1) + "\n"}
        pages["report.schema.json"] = json.dumps(site.schema(), indent=1) + "\n"
        for file, text in pages.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(text, encoding="utf-8")
    return len(suites)


def _suite(name: str) -> site.Suite:
    return site.suite(*read(name))
