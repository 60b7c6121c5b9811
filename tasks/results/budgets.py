"""What each system spends at each level (a user, an interaction, the features, ...): claimed, accounted, audited."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from tasks.privacy.audits.unaudited import is_private
from tasks.privacy.terms import Level, Observer
from tasks.privacy.units import LEVELS
from tasks.results.load import Line, Results

if TYPE_CHECKING:
    from tasks.core.rows import Columns
    from tasks.privacy.terms import Unit

UNPROTECTED: dict[str, Level] = {"feature": "feature", "text": "text", "edge": "edge", "anchor": "edge"}
"""Kind of data that no mechanism protects -> its level, where that is not `interaction`."""
BUDGETS: Columns = {
    **dict.fromkeys(("experiment", "setting", "level"), pl.String),
    **dict.fromkeys(("claimed", "accounted"), pl.Float64),
    "observer": pl.String,
    **dict.fromkeys(("delta", "audited", "provable"), pl.Float64),
    "verdict": pl.String,
    "private": pl.Boolean,
    **dict.fromkeys(("given", "units"), pl.List(pl.String)),
}


def level(unit: Unit, protects: str = "") -> Level:
    """The level at which something protects, or fails to."""
    return LEVELS.get(unit) or UNPROTECTED.get(protects, "interaction")


def budgets(results: Results) -> pl.DataFrame:
    """`BUDGETS`: a row for each experiment, setting and level of which the ledger has a line, in its order.

    `claimed`: the largest claim; null without one. `accounted`: all releases of one run that spend at this level, added
    up (basic composition) towards the observer who sees most, of the seed with most; infinity where one of them has no
    finite ε. `observer`: who that is; empty for anyone, or where several have no finite ε. `audited`, `provable`: the
    largest bound and what could have been proved; null without an audit. `verdict`: `refuted` where one claim is,
    `consistent` where all audits are, else `inconclusive`. `private`: whether anything is claimed or finite. `given`:
    conditions of the finite lines. `units`: whom, or what, its lines are of.
    """
    grouped: dict[tuple[str, str, str], list[Line]] = {}
    for line in results.lines:
        key = (line.experiment, line.setting, level(line.entry.unit, line.entry.protects))
        grouped.setdefault(key, []).append(line)
    rows = [dict(zip(BUDGETS, key, strict=False)) | _row(lines) for key, lines in grouped.items()]
    return pl.DataFrame(rows, schema=BUDGETS)


def units_of(rows: pl.DataFrame) -> list[str]:
    """The units of rows of one level, each once."""
    return sorted(set(rows["units"].explode().drop_nulls()))


def _row(lines: Sequence[Line]) -> dict[str, object]:
    entries = [line.entry for line in lines]
    audits = [line.audit for line in lines if line.audit is not None]
    claims = [entry.claimed_epsilon for entry in entries if entry.claimed_epsilon is not None]
    finite = [entry for entry in entries if entry.accounted_epsilon is not None]
    total, observer = accounted(lines)
    return {
        "claimed": max(claims, default=None),
        "accounted": total,
        "observer": observer,
        "delta": max(entry.accounted_delta for entry in entries),
        "audited": max((audit["audited_epsilon"] for audit in audits), default=None),
        "provable": max((audit["provable"] for audit in audits), default=None),
        "verdict": worst(audit["verdict"] for audit in audits),
        "private": any(is_private(entry) for entry in entries),
        "given": list(dict.fromkeys(condition for entry in finite for condition in entry.given)),
        "units": sorted({entry.unit for entry in entries}),
    }


def worst(verdicts: Iterable[str]) -> str | None:
    """The verdict on several audits together; None without any."""
    present = set(verdicts)
    return next((verdict for verdict in ("refuted", "inconclusive", "consistent") if verdict in present), None)


def accounted(lines: Sequence[Line]) -> tuple[float, Observer]:
    """ε of all releases of one run, added up: of the seed, and towards the observer, with most; and that observer.

    Entries of the same releases for the same unit are one guarantee. What one mechanism releases of one network costs
    what it does for its largest unit.
    """
    endless = {line.entry.observer for line in lines if line.entry.accounted_epsilon is None}
    if endless:
        return math.inf, endless.pop() if len(endless) == 1 else ""
    observers = {line.entry.observer for line in lines}
    totals: dict[tuple[int, Observer], dict[tuple[str, ...], float]] = {}
    released: dict[str, str] = {}
    for line in lines:
        entry = line.entry
        events = entry.model_dump_json(include={"unit", "events"} if entry.events else {"protects", "mechanism"})
        mechanism = released.setdefault(line.network + events, entry.mechanism)
        for seed in line.seeds:
            for observer in [entry.observer] if entry.observer else observers:
                of_run = totals.setdefault((seed, observer), {})
                key = (line.network, mechanism)
                of_run[key] = max(of_run.get(key, 0.0), entry.accounted_epsilon or 0.0)
    sums = {key: sum(of_run.values()) for key, of_run in totals.items()}
    most = max(sums, key=lambda key: sums[key])
    return sums[most], most[1]
