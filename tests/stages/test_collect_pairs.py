"""What is collected of users: differences between the systems that are compared."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks import contracts
from tasks.config.params import load
from tasks.evaluation.pairs import BY_USER
from tasks.evaluation.run_numbers import APART
from tasks.stages import collect, train
from tasks.stages.collect_parts import compare_pairs
from tasks.stages.common import PROCESSED, RESULTS, RUNS
from tests.stages import example, test_splits, tiny


def test_pairs_are_the_planned_ones_and_their_means_those_of_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(example.build(tmp_path))
    collect.main("gerai")
    actual = pl.read_parquet(RESULTS / "gerai/pairs.parquet")
    assert actual.select("a", "b").unique(maintain_order=True).rows() == [
        ("gerai-gerai", "gerai-dp-popularity"), ("gerai-gerai", "gerai-gcn"), ("gerai-gerai-nf", "gerai-dp-popularity")
    ]  # fmt: skip
    base = pl.read_parquet(RESULTS / "gerai/metrics.parquet").filter(setting="base")
    level = base.group_by("experiment", "metric", "k").agg(pl.col("value").mean())
    keys = ["metric", "k"]
    joined = actual.join(level, left_on=["a", *keys], right_on=["experiment", *keys])
    joined = joined.join(level, left_on=["b", *keys], right_on=["experiment", *keys], suffix=" of b")
    assert len(joined) == len(actual) == 3 * base.filter(pl.col("metric").str.contains("full|sampled"))[keys].n_unique()
    assert (joined["value"] - joined["value of b"]).to_list() == pytest.approx(joined["mean"].to_list())
    assert set(actual["n_users"]) == {4}
    assert actual["var_users"].to_list() == pytest.approx([0.0] * len(actual))  # all users differ alike


def test_users_are_compared_over_splits_by_their_published_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other split numbers the same users from the last to the first."""
    test_splits.build(tmp_path, monkeypatch)
    ids = pl.DataFrame({"id": range(tiny.N_USERS), "original": [f"u{user}" for user in range(tiny.N_USERS)]})
    contracts.write(ids, PROCESSED / "tiny/user_ids.parquet", contracts.ID_MAP)
    contracts.write(
        ids.with_columns(pl.col("original").reverse()),
        PROCESSED / test_splits.OTHER / "user_ids.parquet",
        contracts.ID_MAP,
    )
    for name in ("tiny-counts", "tiny-gerai"):
        train.main(name)
    pairs = compare_pairs("tiny", load()).filter(metric="full/ndcg", k=5)
    assert pairs.select("a", "b", "n_users", "n_runs").rows() == [("tiny-gerai", "tiny-counts", tiny.N_USERS, 2)]
    by_user = {}
    for run in test_splits.RUNS_OF_BASE:
        gerai, counts = (
            contracts.read(RUNS / "tiny" / name / f"train/users/seed-{run}.parquet", BY_USER)
            .filter(metric="full/ndcg", k=5).sort("user")["total"].to_numpy()
            for name in ("tiny-gerai", "tiny-counts")
        )  # fmt: skip
        by_user[run] = (gerai - counts)[:: -1 if run >= APART else 1]
    values = np.array(list(by_user.values()))
    assert pairs["mean"][0] == pytest.approx(values.mean())
    assert pairs["var_users"][0] == pytest.approx(values.mean(axis=0).var(ddof=1))
    assert pairs["var_runs"][0] == pytest.approx(values.reshape(2, 2, -1).mean(axis=(1, 2)).var(ddof=1))
