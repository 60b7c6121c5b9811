"""Reconstruction of the ratings that users keep to themselves, against what published ratings alone predict of them.

The score is the MAE on sensitive ratings of the training data: an attacker has to be below the control, so the gain is
the control's error minus the attacker's. What an attacker does to the method without its noise shows what it can do.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.results.leakage import significance
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results

CONTROL = "public"
UNPROTECTED = "no-noise"
"""Mechanism of the ledger line of a method without its noise."""


def gains(results: Results) -> pl.DataFrame:
    """`significance.GAINS` of attacks.parquet; systems whose ledger claims nothing and bounds nothing are controls."""
    open_ = unprotected(results)
    rows = []
    for row in results.attacks.iter_rows(named=True):
        about = {"target": "sensitive rating", "control": CONTROL, "value": row["mae"], "runs": row["seeds"]}
        about |= {"gain": -row["difference"], "low": _minus(row["high"]), "high": _minus(row["low"])}
        rows.append(row | about | {"is_control": row["experiment"] in open_})
    return significance.table(rows)


def unprotected(results: Results) -> set[str]:
    """Experiments of which the ledger neither claims nor accounts a finite ε, with the ratings in what they release."""
    bounded = {
        line.experiment
        for line in results.lines
        if line.entry.claimed_epsilon is not None or line.entry.accounted_epsilon is not None
    }
    return {line.experiment for line in results.lines} - bounded


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`rows`: at setting `base`, each system's errors by attacker with their gains; `attackers` in their order."""
    del judged
    base = results.attacks.filter(pl.col("setting") == "base")
    attackers = sorted(base["attacker"].unique())
    by_system: dict[str, dict[str, Any]] = {}
    for row in base.iter_rows(named=True):
        cells = by_system.setdefault(row["experiment"], {"experiment": row["experiment"], "control": row["control"]})
        cells[row["attacker"]] = row
    order = [system.experiment for system in results.suite.compared if system.experiment in by_system]
    return {"attackers": attackers, "rows": [by_system[name] for name in order], "open": unprotected(results)}


def _minus(value: float | None) -> float | None:
    return None if value is None else -value


KIND = Kind("ratings", "reconstruction", gains, shown=shown)
