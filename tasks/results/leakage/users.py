"""Which users pay: how ranking quality and the popularity of what is recommended spread over users, ten a bin or more.

A user's exposure is the mean popularity of the items in the list: the share of users who have an item.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import polars as pl

from tasks.results.leakage import judge
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results


def gains(results: Results) -> pl.DataFrame:
    """No attack: no rows."""
    del results
    return judge.table(())


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`curves`: for each metric and system the share of users whose value is at most x; `rows`: the worst served.

    A row has, by metric, the cut-off and the upper edges of the bins of the user at the lowest tenth and at the half.
    """
    del judged
    curves: list[dict[str, Any]] = []
    rows: dict[str, dict[str, Any]] = {}
    systems = {system.experiment: system.label for system in results.suite.compared}
    compared = results.spreads.filter(pl.col("experiment").is_in(list(systems)))
    for bins in compared.partition_by("experiment", "metric", maintain_order=True):
        experiment, metric, k = bins.row(0)[:3]
        total, edges = bins["users"].sum(), bins["high"].to_list()
        shares = [count / total for count in accumulate(bins["users"])]
        about = {"metric": metric, "k": k, "label": systems[experiment]}
        curves += [about | {"x": x, "y": y} for x, y in zip((bins["low"][0], *edges), (0.0, *shares), strict=True)]
        row = rows.setdefault(experiment, {"experiment": experiment, "label": systems[experiment], "users": total})
        for name, level in (("tenth", 0.1), ("half", 0.5)):
            row[f"{metric}_{name}"] = next(edge for edge, share in zip(edges, shares, strict=True) if share >= level)
        row[f"{metric}_k"] = k
    return {"curves": curves, "rows": list(rows.values())}


KIND = Kind("users", "", gains, shown=shown)
