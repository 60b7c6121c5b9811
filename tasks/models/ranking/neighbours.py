"""Neighbouring data sets on which training itself gives one interaction away: samples for an audit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.models.ranking.dpmf import DPMF, DPMFConfig
from tasks.training_data import TrainingData


def factorisation_samples(
    epsilon: float, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What `DPMF` with published accounting releases on two data sets that differ in one interaction.

    Two blocks of users who have all items of their own block, with singular values 10 and √99; without one interaction
    the first has less than 9.92. With a single dimension all user vectors point at the stronger block, so that item
    vectors tell which one it is: the claimed budget holds user vectors constant, and they are not.

    Returns:
        (n,) for each of the two: 1 where the first block's item vectors have the larger sum, else 0.
    """
    model = DPMF(DPMFConfig(dimension=1, epsilon=epsilon, ridge=1.0, accounting="published"))

    def outputs(missing: int) -> NDArray[np.float64]:
        data = two_blocks((10, 10), (9, 11), missing)
        items = [model.fit(data, rng=rng).items[:, 0] for _ in range(n)]
        return np.array([float(vectors[:10].sum() > vectors[10:].sum()) for vectors in items])

    return outputs(0), outputs(1)


def two_blocks(first: tuple[int, int], second: tuple[int, int], missing: int) -> TrainingData:
    """Blocks of (users, items), every user with all items of the own block but the first block's last `missing`."""
    users, items = (np.indices(first).reshape(2, -1)[:, : first[0] * first[1] - missing][axis] for axis in (0, 1))
    more_users, more_items = np.indices(second).reshape(2, -1) + np.array([[first[0]], [first[1]]])
    return TrainingData(
        first[0] + second[0],
        first[1] + second[1],
        np.concatenate([users, more_users]).astype(np.int32),
        np.concatenate([items, more_items]).astype(np.int32),
    )
