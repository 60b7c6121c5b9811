"""Which interactions are trained on and which are held out: per user at random, by time, or in folds.

No user's part depends on other users: sizes are exact within a user, and binomial over users and over all rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.core.contracts import SPLITS
from tasks.core.hashing import Uniforms

TRAIN, VALID, TEST = range(len(SPLITS))

BLOCK = 1 << 20
"""Rows that are shuffled at a time."""


def within_users(
    users: NDArray[np.int32], items: NDArray[np.int32], draws: Uniforms, *, test_share: float, valid_share: float
) -> NDArray[np.uint8]:
    """Hold out a random share of each user's interactions for the test, and of the rest a share for validation.

    A user with n interactions gets `half_up(n * test_share)` of them into the test, at most n - 1, then
    `half_up(m * valid_share)` of the m that remain into validation, at most m - 1; half_up rounds to the nearest
    integer and halves up. So every user keeps at least one training interaction, and the sizes add up to the
    stated shares over many users (rounding down would hold out less: 19,633 instead of 20,000 on ML-100K).

    Args:
        users, items: (n_interactions,) dense ids, users ascending; every pair once.
        test_share, valid_share: in (0, 1).

    Returns:
        (n_interactions,) TRAIN, VALID or TEST.
    """
    counts = np.bincount(users)
    n_test = np.minimum(_half_up(counts * test_share), counts - 1)
    n_held = n_test + np.minimum(_half_up((counts - n_test) * valid_share), counts - n_test - 1)
    rank = random_ranks(users, items, draws)
    result = np.full(len(users), TRAIN, dtype=np.uint8)
    result[rank < n_held.astype(np.int32)[users]] = VALID
    result[rank < n_test.astype(np.int32)[users]] = TEST
    return result


def random_ranks(
    users: NDArray[np.int32], items: NDArray[np.int32], draws: Uniforms, purpose: str = "split"
) -> NDArray[np.int32]:
    """0, 1, ... within each user in random order, which depends on that user's items alone; see `within_users`."""
    result = np.empty(len(users), np.int32)
    start = 0
    while start < len(users):
        end = min(start + BLOCK, len(users))
        if end < len(users):
            first = int(np.searchsorted(users, users[end]))
            end = first if first > start else int(np.searchsorted(users, users[start], side="right"))
        numbers = draws.of_pairs(purpose, users[start:end], items[start:end])
        owners = np.cumsum(np.diff(users[start:end], prepend=users[start]) != 0)  # from 0 without gaps
        # One whole number sorts by user, then by 43 bits of the draw: ten times as fast as sorting by two keys.
        packed = (owners << 43) + (numbers * 2**43).astype(np.int64)
        result[start + np.argsort(packed, kind="stable")] = positions(np.bincount(owners))
        start = end
    return result


def by_time(
    counts: NDArray[np.int64], uniform: NDArray[np.float64], *, train_share: float, valid_share: float
) -> NDArray[np.uint8]:
    """The first part of each sequence is trained on, the rest is the test; of some users the first part validates.

    A sequence of n events begins with floor(n * train_share) that are not test, at least one.

    Args:
        counts: (n_users,) events of each user; their rows lie together in the order of time.
        uniform: (n_users,) users below `valid_share` validate.
        train_share, valid_share: in (0, 1).

    Returns:
        (n_events,) TRAIN, VALID or TEST.
    """
    # The margin: 100 * 0.29 = 28.999999999999996.
    n_first = np.maximum(np.floor(counts * train_share + 1e-9).astype(np.int64), 1)
    first_part = np.where(uniform < valid_share, VALID, TRAIN)
    return np.where(positions(counts) < np.repeat(n_first, counts), np.repeat(first_part, counts), TEST).astype(
        np.uint8
    )


def positions(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ... within each group of rows that lie together; counts: (n_groups,) rows of each."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def of_fold(folds: NDArray[np.integer], fold: int, validates: NDArray[np.bool_]) -> NDArray[np.integer]:
    """TRAIN, VALID or TEST of each row when `fold` is tested; (n_rows,), as are `folds` and `validates`."""
    return np.where(folds == fold, TEST, np.where(validates, VALID, TRAIN))


def _half_up(values: NDArray[np.floating]) -> NDArray[np.int64]:
    # The margin rounds up halves that floating point puts just below, such as 100 * 0.285 = 28.499999999999996.
    return np.floor(values + 0.5 + 1e-9).astype(np.int64)  # type: ignore[no-any-return]  # numpy's types say Any here
