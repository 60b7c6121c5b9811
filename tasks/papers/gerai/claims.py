"""What GERAI's claims compute of its printed numbers: section 5.4, Tables 2 and 4, and the noise of section 5.6."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.privacy.mechanisms import functional
from tasks.results.claims import Verdict
from tasks.results.printed import Against

NOISE = {20: (0.00375, 5e-6), 40: (0.01375, 5e-6), 60: (0.03, 5e-3), 80: (0.05, 5e-3), 100: (0.08, 5e-3)}
"""Dimension -> the printed scale of the Laplace noise and half of its last digit (section 5.6)."""
EPSILON, N_TRIPLES = 0.4, 80_000
"""The paper's budget of the loss, and 80 % of the ratings of ML-100K."""


def numbers(against: Against) -> dict[str, Any]:
    """Names for the rows of claims, from the printed tables.

    Returns:
        halved: attribute -> by which share of GCN's F1 GERAI must be below it, half of the gain in Table 2 (mean over
            K); loss: the most of GCN's Hit@5 or NDCG@5 that a variant loses in Table 4, in percent, None where nothing
            is printed; kept: the share that a loss half larger leaves.
    """
    printed = against.results.published.filter(pl.col("paper") == "gerai").with_columns(
        metric=pl.col("metric").str.split("@").list.first()
    )
    means = printed.filter(pl.col("artefact") == "table2").group_by("metric", "method").agg(pl.col("value").mean())
    f1 = {(metric.removeprefix("f1_"), method): value for metric, method, value in means.iter_rows()}
    halved = {
        attribute: (1 + f1[attribute, "GERAI"] / f1[attribute, "GCN"]) / 2
        for attribute in ("age", "gender", "occupation")
        if f1.keys() >= {(attribute, "GERAI"), (attribute, "GCN")}
    }
    ablation = printed.filter((pl.col("artefact") == "table4") & pl.col("metric").is_in(["hit", "ndcg"]))
    public = ablation.filter(pl.col("method") == "GCN").select("metric", public="value")
    loss = ablation.join(public, on="metric").select(1 - pl.col("value") / pl.col("public")).max().item()
    return {"halved": halved, "loss": loss and 100 * loss, "kept": loss and 1 - 1.5 * loss}


def noise_scales(_: Against) -> tuple[Verdict, dict[str, float]]:
    """The noise that Figure 2 is said to have, by the paper's own formula: no run is needed.

    Returns:
        the verdict, and the scale (d + d²/4)/(ε|D|) at each dimension d.
    """
    scales = {dimension: functional.noise_scale(dimension, EPSILON, N_TRIPLES) for dimension in NOISE}
    fits = all(abs(scales[dimension] - printed) <= half for dimension, (printed, half) in NOISE.items())
    return "supported" if fits else "contradicted", {f"d = {dimension}": scale for dimension, scale in scales.items()}
