"""Which interactions are trained on and which are held out: per user at random, by time, or in folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.contracts import SPLITS
from tasks.errors import DataError

TRAIN, VALID, TEST = range(len(SPLITS))

BLOCK = 1 << 20
"""Rows that are shuffled at a time."""


def per_user(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    *,
    test_share: float,
    valid_share: float,
    rng: np.random.Generator,
) -> NDArray[np.str_]:
    """Hold out a random share of each user's interactions for the test, and of the rest a share for validation.

    A user with n interactions gets `half_up(n * test_share)` of them into the test, at most n - 1, then
    `half_up(m * valid_share)` of the m that remain into validation, at most m - 1; half_up rounds to the nearest
    integer and halves up. So every user keeps at least one training interaction, and the sizes add up to the
    stated shares over many users (rounding down would hold out less: 19,633 instead of 20,000 on ML-100K).

    The draw depends on the set of (user, item) pairs alone, not on the order of the rows.

    Args:
        users, items: (n_interactions,) ids; every pair once.
        test_share, valid_share: in (0, 1).
        rng: decides which interactions are held out.

    Returns:
        (n_interactions,) names out of `SPLITS`, in the order of the rows given.

    Raises:
        DataError: a pair is repeated (names it).
    """
    order = np.lexsort((items, users))
    user, item = users[order], items[order]
    repeated = np.flatnonzero((user[1:] == user[:-1]) & (item[1:] == item[:-1]))
    if len(repeated):
        first = repeated[0]
        raise DataError(
            f"interactions: user {user[first]} and item {item[first]} occur together more than once "
            f"({len(repeated)} repeated pairs, rows {order[first]} and {order[first + 1]}); keep one of each"
        )
    _, owners, count = np.unique(user, return_inverse=True, return_counts=True)
    n_test = np.minimum(_half_up(count * test_share), count - 1)
    n_valid = np.minimum(_half_up((count - n_test) * valid_share), count - n_test - 1)

    # Each user's rows in random order: the first n_test are test, the next n_valid validation.
    shuffled = np.lexsort((rng.random(len(user)), owners))
    position = np.arange(len(user)) - np.repeat(np.cumsum(count) - count, count)
    parts = np.full(len(user), TRAIN)
    parts[position < np.repeat(n_test + n_valid, count)] = VALID
    parts[position < np.repeat(n_test, count)] = TEST

    result = np.empty(len(user), dtype=int)
    result[order[shuffled]] = parts
    return np.array(SPLITS)[result]


def within_users(
    counts: NDArray[np.int64], *, test_share: float, valid_share: float, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """`per_user` for a hundred million interactions that are already in order: the same draw, block by block.

    Args:
        counts: (n_users,) interactions of each user; their rows lie together, users and items ascending.
        test_share, valid_share, rng: as `per_user`.

    Returns:
        (n_interactions,) TRAIN, VALID or TEST.
    """
    n_test = np.minimum(_half_up(counts * test_share), counts - 1)
    n_valid = np.minimum(_half_up((counts - n_test) * valid_share), counts - n_test - 1)
    ends = np.cumsum(counts)
    result = np.full(int(counts.sum()), TRAIN, dtype=np.uint8)
    first = start = 0
    while first < len(counts):
        last = max(int(np.searchsorted(ends, start + BLOCK, side="right")), first + 1)
        sizes = counts[first:last]
        owners = np.repeat(np.arange(last - first), sizes)
        # A number in [user, user + 1) sorts by user, then at random: ten times as fast as sorting by two keys.
        shuffled = np.argsort(owners + rng.random(len(owners)), kind="stable")
        position = positions(sizes)
        parts = np.full(len(owners), TRAIN, dtype=np.uint8)
        parts[position < np.repeat((n_test + n_valid)[first:last], sizes)] = VALID
        parts[position < np.repeat(n_test[first:last], sizes)] = TEST
        result[start + shuffled] = parts
        first, start = last, start + len(owners)
    return result


def by_time(
    counts: NDArray[np.int64], *, train_share: float, valid_share: float, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The first part of each sequence is trained on, the rest is the test; of some users the first part validates.

    A sequence of n events begins with floor(n * train_share) that are not test, at least one. Those of
    `half_up(n_users * valid_share)` users drawn at random, at most all but one, are validation.

    Args:
        counts: (n_users,) events of each user; their rows lie together in the order of time.
        train_share: in (0, 1).
        valid_share: share of users, in (0, 1).

    Returns:
        (n_events,) TRAIN, VALID or TEST.
    """
    n_users = len(counts)
    # The margin: 100 * 0.29 = 28.999999999999996.
    n_first = np.maximum(np.floor(counts * train_share + 1e-9).astype(np.int64), 1)
    first_part = np.full(n_users, TRAIN, dtype=np.uint8)
    n_valid = min(int(_half_up(np.array(n_users * valid_share))), n_users - 1)
    first_part[rng.permutation(n_users)[:n_valid]] = VALID
    return np.where(positions(counts) < np.repeat(n_first, counts), np.repeat(first_part, counts), TEST).astype(
        np.uint8
    )


def positions(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ... within each group of rows that lie together; counts: (n_groups,) rows of each."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def folds(n_rows: int, n_folds: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """A random fold 0..n_folds-1 for each row; no two folds differ in size by more than one."""
    return (rng.permutation(n_rows) % n_folds).astype(np.int32)


def of_fold(folds: NDArray[np.integer], fold: int, published: NDArray[np.object_]) -> NDArray[np.str_]:
    """The split when `fold` is tested: of the others as large a share validates as in the published split.

    Args:
        folds: (n_rows,) see `folds`.
        fold: also seeds who validates.
        published: (n_rows,) names out of `SPLITS`.

    Returns:
        (n_rows,) names out of `SPLITS`.
    """
    share = np.count_nonzero(published == "valid") / np.count_nonzero(published != "test")
    training = np.flatnonzero(folds != fold)
    parts = np.where(folds == fold, TEST, TRAIN)
    parts[np.random.default_rng(fold).permutation(training)[: round(share * len(training))]] = VALID
    return np.array(SPLITS)[parts]


def ranks(n_rows: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """A random rank in (0, 1) for each row.

    For every share x, the rows below x are the nearest number to x * n_rows, and they are among those below any larger
    share.

    The middle of each rank's interval is taken: its edge, such as 0.7, is not the same number in single precision.
    """
    middle = ((rng.permutation(n_rows) + 0.5) / n_rows).astype(np.float32)
    return np.minimum(middle, np.nextafter(np.float32(1), np.float32(0)))


def _half_up(values: NDArray[np.floating]) -> NDArray[np.int64]:
    # The margin rounds up halves that floating point puts just below, such as 100 * 0.285 = 28.499999999999996.
    return np.floor(values + 0.5 + 1e-9).astype(np.int64)  # type: ignore[no-any-return]  # numpy's types say Any here
