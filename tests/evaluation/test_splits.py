import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.core.hashing import Uniforms
from tasks.evaluation import splits
from tasks.evaluation.splits import TEST, TRAIN, VALID, by_time, of_fold, positions, random_ranks, within_users


def interactions(counts: list[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    items = np.concatenate([np.sort(rng.permutation(200)[:count]) for count in counts]).astype(np.int32)
    return users, items


def split(users: np.ndarray, items: np.ndarray, seed: int = 7, test: float = 0.2, valid: float = 0.05) -> np.ndarray:
    draws = Uniforms.of(seed, range(1 + users.max(initial=0)), range(1 + items.max(initial=0)))
    return within_users(users, items, draws, test_share=test, valid_share=valid)


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
        n_test, n_valid = (mine == TEST).sum(), (mine == VALID).sum()
        assert n_test == min(int(count * test + 0.5 + 1e-9), count - 1)
        assert n_valid == min(int((count - n_test) * valid + 0.5 + 1e-9), count - n_test - 1)
        assert (mine == TRAIN).sum() == count - n_test - n_valid >= 1


def test_each_interaction_is_equally_likely_to_be_held_out() -> None:
    """Binomial over 400 seeds, 30 interactions, 5 standard deviations: false alarm below 2e-5."""
    users, items = interactions([10, 20])
    runs = 400
    share = np.mean([split(users, items, seed) == TEST for seed in range(runs)], axis=0)
    assert np.abs(share - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / runs)


def test_no_interactions_give_no_splits() -> None:
    empty = np.array([], dtype=np.int32)
    assert len(split(empty, empty)) == 0


@given(counts=st.lists(st.integers(0, 100), max_size=8), seed=st.integers(0, 1000), block=st.integers(1, 300))
def test_ranks_within_users_are_the_obvious_ones_however_large_a_block(
    counts: list[int], seed: int, block: int
) -> None:
    users, items = interactions([*counts, 1], seed)
    draws = Uniforms.of(seed, range(len(counts) + 1), range(200))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "BLOCK", block)
        actual = random_ranks(users, items, draws)
    numbers = draws.of_pairs("split", users, items)
    expected = [
        sum(numbers[users == user] < number) for user, number in zip(users.tolist(), numbers.tolist(), strict=True)
    ]
    assert actual.tolist() == expected


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
    uniform = np.random.default_rng(seed).random(len(counts))
    held = by_time(np.array(counts), uniform, train_share=percent / 100, valid_share=valid)
    of_users = np.split(held, np.cumsum(counts)[:-1])
    for mine, first, number in zip(of_users, obvious_by_time(counts, percent), uniform, strict=True):
        assert (mine != TEST).tolist() == first
        assert set(mine[first]) == {VALID if number < valid else TRAIN}


@given(counts=st.lists(st.integers(0, 9), max_size=9))
def test_positions_count_up_within_each_group(counts: list[int]) -> None:
    assert positions(np.array(counts, dtype=int)).tolist() == [n for count in counts for n in range(count)]


def test_a_fold_is_tested_and_of_the_others_those_that_validate() -> None:
    assert of_fold(np.array([0, 1, 1, 0]), 1, np.array([True, True, False, False])).tolist() == [
        VALID, TEST, TEST, TRAIN,
    ]  # fmt: skip


def test_ranks_of_a_user_hang_on_no_gap_before_them() -> None:
    near, far = np.full(30, 3, np.int32), np.full(50, 2**20 + 5, np.int32)
    items = np.concatenate([np.arange(30), np.arange(50)]).astype(np.int32)
    draws = Uniforms.of(0, np.arange(2**20 + 6), np.arange(50))
    together = random_ranks(np.concatenate([near, far]), items, draws)
    assert together[30:].tolist() == random_ranks(far, items[30:], draws).tolist()
    assert sorted(together[30:]) == list(range(50))
