"""What audits show of the lines of a ledger, computed from their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.privacy.audits.audit import Verdict, verdict

SATURATED = 1e-3
"""Relative distance from the largest provable bound up to which a bound is shown as that."""
DIGITS = 3
"""Significant digits to which bounds are rounded down."""
CONTROLS = ("half", "none")
"""How much of its noise an audited system keeps in a control."""


def controls(audit: Mapping[str, Any]) -> list[float]:
    """What the same audit proves with half of the noise, then with none; nothing where these were not run."""
    bounds = [audit[f"control_{name}"] for name in CONTROLS]
    return [bound for bound in bounds if bound is not None]


def verdict_of(audit: Mapping[str, Any], accounted: Iterable[float | None] = ()) -> Verdict:
    """The verdict on an audit, a row of audits.csv.

    accounted: ε of the lines that it is of; infinity or None: no finite one. A claim of more than was audited stays
    inconclusive.
    """
    bounds = [
        audit["epsilon_accounted"],
        *(None if value is not None and math.isinf(value) else value for value in accounted),
    ]
    largest = None if None in bounds else max(bounds)
    return verdict(audit["audited_epsilon"], audit["epsilon_claimed"], largest, controls(audit))


def is_saturated(audit: Mapping[str, Any]) -> bool:
    """Whether no mechanism could have made the bound larger with so many samples."""
    return math.isclose(audit["audited_epsilon"], audit["provable"], rel_tol=SATURATED)


def rounded_down(bound: float) -> float:
    """A bound with `DIGITS` significant digits, no more than it was (doubles may be off by a trillionth)."""
    if not bound or math.isinf(bound):
        return bound
    unit = 10.0 ** (DIGITS - 1 - math.floor(math.log10(bound)))
    return math.floor(bound * unit * (1 + 1e-12)) / unit
