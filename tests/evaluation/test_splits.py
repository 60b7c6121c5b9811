import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.contracts import SPLITS
from tasks.errors import DataError
from tasks.evaluation import splits
from tasks.evaluation.splits import (
    TEST,
    TRAIN,
    VALID,
    by_time,
    folds,
    of_fold,
    per_user,
    positions,
    ranks,
    within_users,
)


def interactions(counts: list[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    items = np.concatenate([rng.permutation(200)[:count] for count in counts]).astype(np.int32)
    return users, items


def split(users: np.ndarray, items: np.ndarray, seed: int = 7, test: float = 0.2, valid: float = 0.05) -> np.ndarray:
    return per_user(users, items, test_share=test, valid_share=valid, rng=np.random.default_rng(seed))


@settings(max_examples=50)
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


@settings(max_examples=50)
@given(
    counts=st.lists(st.integers(1, 100), min_size=1, max_size=8),
    test=st.floats(0.01, 0.99),
    valid=st.floats(0.01, 0.99),
    seed=st.integers(0, 1000),
    block=st.integers(1, 300),
)
def test_block_by_block_the_split_is_the_same(
    counts: list[int], test: float, valid: float, seed: int, block: int
) -> None:
    users = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    items = np.concatenate([np.arange(count) for count in counts]).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "BLOCK", block)
        rng = np.random.default_rng(seed)
        actual = within_users(np.array(counts), test_share=test, valid_share=valid, rng=rng)
    np.testing.assert_array_equal(np.array(SPLITS)[actual], split(users, items, seed, test, valid))


def obvious_by_time(counts: list[int], percent: int) -> list[list[bool]]:
    """Whether each event of each user is in the first part, one by one and in whole numbers."""
    return [[n < max(count * percent // 100, 1) for n in range(count)] for count in counts]


@given(
    counts=st.lists(st.integers(1, 100), min_size=1, max_size=20),
    percent=st.integers(1, 99),
    valid=st.floats(0.01, 0.99),
    seed=st.integers(0, 1000),
)
def test_sequences_begin_with_what_is_learnt_from_and_some_users_validate(
    counts: list[int], percent: int, valid: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    held = by_time(np.array(counts), train_share=percent / 100, valid_share=valid, rng=rng)
    of_users = np.split(held, np.cumsum(counts)[:-1])
    for mine, first in zip(of_users, obvious_by_time(counts, percent), strict=True):
        assert (mine != TEST).tolist() == first
        assert len(set(mine[first])) == 1
    validating = sum(mine[0] == VALID for mine in of_users)
    assert validating == min(int(len(counts) * valid + 0.5 + 1e-9), len(counts) - 1)


def test_each_user_is_equally_likely_to_validate() -> None:
    """Binomial over 400 seeds, 20 users, 5 standard deviations: false alarm below 2e-5."""
    runs = 400
    draws = [
        by_time(np.full(20, 2), train_share=0.5, valid_share=0.3, rng=np.random.default_rng(seed))[::2] == VALID
        for seed in range(runs)
    ]
    assert np.abs(np.mean(draws, axis=0) - 0.3).max() < 5 * np.sqrt(0.3 * 0.7 / runs)


def test_which_users_validate_does_not_change_the_test() -> None:
    held = [
        by_time(np.array([5, 9, 20, 3]), train_share=0.8, valid_share=0.5, rng=np.random.default_rng(seed))
        for seed in range(5)
    ]
    assert len({tuple(fold == TEST) for fold in held}) == 1
    assert len({tuple(fold) for fold in held}) > 1
    assert {TRAIN, VALID, TEST} == set(held[0])


@given(counts=st.lists(st.integers(0, 9), max_size=9))
def test_positions_count_up_within_each_group(counts: list[int]) -> None:
    assert positions(np.array(counts, dtype=int)).tolist() == [n for count in counts for n in range(count)]


@given(n_rows=st.integers(0, 200), n_folds=st.integers(2, 7), seed=st.integers(0, 100))
def test_folds_differ_by_one_row_at_most(n_rows: int, n_folds: int, seed: int) -> None:
    sizes = np.bincount(folds(n_rows, n_folds, np.random.default_rng(seed)), minlength=n_folds)
    assert sizes.sum() == n_rows
    assert len(sizes) == n_folds
    assert sizes.max() - sizes.min() <= 1


@given(n_rows=st.integers(1, 3000), percent=st.integers(0, 100), seed=st.integers(0, 100))
def test_so_many_rows_as_a_share_says_rank_below_it(n_rows: int, percent: int, seed: int) -> None:
    """In single precision and in double: an edge such as 0.7 must not be taken for a rank."""
    actual = ranks(n_rows, np.random.default_rng(seed))
    for share in (percent / 100, np.float32(percent / 100)):
        assert abs(int((actual < share).sum()) - n_rows * percent / 100) <= 0.5
    assert ((actual > 0) & (actual < 1)).all()


def test_ranks_of_a_hundred_million_rows_stay_below_one() -> None:
    class Last:
        def permutation(self, n: int) -> np.ndarray:
            return np.array([n - 1])

    assert ranks(10**8, Last())[0] < 1


def test_a_fold_is_tested_and_of_the_others_the_published_share_validates() -> None:
    rng = np.random.default_rng(0)
    fold = folds(103, 5, rng)
    published = np.array(["train"] * 70 + ["valid"] * 10 + ["test"] * 23, object)
    held = [of_fold(fold, index, published) for index in range(5)]
    for index, names in enumerate(held):
        assert ((names == "test") == (fold == index)).all()
        assert (names == "valid").sum() == round(10 / 80 * (fold != index).sum())
        assert (names == of_fold(fold, index, published)).all()
    assert (held[0] == "valid").tolist() != (held[1] == "valid").tolist()
