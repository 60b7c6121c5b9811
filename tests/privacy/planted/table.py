"""docs/planted.csv: which bug was noticed by what."""

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import Any

from tests.privacy.planted.mutation import ROOT, Mutation
from tests.privacy.planted.runner import Asked, Run

PLACE = ROOT / "docs" / "planted.csv"
COLUMNS = ("mistake", "wrong", "section", "tests_read", "test", "audit", "audited", "proved", "accounted")
"""`test` and `audited`: what tests and the audit said; empty where none was asked. Controls name no mistake."""


def written(mutations: Iterable[Mutation], runs: Mapping[Asked, Run]) -> str:
    """The table: a row for each mistake, then for each audit of the code as it is."""
    of = {(asked.mutation, asked.kind): given for asked, given in runs.items()}
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for mutation in mutations:
        about = {"mistake": mutation.name, "wrong": mutation.wrong, "section": mutation.section}
        test = "noticed" if of[mutation, "tests"].noticed else "not noticed"
        audit = _audit(mutation.audit, of[mutation, "audit"]) if mutation.audit else {}
        table.writerow(about | {"tests_read": mutation.tests_read, "test": test} | audit)
    table.writerows(
        _audit(asked.names[0], given) for asked, given in runs.items() if asked.kind == "audit" and not asked.mutation
    )
    return text.getvalue()


def _audit(name: str, given: Run) -> dict[str, Any]:
    """What is proved is rounded down, what is accounted up: neither says more than was shown."""
    accounted = math.inf if given.accounted is None else math.ceil(100 * given.accounted - 1e-6) / 100
    proved = math.floor(100 * given.proved + 1e-6) / 100
    return {"audit": name, "audited": given.verdict, "proved": f"{proved:.2f}", "accounted": f"{accounted:.2f}"}


def unexpected(runs: Mapping[Asked, Run]) -> list[str]:
    """A line for every control that fails, bug that survives, and run that did not come to its end."""
    faults = []
    for asked, given in runs.items():
        name = asked.mutation.name if asked.mutation else f"control {', '.join(asked.names)}"
        last = (given.output.splitlines() or [""])[-1]
        if given.broken:
            faults.append(f"{name}: {asked.kind} did not come to an end: {last}")
        elif given.noticed != expected(asked) or (given.verdict == "none" and not asked.mutation):
            faults.append(f"{name}: {asked.kind} {given.verdict or last}")
    return faults


def expected(asked: Asked) -> bool:
    """Whether something must be noticed: in no control, by a test of every bug, by an audit that sees it."""
    return asked.mutation is not None and (asked.kind == "tests" or asked.mutation.refuted)
