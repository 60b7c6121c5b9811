"""Which interactions are learnt from and which are held out: per-user random splits (METHODS section 2, GERAI)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.contracts import SPLITS
from tasks.errors import DataError

TRAIN, VALID, TEST = range(len(SPLITS))


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
    _, of, count = np.unique(user, return_inverse=True, return_counts=True)
    n_test = np.minimum(_half_up(count * test_share), count - 1)
    n_valid = np.minimum(_half_up((count - n_test) * valid_share), count - n_test - 1)

    # Each user's rows in random order: the first n_test are test, the next n_valid validation.
    shuffled = np.lexsort((rng.random(len(user)), of))
    position = np.arange(len(user)) - np.repeat(np.cumsum(count) - count, count)
    held = np.full(len(user), TRAIN)
    held[position < np.repeat(n_test + n_valid, count)] = VALID
    held[position < np.repeat(n_test, count)] = TEST

    result = np.empty(len(user), dtype=int)
    result[order[shuffled]] = held
    return np.array(SPLITS)[result]


def _half_up(values: NDArray[np.floating]) -> NDArray[np.int64]:
    # The margin rounds up halves that floating point puts just below, such as 100 * 0.285 = 28.499999999999996.
    return np.floor(values + 0.5 + 1e-9).astype(np.int64)
