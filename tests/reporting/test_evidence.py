"""What the reasons of reversed orders say of our own runs, held to the committed results."""

from __future__ import annotations

import polars as pl
import pytest

from tasks.reporting.core import differences
from tasks.stages.papers import describe
from tests.reporting.committed import read

PRIVSR = ("privsr", "privsr-epinions", "privsr-yelp-hin")
NOISY = describe("dpvae").reasons[0].better
AT_RANDOM = 0.029
"""NDCG@100 of lists at random on MovieLens 100K (docs/choices-dpvae.md)."""


def test_no_vectors_tell_occupations_better_than_the_majority() -> None:
    of, _, _ = read("dpcrosue")
    judged = [system for system in of.compared if system.label != "attributes"]
    assert len(judged) > 10
    for system in judged:
        right, majority = (
            of.values(system, f"foursquare/occupation/{name}", 0).mean() for name in ("micro-f1", "majority/micro-f1")
        )
        assert right < majority, system.label


def test_rows_with_the_printed_noise_are_those_that_train_with_it() -> None:
    versions = [version for table in describe("dpvae").tables for version in table.versions]
    noisy = {of.name for of in versions if of.method == "DP-VAE" or "privacy=dpsgd" in of.ours}
    assert {of.name for of in versions if differences.is_row(of.name, NOISY)} == noisy
    assert len(noisy) > 10


def test_the_printed_noise_leaves_dp_vae_at_most_twice_what_chance_has() -> None:
    of, report, _ = read("dpvae")
    noisy = {
        entry.method.name: float(entry.ours.mean())
        for pair in differences.pairs(of, report.differences)
        if pair.column.published == "ndcg@100"
        for entry in (pair.better, pair.worse)
        if differences.is_row(entry.method.name, NOISY)
    }
    assert len(noisy) > 10
    assert max(noisy.values()) < 2 * AT_RANDOM


@pytest.mark.parametrize("suite", PRIVSR)
def test_the_papers_attack_errs_more_than_published_ratings_allow(suite: str) -> None:
    attacks = ["reconstruction/published/mae", "reconstruction/public/mae"]
    metrics = read(suite)[0].metrics.filter(pl.col("metric").is_in(attacks))
    by_run = metrics.pivot(on="metric", index=["experiment", "setting", "seed"], values="value")
    assert by_run.height > 200
    assert (by_run[attacks[0]] > by_run[attacks[1]]).all()


@pytest.mark.parametrize("suite", PRIVSR)
def test_noise_ends_training_where_any_rating_is_sensitive(suite: str) -> None:
    """An epoch is 30 iterations; patience adds five to the best."""
    last = read(suite)[0].metrics.filter(
        (pl.col("metric") == "iterations")
        & ~pl.col("setting").str.contains("sensitive_share=0.0", literal=True)
        & ~pl.col("setting").str.contains("learning_rate")
    )
    best = pl.col("value") / 30 - 5
    small = pl.col("setting").str.contains(r"epsilon=0\.0[15](,|$)")
    privsr = last.filter(pl.col("experiment").str.ends_with("-privsr") & small).select(best)
    dpmf = last.filter(pl.col("experiment").str.ends_with("-dpmf")).select(best)
    assert 1 <= privsr["value"].min() <= privsr["value"].max() <= 4  # type: ignore[operator]
    assert 1 <= dpmf["value"].min() <= dpmf["value"].max() <= 7  # type: ignore[operator]
