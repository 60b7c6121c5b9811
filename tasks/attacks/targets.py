"""Who is attacked: users whose attributes must be guessed, and the items of users made up for an audit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import DataError

FEWEST_LABELLED = 10
"""Users that an attacker must at least know the labels of."""


def split_users(
    n_users: int, target_share: float, seed: int, labels: Mapping[str, NDArray[np.int64]] | None = None
) -> NDArray[np.bool_]:
    """(n_users,) whether a user is a target; the others' labels train the attacker (GERAI §5.3: 80 % to 20 %).

    With `labels`, targets are a systematic sample of the users sorted by them (random among equals), those of the
    fewest classes first, so that the shares of all classes, so the majority guess, are nearly those of all users. A
    plain random fifth of ML-100K moves that guess by up to 0.07, more than most attackers gain.

    Raises:
        DataError: fewer than ten labelled users or no target.
    """
    n_targets = round(n_users * target_share)
    if n_targets < 1 or n_users - n_targets < FEWEST_LABELLED:
        raise DataError(
            f"{n_users} users with a target share of {target_share} leave {n_users - n_targets} labelled users and "
            f"{n_targets} targets; at least {FEWEST_LABELLED} and 1 are needed, change attack.target_share"
        )
    rng = np.random.default_rng(seed)
    by_classes = sorted((labels or {}).values(), key=lambda classes: -len(np.unique(classes)))
    order = np.lexsort((rng.random(n_users), *by_classes))  # the last is the first to sort by
    positions = (rng.random() + np.arange(n_targets)) * (n_users / n_targets)
    is_target = np.zeros(n_users, bool)
    is_target[order[positions.astype(np.int64)]] = True
    return is_target


def shuffled_groups(
    pool: NDArray[np.integer], n_groups: int, size: int, rng: np.random.Generator
) -> NDArray[np.integer]:
    """(n_groups, size): groups of a shuffled pool that have nothing in common until it is used up, and shuffled again.

    pool: (n,), n at least `size`.
    """
    at_once = len(pool) // size
    shuffles = [rng.permutation(pool)[: at_once * size] for _ in range(-(-n_groups // at_once))]
    return np.concatenate(shuffles).reshape(-1, size)[:n_groups]
