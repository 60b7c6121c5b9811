"""docs/planted.md: which bug was noticed by what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.privacy.planted.mutation import ROOT, Mutation
from tests.privacy.planted.runner import Asked, Run

PLACE = ROOT / "docs" / "planted.md"
HEAD = """# Planted bugs: which mistakes tests and audits notice

`make planted` puts each of these mistakes, by itself, into a copy of the code, runs a few tests on the copy, and the
audit of a model that runs the mistake. A test must fail. An audit notices it if it proves more than the model's own
ledger accounts for, at 0.999 confidence, from samples of real fits and without any knowledge of the mistake. Audits
have one worst case and so many samples: what they do not see is said too; where none is named, none was asked. The
mistakes are in `tests/privacy/planted/`; this page is written by the program.

"""


MENDED = ("means-exact", "means-noise-of-mean", "perturbed-fits-share", "popularity-start-unused", "count-noise-unused")
"""Survived all tests of their modules at first."""


class Outcome(NamedTuple):
    """Of one bug."""

    mutation: Mutation
    tests: Run | None
    audit: Run | None

    @property
    def row(self) -> list[str]:
        """Of the table."""
        mutation, audit = self.mutation, self.audit
        seconds = sum(given.seconds for given in (self.tests, audit) if given)
        return [
            f"`{mutation.name}`",
            mutation.wrong,
            mutation.section,
            "formulas" if mutation.written == "from formulas" else "tests read",
            _answer(self.tests),
            "–" if audit is None else f"`{mutation.audit}`: {_answer(audit)}",
            "" if audit is None else _budgets(audit),
            f"{seconds:.0f}",
        ]


def outcomes(mutations: Iterable[Mutation], runs: Mapping[Asked, Run]) -> list[Outcome]:
    """All bugs with what was said of them."""
    of = {(asked.mutation, asked.kind): given for asked, given in runs.items()}
    return [Outcome(mutation, of.get((mutation, "tests")), of.get((mutation, "audit"))) for mutation in mutations]


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


def written(outcomes: Sequence[Outcome], runs: Mapping[Asked, Run]) -> str:
    """The page."""
    tested = sum(bool(outcome.tests and outcome.tests.noticed) for outcome in outcomes)
    audited = sum(bool(outcome.audit and outcome.audit.noticed) for outcome in outcomes)
    formulas = sum(outcome.mutation.written == "from formulas" for outcome in outcomes)
    survivors = [f"`{outcome.mutation.name}`" for outcome in outcomes if not (outcome.tests and outcome.tests.noticed)]
    unseen = [f"`{outcome.mutation.name}`" for outcome in outcomes if outcome.audit and not outcome.audit.noticed]
    parts = [
        HEAD,
        f"Of {len(outcomes)} mistakes tests notice {tested}, audits {audited}. {formulas} were written from the "
        "formulas and the code, before any test of them was read. ",
        f"No test notices: {', '.join(survivors) or 'none'}. "
        f"At first none noticed {', '.join(f'`{name}`' for name in MENDED)}: each has a test since. "
        f"An audit is asked and sees nothing: {', '.join(unseen) or 'none'}.\n\n",
        _table(
            [
                "mistake",
                "what is wrong",
                "methods.md",
                "written from",
                "test",
                "audit",
                "proved / accounted ε",
                "CPU s",
            ],
            (outcome.row for outcome in outcomes),
        ),
        "\n## Controls\n\nThe same audits on the code as it is; all tests named above pass on it.\n\n",
        _table(
            ["audit", "verdict", "proved / accounted ε", "CPU s"],
            (
                [f"`{asked.names[0]}`", given.verdict, _budgets(given), f"{given.seconds:.0f}"]
                for asked, given in runs.items()
                if asked.kind == "audit" and not asked.mutation
            ),
        ),
    ]
    return "".join(parts)


def _answer(given: Run | None) -> str:
    if given is None:
        return "–"
    return "broken" if given.broken else "yes" if given.noticed else "no"


def _budgets(given: Run) -> str:
    """What is proved is rounded down, what is accounted up: neither says more than was shown."""
    proved = math.floor(100 * given.proved + 1e-6) / 100
    accounted = "∞" if given.accounted is None else f"{math.ceil(100 * given.accounted - 1e-6) / 100:.2f}"
    return f"{proved:.2f} / {accounted}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
