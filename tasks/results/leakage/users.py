"""Which users pay: how ranking quality and the popularity of what is recommended spread over users, ten a bin or more.

A user's exposure is the mean popularity of the items in the list: the share of users who have an item.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import polars as pl

from tasks.results.leakage import significance
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results


def gains(results: Results) -> pl.DataFrame:
    """No attack: no rows."""
    del results
    return significance.table(())


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`rows`: per system and metric the cut-off, and upper edges of the bins of the users at a tenth and at half."""
    del judged
    rows: dict[str, dict[str, Any]] = {}
    systems = {system.experiment: system.label for system in results.suite.compared}
    compared = results.spreads.filter(pl.col("experiment").is_in(list(systems)))
    for bins in compared.partition_by("experiment", "metric", maintain_order=True):
        experiment, metric, k = bins.row(0)[:3]
        total = int(bins["users"].sum())
        row = rows.setdefault(experiment, {"experiment": experiment, "label": systems[experiment], "users": total})
        below = list(zip(bins["high"], accumulate(bins["users"]), strict=True))
        for name, share in (("tenth", 0.1), ("half", 0.5)):
            row[f"{metric}_{name}"] = next(edge for edge, count in below if count >= share * total)
        row[f"{metric}_k"] = k
    return {"rows": list(rows.values())}


KIND = Kind("users", "", gains, shown=shown)
