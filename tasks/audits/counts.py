"""Audits of the models that release noisy counts: `dp-popularity` and `dpmf-rigorous`.

A count with noise k has the log-likelihood ratio (|k| - |k - 1|) ε/contribution between 1 and 0, that is plus or minus
ε/contribution; what is added up of all counts tells best whether the record is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.audits import Samples, on_cpu
from tasks.models.ranking.dpmf import DPMF, DPMFConfig
from tasks.models.ranking.popularity import PrivatePopularity, PrivatePopularityConfig
from tasks.training_data import TrainingData

CONTRIBUTION = 3
"""Interactions of a user that `dp-popularity` counts, at most, unless said otherwise."""


@on_cpu
def popularity(seed: int, n_samples: int = 20_000, epsilon: float = 1.0, contribution: int = CONTRIBUTION) -> Samples:
    """A user with as many items as are counted."""
    return _popularity(contribution, contribution, seed, n_samples, epsilon)


@on_cpu
def popularity_above_cap(seed: int, n_samples: int = 10_000, epsilon: float = 1.0) -> Samples:
    """A user with four times as many items as may count."""
    return _popularity(CONTRIBUTION, 4 * CONTRIBUTION, seed, n_samples, epsilon)


@on_cpu
def factorisation(seed: int, n_samples: int = 10_000, epsilon: float = 1.0) -> Samples:
    """`dpmf-rigorous`: the only interaction with an item, through the item's vector; all users are in one group."""
    model = DPMF(DPMFConfig(dimension=1, epsilon=epsilon, ridge=1.0, accounting="rigorous"))

    def run(present: bool, rng: np.random.Generator) -> float:
        items = model.fit(training_data(2, 2, [0] * present + [1], [0] * present + [1]), rng=rng).released()["items"]
        return float(items[0, 0] >= 0.5 / 3)  # a count over two users and a ridge of 1

    return Samples(*_worlds(run, seed, n_samples), model.ledger()[0])


def _popularity(contribution: int, n_items: int, seed: int, n_samples: int, epsilon: float) -> Samples:
    model = PrivatePopularity(PrivatePopularityConfig(epsilon=epsilon, contribution=contribution))

    def run(present: bool, rng: np.random.Generator) -> float:
        items = [*range(n_items)] if present else []
        counts = model.fit(training_data(1, n_items, [0] * len(items), items), rng=rng).released()["counts"]
        return float((counts >= 1).sum())

    return Samples(*_worlds(run, seed, n_samples), model.ledger()[0])


def _worlds(
    run: Callable[[bool, np.random.Generator], float], seed: int, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`run` without the record n times, and with it."""
    rng = np.random.default_rng(seed)
    without, present = (np.array([run(there, rng) for _ in range(n)]) for there in (False, True))
    return without, present


def training_data(n_users: int, n_items: int, users: Sequence[int], items: Sequence[int]) -> TrainingData:
    """Interactions, one per place of `users` and `items`."""
    return TrainingData(n_users, n_items, np.array(users, np.int32), np.array(items, np.int32))
