"""Audits of published claims that do not hold: they are refuted by the shipped models, and that is a finding."""

from __future__ import annotations

import numpy as np

from tasks.audits import Samples, sessions
from tasks.models.ranking.dpmf import DPMF, DPMFConfig
from tasks.training_data import TrainingData


def aggregates(
    seed: int, n_samples: int = 4_000, epsilon: float = 5.0, delta: float = 1e-5, epochs: int = 10
) -> Samples:
    """DIPSGNN's claim for one aggregation of one matrix, of all epochs of training."""
    model, (with_visit, without) = sessions.aggregates("published", seed, n_samples, epsilon, delta, epochs)
    return Samples(without, with_visit, model.ledger()[0])


def factorisation(seed: int, n_samples: int = 1_000, epsilon: float = 1.0) -> Samples:
    """DPMF's claim, on two data sets that differ in one interaction.

    Two blocks of users who have all items of their own block, with singular values 10 and √99; without one interaction
    the first has less than 9.92. With a single dimension all user vectors point at the stronger block, so that item
    vectors tell which one it is: the claimed budget holds user vectors constant, and they are not. The statistic: 1
    where the first block's item vectors have the larger sum, else 0.
    """
    model = DPMF(DPMFConfig(dimension=1, epsilon=epsilon, ridge=1.0, accounting="published"))
    rng, sides = np.random.default_rng(seed), []
    for missing in (1, 0):
        data = two_blocks((10, 10), (9, 11), missing)
        items = [model.fit(data, rng=rng).items[:, 0] for _ in range(n_samples)]
        sides.append(np.array([float(vectors[:10].sum() > vectors[10:].sum()) for vectors in items]))
    return Samples(sides[0], sides[1], model.ledger()[0])


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
