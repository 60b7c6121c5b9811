"""docs/planted.md: which bug was noticed by what."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.privacy.planted.mutation import ROOT, Mutation
from tests.privacy.planted.runner import Asked, Run

PLACE = ROOT / "docs" / "planted.md"
HEAD = """# Planted bugs: which mistakes tests and audits notice

`make planted` puts each mistake of `tests/privacy/planted/*.txt`, by itself, into a copy of the code, runs a few tests
on the copy, and the audit of a model that runs the mistake, and writes this page. A test must fail. An audit notices a
mistake if it proves more than the model's own ledger accounts for, at 0.999 confidence, from samples of real fits and
without knowledge of the mistake. Audits have one worst case and a limited number of samples: where one sees nothing,
its cell says so.

"""


class Outcome(NamedTuple):
    """Of one bug."""

    mutation: Mutation
    tests: Run | None
    audit: Run | None

    @property
    def row(self) -> list[str]:
        """Of the table of those that an audit was asked for."""
        assert self.audit is not None
        name, wrong, audit = self.mutation.name, self.mutation.wrong, self.mutation.audit
        return [f"`{name}`", wrong, f"{_answer(self.audit)}`{audit}` {_budgets(self.audit)}"]


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
    formulas = sum(not outcome.mutation.tests_read for outcome in outcomes)
    survivors = [f"`{outcome.mutation.name}`" for outcome in outcomes if not (outcome.tests and outcome.tests.noticed)]
    alone = Counter(int(outcome.mutation.section.strip("§")) for outcome in outcomes if not outcome.audit)
    sections = ", ".join(f"§{section} {count}" for section, count in sorted(alone.items()))
    controls = (
        (asked.names[0], given) for asked, given in runs.items() if asked.kind == "audit" and not asked.mutation
    )
    parts = [
        HEAD,
        f"Of {len(outcomes)} mistakes tests notice {tested}, audits {audited}. {formulas} were written from the "
        "formulas and the code, before any test of them was read. ",
        f"No test notices: {', '.join(survivors) or 'none'}. Tests alone were asked of {alone.total()}, by section of "
        f"[methods](methods.md): {sections}.\n",
        "\n## Audits were asked\n\n",
        _table(["mistake", "what is wrong", "audit, ε proved / accounted"], (of.row for of in outcomes if of.audit)),
        "\n## Controls\n\nThe same audits on the code as it is: not refuted, but where a line says so. All tests of "
        "the mistakes pass on it.\n\n",
        *(
            f"* `{name}`: {_budgets(given)}{'' if given.verdict == 'not refuted' else f', {given.verdict}'}\n"
            for name, given in controls
        ),
    ]
    return "".join(parts)


def _answer(given: Run) -> str:
    return "broken: " if given.broken else "" if given.noticed else "not noticed: "


def _budgets(given: Run) -> str:
    """What is proved is rounded down, what is accounted up: neither says more than was shown."""
    proved = math.floor(100 * given.proved + 1e-6) / 100
    accounted = "∞" if given.accounted is None else f"{math.ceil(100 * given.accounted - 1e-6) / 100:.2f}"
    return f"{proved:.2f} / {accounted}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
