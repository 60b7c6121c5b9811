"""What committed results say in words and what is right: corrected as they are read, until they are made again.

Sentences of a ledger are written where a system is trained, those about a suite's data where its results are collected.
Numbers are never touched. A sentence that no committed results have any more is refused by a test. An audit is made of
one line, and others may join it: where any of these has more accounted than claimed, "consistent" would be too much.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tasks.reporting.core import ledger
from tasks.reporting.core.results import Results

SENTENCES = {
    # Item vectors and the map are learnt at every step, and the states that are aggregated come from both.
    "the configuration, the epoch and the item vectors of every epoch": (
        "the configuration, the epoch and, of every step, the item vectors and the map of users' features"
    ),
    "the items being known, given the item vectors of every epoch": (
        "the items being known, given, of every step, the item vectors and the map of users' features"
    ),
    (
        "Item vectors are learnt from labels without noise: from the second epoch on, a visit also moves what "
        "aggregates of other users are computed from. Without these vectors no finite ε follows for the epochs "
        "together."
    ): (
        "Item vectors and the map of users' features are learnt from labels without noise: from the second step on, a "
        "visit also moves what aggregates of other users are computed from. Unless both are given, of every step, no "
        "finite ε follows for the epochs together."
    ),
}
"""What results say -> what is right."""
ROUNDED = 1e-6
"""By how much of itself an accounted ε may be above what is claimed, as audits have it."""


def correct(results: Results) -> Results:
    """The same results with `SENTENCES` in what ledgers take as given, in their reasons and in the suite's limits."""
    systems = tuple(
        replace(
            system,
            spent=tuple(
                replace(
                    spent,
                    entry=spent.entry.model_copy(
                        update={
                            name: _corrected(getattr(spent.entry, name)) for name in ("neighbouring", "given", "reason")
                        }
                    ),
                )
                for spent in system.spent
            ),
        )
        for system in results.systems
    )
    return replace(results, systems=systems, limits=_corrected(results.limits), audit=_weighed(results))


def _weighed(results: Results) -> tuple[dict[str, Any], ...]:
    """The audits; those that find a claim consistent of which a line has more accounted are inconclusive."""
    weak = [
        line.audit
        for line in ledger.lines(results)
        if line.audit is not None
        and line.audit["verdict"] == "consistent"
        and line.entry.accounted_epsilon is not None
        and line.entry.accounted_epsilon > line.audit["epsilon_claimed"] * (1 + ROUNDED)
    ]
    return tuple(
        record | {"verdict": "inconclusive"} if any(record is of for of in weak) else record for record in results.audit
    )


def _corrected(text: str) -> str:
    for said, right in SENTENCES.items():
        text = text.replace(said, right)
    return text
