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


def popularity(
    seed: int, n_samples: int = 4_000, epsilon: float = 1.0, contribution: int = CONTRIBUTION, times: int = 1
) -> Samples:
    """A user with `times` as many items as are counted."""
    model = PrivatePopularity(PrivatePopularityConfig(epsilon=epsilon, contribution=contribution))
    n_items = times * contribution

    def run(present: bool, rng: np.random.Generator) -> float:
        items = [*range(n_items)] if present else []
        counts = model.fit(training_data(1, n_items, [0] * len(items), items), rng=rng).released()["counts"]
        return float((counts >= 1).sum())

    return Samples(*worlds(run, seed, n_samples), model.ledger()[0])


popularity_above_cap = partial(popularity, times=4)
"""A user with four times as many items as may count."""


def factorisation(seed: int, n_samples: int = 10_000, epsilon: float = 1.0) -> Samples:
    """`dpmf-rigorous`: the only interaction with an item, through the item's vector; all users are in one group."""
    model = DPMF(DPMFConfig(dimension=1, epsilon=epsilon, ridge=1.0, accounting="rigorous"))

    def run(present: bool, rng: np.random.Generator) -> float:
        items = model.fit(training_data(2, 2, [0] * present + [1], [0] * present + [1]), rng=rng).released()["items"]
        return float(items[0, 0] >= 0.5 / 3)  # a count over two users and a ridge of 1

    return Samples(*worlds(run, seed, n_samples), model.ledger()[0])
