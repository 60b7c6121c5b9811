"""All suites as one site, from data/results/ and the published figures alone: the pages behind `dprec site`."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tasks.errors import ConfigurationError, DataError
from tasks.reporting import api, changes, site
from tasks.reporting.core.layout import Table
from tasks.stages import coverage
from tasks.stages.common import RESULTS, atomic_write
from tasks.stages.parent import workers
from tasks.stages.report import read

DOCS = Path("docs")
LIBRARY = "dprec"
"""The package whose docstrings are documentation."""
SCHEMA = "report.schema.json"
"""The file that every site has, and nothing else."""
FILES = ("summary.json", "claims.csv")
"""Of a suite's results, what the index compares with a revision."""


def write(out: Path, jobs: int, since: str | None = None) -> int:
    """Replace the folder `out` by the site; returns the number of suites in it.

    since: a git revision; the index then says what changed since.

    Raises:
        ConfigurationError: `out` is something else than a site.
        DataError: there are no results, a file is not what was written, or git does not know the revision.
    """
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / SCHEMA).is_file()):
        raise ConfigurationError(f"{out}: is no site and would be replaced; name an empty folder, or a new one")
    names = sorted(path.parent.name for path in RESULTS.glob("*/results.json"))
    if not names:
        raise DataError(f"{RESULTS}: no results; `dprec run SUITE` collects some")
    changed = changes_since(since) if since else None
    with workers(jobs) as pool:
        suites = list(pool.map(_suite, names))
    counted = coverage.lines([entry.evidence for entry in suites if entry.evidence is not None])
    documents = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
    documents |= api.documents(LIBRARY)
    pages = site.pages(suites, counted, documents, changed)
    with atomic_write(out) as place:
        for entry in suites:
            folder = f"suites/{entry.report.suite}"
            pages |= {f"{folder}/index.html": entry.page}
            pages |= {f"{folder}/report.json": entry.report.model_dump_json(indent=1) + "\n"}
        pages[SCHEMA] = json.dumps(site.schema(), indent=1) + "\n"
        for file, text in pages.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(text, encoding="utf-8")
    return len(suites)


def _suite(name: str) -> site.Suite:
    return site.suite(*read(name))


def changes_since(revision: str) -> Table:
    """What changed since a revision.

    Raises:
        DataError: git does not know it, or a file is not what was written.
    """
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    if not commit:
        raise DataError(f"{revision}: git knows no such revision")
    listed = _git("ls-tree", "-r", "--name-only", "--end-of-options", commit, f"./{RESULTS.as_posix()}/").splitlines()
    known = {path.removeprefix(f"{RESULTS.as_posix()}/") for path in listed}
    before = _states(known, lambda name: _git("show", "--end-of-options", f"{commit}:./{RESULTS.as_posix()}/{name}"))
    here = {path.relative_to(RESULTS).as_posix() for file in FILES for path in RESULTS.glob(f"*/{file}")}
    now = _states(here, lambda name: (RESULTS / name).read_text(encoding="utf-8"))
    return changes.table(before, now, revision)


def _states(names: set[str], text: Callable[[str], str]) -> dict[str, changes.State]:
    """Suite -> its headline, of those that have any; text: gives a file of `names`, such as demo/summary.json."""
    states = {}
    for suite in sorted({name.partition("/")[0] for name in names if name.partition("/")[2] in FILES}):
        summary, claims = (text(f"{suite}/{file}") if f"{suite}/{file}" in names else "" for file in FILES)
        try:
            judged = {(row["artefact"], row["claim"]): row["verdict"] for row in csv.DictReader(io.StringIO(claims))}
            states[suite] = changes.State(json.loads(summary or "{}"), judged)
        except (KeyError, ValueError) as error:
            raise DataError(f"{RESULTS / suite}: not the headline of a suite ({error!r})") from error
    return states


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise DataError("git is not installed: what changed since a revision is not known") from None
