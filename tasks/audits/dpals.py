"""Audit of the model that releases noisy statistics: `dpals`."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from tasks.audits import Samples, worst_case
from tasks.models.draws import normal
from tasks.models.ranking.dpals import DPALS, DPALSConfig
from tasks.training_data import TrainingData

ITEMS = 4
CONFIG = {
    "dimension": 1,
    "iterations": 1,
    "user_ridge": 1e-6,
    "item_ridge": 1e3,
    "clip": 1.0,
    "lengthen": True,
    "contribution": float(ITEMS),
    "gramian_share": 0.02,
    "delta": 0.1,
}
"""Nearly all of the budget is for the right-hand sides, and the ridge leaves them as they are but for a factor."""


@worst_case("the only user, who has all four items")
def dpals(seed: int, n_samples: int = 10_000, epsilon: float = 2.0) -> Samples:
    """A user with all items, or nobody; what the auditor knows are the items' vectors that training starts from.

    The statistic is the inner product of the released items' vectors with what the user adds to right-hand sides.
    """
    model, sides = DPALS(DPALSConfig.model_validate(CONFIG | {"epsilon": epsilon})), []
    seeds = iter(np.random.default_rng(seed).integers(2**62, size=2 * n_samples))
    for present in (False, True):
        own = np.arange(ITEMS if present else 0, dtype=np.int32)
        data, products = TrainingData(1, ITEMS, np.zeros(len(own), np.int32), own), np.empty(n_samples)
        for run in range(n_samples):
            of_run = int(next(seeds))
            start = normal(np.random.default_rng(of_run), (ITEMS, 1))
            added = model.terms(csr_array(np.ones((1, ITEMS))), np.zeros(ITEMS), start).rhs()
            items = model.fit(data, rng=np.random.default_rng(of_run)).released()["items"]
            products[run] = float((items.numpy() * added).sum())
        sides.append(products)
    return Samples(sides[0], sides[1], model.ledger()[0])
