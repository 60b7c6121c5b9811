"""Claims of DP-VAE whose words say more than an order."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from tests.reporting import example_dpvae, shown


@pytest.mark.parametrize(
    ("neighbours", "verdict"),
    [
        (0.52, "supported"),
        (0.90, "contradicted"),  # by far more than slightly
        (0.40, "contradicted"),  # lower
    ],
)
def test_slightly_higher_is_neither_lower_nor_much_higher(neighbours: float, verdict: str) -> None:
    """DP-VAE has an NDCG@10 of 0.5."""
    known = example_dpvae.results()
    at_ten = (pl.col("metric") == "full/ndcg") & (pl.col("k") == 10)
    theirs = pl.col("experiment").is_in(["dpvae-knn", "dpvae-svd"])
    level = pl.when(theirs).then(neighbours).otherwise(0.5) + 0.001 * pl.col("seed") * pl.when(theirs).then(
        1
    ).otherwise(-1)
    value = pl.when(at_ten).then(level).otherwise(pl.col("value"))
    changed = replace(known, metrics=known.metrics.with_columns(value=value))
    said = "KNN and SVD have a slightly higher NDCG@10 than DP-VAE"
    (actual,) = [claim for claim in shown.claims(changed, 100) if claim.claim.startswith(said)]
    assert actual.verdict == verdict
