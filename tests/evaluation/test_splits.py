import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import DataError
from tasks.evaluation.splits import per_user


def interactions(counts: list[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    items = np.concatenate([rng.permutation(200)[:count] for count in counts]).astype(np.int32)
    return users, items


def split(users: np.ndarray, items: np.ndarray, seed: int = 7, test: float = 0.2, valid: float = 0.05) -> np.ndarray:
    return per_user(users, items, test_share=test, valid_share=valid, rng=np.random.default_rng(seed))


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.integers(1, 100), min_size=1, max_size=8),
    test=st.floats(0.01, 0.99),
    valid=st.floats(0.01, 0.99),
    seed=st.integers(0, 1000),
)
def test_sizes_are_the_rounded_shares_and_every_user_keeps_training_data(
    counts: list[int], test: float, valid: float, seed: int
) -> None:
    users, items = interactions(counts)
    held = split(users, items, seed, test, valid)
    for user, count in enumerate(counts):
        mine = held[users == user]
        n_test, n_valid = (mine == "test").sum(), (mine == "valid").sum()
        assert n_test == min(int(count * test + 0.5 + 1e-9), count - 1)
        assert n_valid == min(int((count - n_test) * valid + 0.5 + 1e-9), count - n_test - 1)
        assert (mine == "train").sum() == count - n_test - n_valid >= 1


def test_the_order_of_the_rows_does_not_matter() -> None:
    users, items = interactions([40, 1, 25, 60])
    shuffle = np.random.default_rng(1).permutation(len(users))
    np.testing.assert_array_equal(split(users, items)[shuffle], split(users[shuffle], items[shuffle]))


def test_a_seed_repeats_itself_and_another_differs() -> None:
    users, items = interactions([40, 25, 60])
    np.testing.assert_array_equal(split(users, items, seed=3), split(users, items, seed=3))
    assert (split(users, items, seed=3) != split(users, items, seed=4)).any()


def test_each_interaction_is_equally_likely_to_be_held_out() -> None:
    """Binomial over 400 seeds, 30 interactions, 5 standard deviations: false alarm below 2e-5."""
    users, items = interactions([10, 20])
    runs = 400
    share = np.mean([split(users, items, seed) == "test" for seed in range(runs)], axis=0)
    assert np.abs(share - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / runs)


def test_ids_need_not_be_dense() -> None:
    users, items = interactions([10, 10, 10])
    np.testing.assert_array_equal(split(users, items), split(users * 1000 + 5, items * 7))


def test_a_repeated_pair_is_refused_by_name() -> None:
    users, items = np.array([3, 3, 3], dtype=np.int32), np.array([5, 8, 5], dtype=np.int32)
    with pytest.raises(DataError, match=r"user 3 and item 5 .*rows 0 and 2"):
        split(users, items)


def test_no_interactions_give_no_splits() -> None:
    empty = np.array([], dtype=np.int32)
    assert len(split(empty, empty)) == 0


def test_ml_100k_is_split_80_to_20(mirror: Path) -> None:
    with zipfile.ZipFile(mirror / "ml-100k" / "ml-100k.zip") as archive:
        columns = dict.fromkeys(("user", "item", "rating", "timestamp"), pl.Int32)
        table = pl.read_csv(archive.read("ml-100k/u.data"), separator="\t", has_header=False, schema=columns)
    held = split(table["user"].to_numpy(), table["item"].to_numpy())
    assert len(held) == 100_000
    assert abs((held == "test").sum() - 20_000) < 100
    assert abs((held == "valid").sum() - 4_000) < 100
