"""Which audit is of which line of a ledger: the one that says that it audited this line, and no other.

A record of audit.json names the experiments and settings that it covers, what is protected, the mechanism, the network,
the observer and the budget; all of them must be those of the line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits import unaudited
from tasks.reporting.core.results import Results, System

Record = Mapping[str, Any]
SATURATED = 1e-3
"""Relative distance from the largest provable bound up to which a bound is shown as that."""
CONTROLS = ("half", "none")
"""How much of its noise an audited system keeps in a control."""


def audit_of(
    results: Results, system: System, setting: str, entry: LedgerEntry, network: str = ""
) -> dict[str, Any] | None:
    """The audit of what an entry says of a system at a setting; where there are several, the one that proves most."""
    own = [
        record
        for record in results.audit
        if _is_same(record, entry)
        and setting in record["covers"].get(system.experiment, ())
        and record["network"] in ("", network)
    ]
    return max(own, key=lambda record: float(record["audited_epsilon"]), default=None)


def reason(entry: LedgerEntry) -> str:
    """Why there is no audit of an entry; empty where no reason is known."""
    if entry.accounted_epsilon == 0:
        return "nothing that is released depends on it"
    return unaudited.reason(entry)


def is_private(entry: LedgerEntry) -> bool:
    """Whether a ledger claims or accounts a finite budget."""
    return entry.claimed_epsilon is not None or entry.accounted_epsilon is not None


def unexplained_lines(results: Results) -> list[str]:
    """Each private line that has neither an audit nor a reason, as text that names the system."""
    lines = set()
    for system in results.systems:
        for spent in system.spent:
            entry = spent.entry
            if is_private(entry) and not (
                audit_of(results, system, spent.setting, entry, spent.network) or reason(entry)
            ):
                towards = f", towards {entry.observer}" if entry.observer else ""
                lines.add(f"{system.name}, {spent.setting}: {entry.mechanism}{towards}")
    return sorted(lines)


def format_bound(record: Record) -> str:
    """The bound of an audit as text."""
    return f"≥ {record['audited_epsilon']:.{3 if saturation_note(record) else 4}g}"


def saturation_note(record: Record) -> str:
    """What to say of a bound that no mechanism could have made larger; empty for others."""
    if not math.isclose(record["audited_epsilon"], record["provable"], rel_tol=SATURATED):
        return ""
    return f"the most that {record['samples']:,} samples can prove, on a worst case built for it"


def format_controls(record: Record) -> str:
    """What the audit proves of the same system with half of its noise, then with none, as text; a dash: not run."""
    return ", ".join(f"≥ {record['controls'][control]:.3g}" for control in CONTROLS if record["controls"]) or "–"


def _is_same(record: Record, entry: LedgerEntry) -> bool:
    """Whether an audit is of the same mechanism, for the same ε at the same δ, towards the same observer."""
    budget = entry.accounted_epsilon if entry.claimed_epsilon is None else entry.claimed_epsilon
    return (
        budget is not None
        and (record["protects"], record["mechanism"], record["observer"])
        == (entry.protects, entry.mechanism, entry.observer)
        and math.isclose(record["epsilon_claimed"], budget)
        and math.isclose(record["delta"], entry.accounted_delta)
    )
