"""Runs on two data sets that differ in one record."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.core.training_data import TrainingData


def worlds(
    run: Callable[[bool, np.random.Generator], float], seed: int, n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The statistic of `run` without the record n times, and with it."""
    rng = np.random.default_rng(seed)
    without, present = (np.array([run(there, rng) for _ in range(n)], np.float64) for there in (False, True))
    return without, present


def training_data(n_users: int, n_items: int, users: Sequence[int], items: Sequence[int]) -> TrainingData:
    """Interactions, one per place of `users` and `items`."""
    return TrainingData(n_users, n_items, np.array(users, np.int32), np.array(items, np.int32))
