"""Audit of the model that releases noisy statistics: `dpals`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tasks.audits import Samples
from tasks.audits.worlds import worlds
from tasks.models.ranking.dpals import DPALS, Adds, DPALSConfig, Floats
from tasks.training_data import TrainingData

DELTA, CONTRIBUTION, ABOVE = 0.1, 4.0, 4
"""ABOVE: times as many items has the user as count, so that every release moves by its bound, but for the Gramian."""
CERTAIN = 1e6
"""What a release without noise adds to a statistic: it then tells the world for certain."""
CONFIG = {
    "dimension": 1,
    "user_ridge": 1e-6,
    "item_ridge": 1.0,
    "clip": 1.0,
    "lengthen": True,
    "contribution": CONTRIBUTION,
}


def dpals(
    seed: int,
    n_samples: int = 6_000,
    epsilon: float = 2.0,
    delta: float = DELTA,
    iterations: int = 2,
    counts_share: float = 0.4,
    gramian_share: float = 0.02,
    **more: Any,
) -> Samples:
    """A user with all items, or nobody; the statistic is the log-likelihood ratio of all that was released.

    more: `local_share` and `unobserved_weight` of the configuration.
    """
    shares = {"iterations": iterations, "counts_share": counts_share, "gramian_share": gramian_share}
    model = DPALS(DPALSConfig.model_validate(CONFIG | {"epsilon": epsilon, "delta": delta} | shares | more))
    n_items = int(ABOVE * CONTRIBUTION)

    def run(present: bool, rng: np.random.Generator) -> float:
        items = np.arange(n_items if present else 0, dtype=np.int32)
        model.watch = auditor = _Ratio(n_items)
        model.fit(TrainingData(1, n_items, np.zeros(len(items), np.int32), items), rng=rng)
        return auditor.total

    return Samples(*worlds(run, seed, n_samples), model.ledger()[0])


class _Ratio:
    """Adds up the log-likelihood ratios of the releases of one fit."""

    def __init__(self, n_items: int) -> None:
        self._row = csr_array(np.ones((1, n_items)))
        self.total = 0.0

    def __call__(self, noisy: Floats, std: float, adds: Adds) -> None:
        """Take in a release, given all before it."""
        moved = adds(self._row)
        self.total += float((moved * (noisy - moved / 2)).sum()) / std**2 + CERTAIN * np.array_equal(noisy, moved)
