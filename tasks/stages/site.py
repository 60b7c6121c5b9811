"""All suites as one site, from what is in git alone: the pages behind `dprec site`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import as_completed
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from tasks.core.disk import require_writable
from tasks.core.errors import ConfigurationError, DataError
from tasks.pages import documents, site
from tasks.pages.page import render
from tasks.pipeline.common import REFERENCE, RESULTS, atomic_write
from tasks.pipeline.parent import workers
from tasks.pipeline.provenance import git
from tasks.pipeline.screen import Screen
from tasks.results import summary
from tasks.results.cards import schema
from tasks.results.load import read_published
from tasks.results.summary import coverage
from tasks.stages.report import collected, paper_of, results_of

DOCS = Path("docs")
SIZES = DOCS / "release-users.csv"
"""Utility of a release by the number of users, as `tests.benchmarks.bench_users` measures it."""
LIBRARY = "dprec"
"""The package whose docstrings are documentation."""
SCHEMA = "card.schema.json"
"""The file that every site has, and nothing else."""
FILES = ("summary.json", "claims.csv", "evidence.csv")
"""Of a suite's results, what the index compares with a revision."""


def write(out: Path, jobs: int, since: str | None = None) -> int:
    """Replace the folder `out` by the site; returns the number of suites in it.

    since: a git revision; the index then says what changed since.
    """
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / SCHEMA).is_file()):
        raise ConfigurationError(f"{out}: is no site and would be replaced; name an empty folder, or a new one")
    require_writable(out)
    names = collected()
    if not names:
        raise DataError(f"{RESULTS}: no results; `dprec run SUITE` collects some")
    changed = changes_since(since) if since else None
    with workers(jobs) as pool, Screen("site", 1) as screen:
        documents = pool.submit(_documents)
        screen.next()
        screen.begin("suites", len(names))
        running = {name: pool.submit(_make, name) for name in names}
        for done, _ in enumerate(as_completed(running.values()), 1):
            screen.step(done)
        suites, folders = zip(*(running[name].result() for name in names), strict=True)
        files = documents.result()
    counted = coverage(
        read_published(REFERENCE / "paper_tables.csv"),
        [(suite.facts, suite.comparison, suite.paper.methods) for suite in suites],
    )
    sizes = pl.read_csv(SIZES) if SIZES.is_file() else None
    revisions = sorted({revision for suite in suites for revision in suite.revisions})
    files |= {
        page.address: render(page, revisions) for page in site.pages(suites, counted, sizes, changed, since or "")
    }
    for folder in folders:
        files |= folder
    with atomic_write(out) as target:
        for file, text in (files | {SCHEMA: schema()}).items():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            (target / file).write_text(text, encoding="utf-8")
    return len(suites)


def _make(name: str) -> tuple[site.Made, dict[str, str]]:
    results = results_of(name)
    suite = site.make(results, paper := paper_of(results))
    return suite, site.draw(results, paper, suite.cards)


def _documents() -> dict[str, str]:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    return {page.address: render(page) for page in documents.pages(texts | documents.of_package(LIBRARY))}


def changes_since(revision: str) -> list[summary.Change]:
    """What changed since a revision.

    Raises:
        DataError: git does not know it, or a file is not what was written.
    """
    commit = (git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}") or "").strip()
    if not commit:
        raise DataError(f"{revision}: git knows no such revision")
    folder = RESULTS.as_posix()
    listed = (git("ls-tree", "-r", "--name-only", "--end-of-options", commit, f"./{folder}/") or "").splitlines()
    before = _states(listed, lambda path: git("show", "--end-of-options", f"{commit}:./{path}") or "")
    present = [path.as_posix() for file in FILES for path in RESULTS.glob(f"*/{file}")]
    now = _states(present, lambda path: Path(path).read_text(encoding="utf-8"))
    return list(summary.changes(before, now))


def _states(paths: list[str], text: Callable[[str], str]) -> dict[str, summary.State]:
    """Suite -> its headline, of those that have any; text: gives a file of `paths`."""
    states = {}
    for suite in sorted({Path(path).parent.name for path in paths if Path(path).name in FILES}):
        files = [(RESULTS / suite / name).as_posix() for name in FILES]
        try:
            states[suite] = summary.state(*(text(file) if file in paths else "" for file in files))
        except (KeyError, ValueError, AttributeError, PolarsError) as error:
            raise DataError(f"{RESULTS / suite}: not the headline of a suite ({error!r})") from error
    return states
