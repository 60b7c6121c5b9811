"""What a release is good for, as a release of its own: mean NDCG@10 on items that users' rows were made without."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.release.making import Budget
from tasks.release.models import Model
from tasks.release.serving import lists
from tasks.release.sums import BITS, Rows

SHARE = 0.01
HELD_OUT = 0.1
FEWEST = 5
"""Items of a row that some are held out of: without one, shorter rows would say little of what goes together."""
COUNTED = 0.5
"""κ, what each user adds to the number by which sums are divided."""
TOP = 10


class Utility(NamedTuple):
    """Estimates of mean NDCG@10 by model, in [0, 1], and the standard deviation that noise gives each, at most.

    Of a ratio (s + x)/(n + y/κ): both noises have a part in it.
    """

    means: dict[str, float]
    deviation: float


def split(rows: Rows, rng: np.random.Generator, fewest: int = FEWEST) -> tuple[Rows, Rows]:
    """Rows without a tenth of each, one item at least, and that tenth; rows of fewer items than `fewest` stay whole."""
    n = np.diff(rows.indptr)
    users = np.repeat(np.arange(rows.shape[0]), n)
    order = np.lexsort((rng.random(rows.nnz), users))
    rank = np.empty(rows.nnz, np.int64)
    rank[order] = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], n)
    held = (rank < np.maximum(1, np.round(HELD_OUT * n))[users]) & (n >= fewest)[users]
    return _part(rows, users, ~held), _part(rows, users, held)


def estimate(rows: Rows, held: Rows, models: Sequence[Model], budget: Budget) -> Utility:
    """Σ a_j and Σ κ over users with held-out items, with noise, divided: one user moves them by √(K + κ²) at most."""
    gains = [gain(lists(model, rows, TOP), held) for model in models]
    some = np.diff(held.indptr) > 0
    sums = np.array([*(np.floor(of * 2.0**BITS).sum() / 2.0**BITS for of in gains), COUNTED * some.sum()])
    sensitivity = float(np.nextafter(np.sqrt(len(models) + COUNTED**2), np.inf))
    noisy = budget.spend("utility", sums, sensitivity, min(SHARE, budget.left))
    n = max(float(noisy[-1]) / COUNTED, 1.0)
    means: dict[str, float] = {
        model.kind: float(np.clip(total / n, 0, 1)) for model, total in zip(models, noisy, strict=False)
    }
    return Utility(means, budget.blocks[-1].scale / n * math.hypot(1, max(means.values()) / COUNTED))


def gain(made: NDArray[np.int64], held: Rows) -> NDArray[np.float64]:
    """(n_users,) NDCG of lists (n_users, k), -1 where there is no item; 0 of who has nothing held out."""
    discounts = 1 / np.log2(np.arange(2, made.shape[1] + 2))
    keys = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr)) * held.shape[1] + held.indices
    asked = np.arange(len(made))[:, None] * held.shape[1] + made
    right = np.isin(asked, keys) & (made >= 0)
    ideal = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(np.diff(held.indptr), len(discounts))]
    ideal[np.diff(held.indptr) == 0] = 1.0
    return np.asarray(np.minimum((right * discounts).sum(1) / ideal, 1.0))


def _part(rows: Rows, users: NDArray[np.int64], kept: NDArray[np.bool_]) -> Rows:
    return csr_array((rows.data[kept], (users[kept], rows.indices[kept])), shape=rows.shape)
