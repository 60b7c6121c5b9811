"""The headline of a suite in a dozen numbers, which `dvc metrics` compares, and what changed since a revision."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.privacy.audits.unaudited import is_private
from tasks.results.coverage import reproduction
from tasks.results.load import Results
from tasks.results.standings import SMALL_EPSILON, Board

Change = tuple[str, str, str, Any, Any]
"""Suite, what (`suite`, `value`, `claim`), its name, before and now; None where there was, or is, none."""


def summary(results: Results, board: Board | None) -> dict[str, Any]:
    """`summary.json`: the same keys in every suite; None where a suite has no such number.

    board: of the suite alone; None where no utility was measured.
    """
    lines = [line for line in results.lines if is_private(line.entry)]
    places = {"ceiling": board and board.ceiling, "noisy_popularity": board and board.noisy}
    places |= {"best_at_small_user_level_epsilon": board and board.best("user", SMALL_EPSILON)}
    return {
        "utility": {"metric": board and board.measure.label, "small_epsilon": SMALL_EPSILON}
        | {name: row and round(row["utility"], 6) for name, row in places.items()},
        "ledger": {
            "private": len(lines),
            "finite": sum(line.entry.accounted_epsilon is not None for line in lines),
            "audited": sum(line.audit is not None for line in lines),
            "refuted": sum(line.audit is not None and line.audit["verdict"] == "refuted" for line in lines),
        },
        "claims": dict(sorted(results.claims["verdict"].value_counts().iter_rows())),
        "published": reproduction(results.comparison),
    }


@dataclass(frozen=True)
class State:
    """The headline of a suite at one revision."""

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`summary.json`: groups of named values."""
    claims: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(artefact, claim) -> verdict."""


def state(summary: str, claims: str) -> State:
    """The headline of a suite from the texts of summary.json and claims.csv, empty where there was none.

    Raises:
        KeyError, ValueError: they are something else.
    """
    rows = csv.DictReader(io.StringIO(claims))
    return State(json.loads(summary or "{}"), {(row["artefact"], row["claim"]): row["verdict"] for row in rows})


def changes(before: Mapping[str, State], now: Mapping[str, State]) -> Iterator[Change]:
    """What differs in headline values, to three decimals, and in verdicts on claims; a suite that is new or gone."""
    for suite in sorted(before.keys() | now.keys()):
        if suite not in before or suite not in now:
            yield suite, "suite", suite, suite in before, suite in now
            continue
        for kind, old, new in (
            ("value", _flat(before[suite]), _flat(now[suite])),
            ("claim", before[suite].claims, now[suite].claims),
        ):
            for name in {**old, **new}:
                if old.get(name) != new.get(name):
                    yield suite, kind, ": ".join(name), old.get(name), new.get(name)


def _flat(state: State) -> dict[tuple[str, str], Any]:
    named = {(group, name): value for group, values in state.values.items() for name, value in values.items()}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in named.items()}
