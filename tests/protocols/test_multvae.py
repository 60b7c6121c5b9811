"""Mult-VAE's split: users are held out whole, and nothing but what training users have is to be found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.core.contracts import RatingScale
from tasks.core.errors import DataError
from tasks.papers.multvae.protocol import Options, prepare
from tasks.papers.protocol import Prepared
from tests.protocols.tables import as_published, assert_same, interactions, stored

SCALE = RatingScale(low=0.5, high=5, step=0.5)
OPTIONS = Options(keep={"rating": (4, None)}, min_items=5, held_out=0.2, target_share=0.2, split_seed=3)
N_USERS, N_ITEMS = 60, 40


def ratings(seed: int = 0) -> pl.DataFrame:
    """Users 101 to 160 rate two thirds of the items 1 to 40 each, about half of them highly."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 2 / 3)
    stars = rng.choice([2.5, 3.5, 4.0, 5.0], len(users))
    return interactions(*zip(users + 101, items + 1, stars, rng.integers(1, 10**9, len(users)), strict=True))


def prepared(folder: Path, table: pl.DataFrame, options: Options = OPTIONS, **schema: object) -> Prepared:
    about = {"scale": SCALE, "unique_pairs": True, "time": "seconds"} | schema
    return prepare(stored(folder, {"interactions": table}, **about), options)


def test_users_are_held_out_and_a_fifth_of_their_items_is_to_be_found(tmp_path: Path) -> None:
    result = prepared(tmp_path, ratings())
    rows = result.tables["interactions"].with_columns(pl.col("split").cast(pl.String))
    assert rows["user"].unique().sort().to_list() == list(range(result.n_users))
    assert rows["item"].unique().sort().to_list() == list(range(result.n_items))
    assert rows["rating"].min() >= 4
    assert rows.equals(rows.sort("user", "item"))
    first = 0
    for split in ("test", "valid"):
        sizes = rows.group_by("user").agg(n=pl.len(), targets=(pl.col("split") == split).sum()).sort("user")
        held = sizes.slice(first, (sizes["targets"] > 0).sum())
        assert 4 <= len(held) <= 22
        assert held["targets"].to_list() == [n // 5 for n in held["n"]]
        assert sizes["targets"].sum() == held["targets"].sum()
        first += len(held)
    assert set(rows.filter(pl.col("user") >= first)["split"]) == {"train"}
    assert result.counts[0].step == "published"
    assert result.counts[-1].interactions == len(rows)


def test_each_user_keeps_the_published_rows(tmp_path: Path) -> None:
    published = ratings()
    result = prepared(tmp_path / "raw", published)
    tables = as_published(result, tmp_path / "processed")
    originals = [tables[name]["original"].cast(pl.Int64).to_numpy() for name in ("user_ids", "item_ids")]
    rows = tables["interactions"]
    back = rows.with_columns(user=originals[0][rows["user"].to_numpy()], item=originals[1][rows["item"].to_numpy()])
    expected = published.filter(pl.col("rating") >= 4)
    columns = expected.columns
    assert back.select(columns).sort("user", "item").equals(expected.sort("user", "item"))
    held = rows.filter(pl.col("split") != "train").group_by("user").agg(pl.col("split").first()).sort("user")
    ends = [(held["split"] == "test").sum(), len(held)]
    assert all(np.diff(part).min() > 0 for part in np.split(originals[0], ends))


def test_users_with_few_items_are_left_out_before_users_are_drawn(tmp_path: Path) -> None:
    few = interactions(*((999, item, 5.0, 1) for item in range(1, 5)), *((998, item, 3.5, 1) for item in range(1, 20)))
    without, result = (
        prepared(tmp_path / "without", ratings()),
        prepared(tmp_path / "with", pl.concat([ratings(), few])),
    )
    assert [count.users for count in result.counts] == [62, 61, 60, 60]
    assert_same(replace(result, counts=without.counts), without)


def test_items_that_no_training_user_has_are_left_out(tmp_path: Path) -> None:
    """... and a held-out user who then has too few; every item of these is the user's own."""
    alone = interactions(*((200 + user, 1000 + 10 * user + item, 5.0, 1) for user in range(12) for item in range(8)))
    result = prepared(tmp_path, pl.concat([ratings(), alone]))
    originals = result.tables["item_ids"]["original"].cast(pl.Int64)
    owners = set((originals.filter(originals >= 1000) - 1000) // 10)
    users = result.tables["user_ids"]["original"].cast(pl.Int64).to_list()
    kept = {user - 200 for user in users if user >= 200}
    assert owners == kept
    assert 0 < len(kept) < 12
    n_held = result.tables["interactions"].filter(pl.col("split") != "train")["user"].max() + 1
    assert min(index for index, user in enumerate(users) if user >= 200) >= n_held


def test_of_repeated_pairs_the_last_counts(tmp_path: Path) -> None:
    published = ratings()
    again = published.filter(pl.col("rating") >= 4).with_columns(
        rating=pl.lit(4.5, pl.Float32), timestamp=pl.lit(2 * 10**9, pl.Int64)
    )
    result = prepared(tmp_path, pl.concat([published, again]), unique_pairs=False)
    rows = result.tables["interactions"]
    assert rows.select("user", "item").is_unique().all()
    assert set(rows["rating"]) == {4.5}


def test_too_few_users_are_refused(tmp_path: Path) -> None:
    options = OPTIONS.model_copy(update={"held_out": 1e-6})
    with pytest.raises(DataError, match="of 60 users with enough items 0 test, 0 validate and 60 train"):
        prepared(tmp_path, ratings(), options)
