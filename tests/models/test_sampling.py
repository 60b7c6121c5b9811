"""Negative items next to a set of all interactions, looked up one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tasks.errors import DataError
from tasks.models.training import NegativeSampler


@pytest.mark.parametrize(("n_users", "n_items", "n"), [(30, 40, 700), (5, 2, 5), (1000, 2_000_000, 3000)])
def test_draws_are_those_of_a_plain_rejection(n_users: int, n_items: int, n: int) -> None:
    rng = np.random.default_rng(0)
    codes = rng.choice(n_users * n_items - n_users, n, replace=False) if n > 5 else np.arange(5) * 2
    users, items = (codes // n_items).astype(np.int32), (codes % n_items).astype(np.int32)
    known = set(zip(users.tolist(), items.tolist(), strict=True))
    sampler = NegativeSampler(users, items, n_users, n_items)
    asked = np.concatenate([users, users[::-1]])
    actual = sampler.draw(asked, np.random.default_rng(1))
    plain = np.random.default_rng(1)
    expected = plain.integers(0, n_items, len(asked), dtype=np.int32)
    while again := [at for at, pair in enumerate(zip(asked, expected, strict=True)) if tuple(map(int, pair)) in known]:
        expected[again] = plain.integers(0, n_items, len(again), dtype=np.int32)
    np.testing.assert_array_equal(actual, expected)
    pairs = rng.integers(0, n_users, 2000).astype(np.int32), rng.integers(0, n_items, 2000).astype(np.int32)
    seen = [(int(user), int(item)) in known for user, item in zip(*pairs, strict=True)]
    assert sampler._is_positive(*pairs).tolist() == seen


def test_who_has_every_item_is_named() -> None:
    with pytest.raises(DataError, match="user 1 has all 2 items"):
        NegativeSampler(np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32), 2, 2)
