"""What GERAI's claims compute of its printed numbers: section 5.4, Tables 2 and 4, and the noise of section 5.6."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.privacy.mechanisms import functional
from tasks.reporting.core.results import Results
from tasks.results.claims import Verdict

DIMENSIONS = (20, 40, 60, 80, 100)
NOISE = ("0.00375", "0.01375", "0.03", "0.05", "0.08")
"""The printed scales of the Laplace noise for these dimensions (section 5.6)."""
EPSILON, N_TRIPLES = 0.4, 80_000
"""The paper's budget of the loss, and 80 % of the ratings of ML-100K."""


def numbers(results: Results) -> dict[str, Any]:
    """Names for the rows of claims, from the printed tables.

    Returns:
        halved: attribute -> by which share of GCN's F1 GERAI must be below it, half of the gain in Table 2 (mean over
            K); loss: the most of GCN's Hit@5 or NDCG@5 that a variant loses in Table 4, in percent, None where nothing
            is printed; kept: the share that a loss half larger leaves.
    """
    printed = results.published.filter(pl.col("paper") == "gerai").with_columns(
        metric=pl.col("metric").str.split("@").list.first()
    )
    means = printed.filter(pl.col("artefact") == "table2").group_by("metric", "method").agg(pl.col("value").mean())
    of = {(metric.removeprefix("f1_"), method): value for metric, method, value in means.iter_rows()}
    halved = {
        attribute: (1 + of[attribute, "GERAI"] / of[attribute, "GCN"]) / 2
        for attribute in ("age", "gender", "occupation")
        if of.keys() >= {(attribute, "GERAI"), (attribute, "GCN")}
    }
    ablation = printed.filter((pl.col("artefact") == "table4") & pl.col("metric").is_in(["hit", "ndcg"]))
    public = ablation.filter(pl.col("method") == "GCN").select("metric", public="value")
    loss = ablation.join(public, on="metric").select(1 - pl.col("value") / pl.col("public")).max().item()
    return {"halved": halved, "loss": loss and 100 * loss, "kept": loss and 1 - 1.5 * loss}


def noise_scales(_: Results) -> tuple[Verdict, str]:
    """The noise that Figure 2 is said to have, by the paper's own formula: no run is needed."""
    scales = [functional.noise_scale(dimension, EPSILON, N_TRIPLES) for dimension in DIMENSIONS]
    fits = all(
        abs(scale - float(text)) <= 0.5 * 10.0 ** -len(text.partition(".")[2])
        for scale, text in zip(scales, NOISE, strict=True)
    )
    shown = ", ".join(f"{scale:.5g}" for scale in scales)
    return (
        "supported" if fits else "contradicted",
        f"(d + d²/4)/(ε|D|) with ε = {EPSILON:g} and |D| = {N_TRIPLES:,} gives {shown}"
        f"{'; the printed ones are rounded' if fits else ''}.",
    )
