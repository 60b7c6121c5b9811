"""Audits of the models that release noisy counts: `dp-popularity` and `dpmf-rigorous`.

A count with noise k has the log-likelihood ratio (|k| - |k - 1|) ε/contribution between 1 and 0, that is plus or minus
ε/contribution; what is added up of all counts tells best whether the record is there.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tasks.audits import Samples
from tasks.audits.worlds import training_data, worlds
from tasks.models.ranking.dpmf import DPMF, DPMFConfig
from tasks.models.ranking.popularity import PrivatePopularity, PrivatePopularityConfig

CONTRIBUTION = 3
"""Interactions of a user that `dp-popularity` counts, at most, unless said otherwise."""
USERS = 250
"""On either side of a fit."""


def popularity(
    seed: int, n_samples: int = 20_000, epsilon: float = 1.0, contribution: int = CONTRIBUTION, times: int = 1
) -> Samples:
    """Users with `times` as many items as are counted, each with items that no other has: a fit is a run for each.

    A random half of them have theirs, the others have none. The statistic is how many of a user's counts are 1 or more.
    """
    model = PrivatePopularity(PrivatePopularityConfig(epsilon=epsilon, contribution=contribution))
    rng, n_items, half = np.random.default_rng(seed), times * contribution, min(USERS, n_samples)
    fits = -(-n_samples // half)
    sides = np.empty((2, fits, half))
    for fit in range(fits):
        present = rng.permutation(2 * half) < half
        users = np.flatnonzero(present).repeat(n_items)
        items = users * n_items + np.tile(np.arange(n_items), half)
        data = training_data(2 * half, 2 * half * n_items, users.tolist(), items.tolist())
        counts = model.fit(data, rng=rng).released()["counts"].numpy().reshape(2 * half, n_items)
        totals = (counts >= 1).sum(1)
        sides[:, fit] = totals[~present], totals[present]
    without, there = sides.reshape(2, -1)[:, :n_samples]
    return Samples(without, there, model.ledger()[0])


popularity_above_cap = partial(popularity, times=4)
"""A user with four times as many items as may count."""


def factorisation(seed: int, n_samples: int = 10_000, epsilon: float = 1.0) -> Samples:
    """`dpmf-rigorous`: the only interaction with an item, through the item's vector; all users are in one group.

    The statistic is whether the item's noisy count is nearer to 1 than to 0.
    """
    model = DPMF(DPMFConfig(dimension=1, epsilon=epsilon, ridge=1.0, accounting="rigorous"))

    def run(present: bool, rng: np.random.Generator) -> float:
        items = model.fit(training_data(2, 2, [0] * present + [1], [0] * present + [1]), rng=rng).released()["items"]
        return float(items[0, 0] >= 0.5 / 3)  # a count over two users and a ridge of 1

    return Samples(*worlds(run, seed, n_samples), model.ledger()[0])
