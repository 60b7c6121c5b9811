"""Membership inference: whether a released model tells that a user, or an interaction, was in its training data.

By a threshold on one signal, by the likelihood ratio of shadow runs (LiRA) and by RMIA; the score is the AUC, of which
chance has 0.5. Attacks that see nothing of the system are controls: they show what the data alone tell.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.results.leakage import significance
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results

CHANCE = 0.5
BLIND = "nothing"
"""What controls see of a system."""


def gains(results: Results) -> pl.DataFrame:
    """`significance.GAINS` of attacks.parquet: the AUC of every attack over chance."""
    rows = []
    for row in results.attacks.iter_rows(named=True):
        about = {"target": row["target"], "experiment": row["system"], "attacker": row["attack"], "seen": row["seen"]}
        about |= {"control": "chance", "value": row["auc"], "is_control": row["seen"] == BLIND}
        rows.append(about | {name: row[column] - CHANCE for name, column in _COLUMNS.items()})
    return significance.table(rows)


_COLUMNS = {"gain": "auc", "low": "auc_low", "high": "auc_high"}


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`rows`: the attack with the largest AUC on each target and system; `curves`: the ROC of LiRA.

    Rows have the AUC of the strongest control as `auc_control`, and what that is as `control`. A curve has `target`,
    `seen`, `system`, and (n,) `fpr` and `tpr`.
    """
    del judged
    key = ("target", "system")
    ordered = results.attacks.sort("auc", descending=True, maintain_order=True)
    blind = ordered.filter(pl.col("seen") == BLIND).unique(key, keep="first")
    blind = blind.select(*key, auc_control="auc", control="attack")
    best = ordered.filter(pl.col("seen") != BLIND).unique(key, keep="first", maintain_order=True)
    curves = results.attacks.filter((pl.col("attack") == "LiRA") & (pl.col("seen") != BLIND))
    return {
        "rows": best.drop("fpr", "tpr").join(blind, on=key, how="left", maintain_order="left").to_dicts(),
        "curves": curves.select("target", "seen", "system", "fpr", "tpr").to_dicts(),
    }


KIND = Kind("membership", "membership", gains, shown=shown)
