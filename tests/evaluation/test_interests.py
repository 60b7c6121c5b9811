"""Interests predicted from embeddings: by what names, and on which splits."""

import numpy as np
import polars as pl
import pytest

from tasks.evaluation.classification import interests, predict_labels, split_seed
from tasks.quality import metrics
from tests.stages import tiny_networks

N, LABELS = 120, ("art", "music", "sport")


def labels() -> pl.DataFrame:
    """Of every second user, in random order; of one of them a label is not known."""
    rng = np.random.default_rng(0)
    users = rng.permutation(N)[: N // 2].astype(np.int32)
    table = pl.DataFrame({"user": users} | {label: rng.integers(0, 2, len(users)) for label in LABELS})
    return table.with_columns(music=pl.when(pl.col("user") == users[5]).then(None).otherwise(pl.col("music")))


def vectors(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, 4)).astype(np.float32)


def values(rows: np.ndarray, table: pl.DataFrame, seed: int = 3) -> dict[str, float]:
    return {record["metric"]: record["value"] for record in interests("left", rows, table, seed=seed)}


def test_metrics_are_those_that_the_check_expects_and_means_over_the_splits() -> None:
    actual = interests("left", vectors(), labels(), seed=3)
    schema = tiny_networks.LEFT.model_copy(update={"labels": LABELS})
    assert [(actual["metric"], actual["k"]) for actual in actual] == metrics.embedding_metrics({"left": schema})
    known = labels().drop_nulls()
    assert len(known) == N // 2 - 1
    expected = predict_labels(vectors(), known["user"].to_numpy(), known.select(LABELS).to_numpy(), seed=3)
    means = np.mean(expected.scores, axis=0)
    own = values(vectors(), labels())
    names = ("precision", "precision-swapped", "micro-f1")
    assert [own[f"left/interests/{score}"] for score in names] == pytest.approx(means, rel=1e-12)
    everything = np.mean(expected.controls["everything"], axis=0)
    assert [own[f"left/interests/everything/{score}"] for score in names] == pytest.approx(everything, rel=1e-12)


def test_seeds_of_splits_depend_on_both_seeds_and_not_on_their_sum() -> None:
    actual = {split_seed(seed, run) for seed in range(20) for run in range(20)}
    assert len(actual) == 400
    assert split_seed(3, 5) == split_seed(3, 5)
