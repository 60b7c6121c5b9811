"""Attribute inference: what a user's recommendations add to the ratings about gender, age or occupation.

Controls: the most frequent class for everyone (majority), the same attacker that sees the ratings alone (ratings), the
same attacker on labels shuffled among users (random). Only what beats the ratings is due to the recommendations.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.results.leakage import significance
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results

RATINGS = "ratings"


def gains(results: Results) -> pl.DataFrame:
    """`significance.GAINS`: every attack of attacks.parquet that sees lists over its controls, with its F1 as value."""
    rows = []
    for row in results.attacks.filter(pl.col("k") > 0).iter_rows(named=True):
        metric = f"attribute/{row['attribute']}/{row['attacker']}/f1"
        value = results.mean(row["experiment"], metric, row["k"], row["setting"])
        rows.append(row | {"target": row["attribute"], "value": value})
    return significance.table(rows)


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`k`: the longest list that was attacked; `majority`: F1 of guessing; `by_length`: the largest gain; `blurring`.

    `by_length`: per attribute, attacker and length of the list, the largest gain over the ratings alone on any system.

    `blurring`: AUC, with its interval, of a detector of blurred profiles, per system that releases these.
    """
    attributes = judged["target"].unique(maintain_order=True).to_list()
    by_length = judged.group_by("target", "attacker", "k", maintain_order=True).agg(
        pl.col("gain").max(), pl.col("above").any(), pl.len().alias("systems")
    )
    return {
        "by_length": by_length.sort("k", maintain_order=True).to_dicts(),
        "k": judged["k"].max(),
        "majority": {name: _majority(results, name) for name in attributes},
        "blurring": [row for system in results.suite.compared if (row := _blurring(results, system.experiment))],
        "n_targets": results.suite.n_targets,
    }


def _majority(results: Results, attribute: str) -> float | None:
    metric = f"attribute/{attribute}/majority/f1"
    values = results.means.filter((pl.col("metric") == metric) & (pl.col("setting") == "base"))
    return values["mean"].mean() if values.height else None  # type: ignore[return-value]  # of floats


def _blurring(results: Results, experiment: str) -> dict[str, Any] | None:
    detected = {name: results.mean(experiment, f"blurring/detector/{name}") for name in ("auc", "low", "high")}
    if detected["auc"] is None:
        return None
    return {"experiment": experiment, "label": results.system(experiment).label} | detected


KIND = Kind("attributes", "attribute", gains, (RATINGS,), shown)
