"""The headlines of all suites as they lie in data/results/, and as a git revision has them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable

from tasks.errors import DataError
from tasks.reporting import changes
from tasks.reporting.core.layout import Table
from tasks.stages.common import RESULTS

FILES = ("summary.json", "claims.csv")


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
