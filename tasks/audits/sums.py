"""Audits of the models that are fitted to noisy sums over users: `dpals` and those of a release."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.audits import Samples
from tasks.audits.worlds import worlds
from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpals import DPALS, Adds, DPALSConfig, Floats, distinct_cells
from tasks.models.ranking.gram import GaussianPopularity, GramConfig, GramEASE, GramSVD
from tasks.release import rule
from tasks.release import sums as sums_over_users

DELTA, CONTRIBUTION, ABOVE = 0.1, 4.0, 4
"""ABOVE: times as many items has the user as count, so that every release moves by its bound, but for the Gramian."""
CERTAIN = 1e6
"""What a release without noise adds to a statistic: it then shows the world for certain."""
N_ITEMS, OTHERS = 25, 120
"""All items are in the head; others have all of them: enough for the rule to release pairs, and not counts alone."""
CONFIG = {
    "dimension": 1, "user_ridge": 1e-6, "item_ridge": 1.0, "clip": 1.0, "lengthen": True, "contribution": CONTRIBUTION,
    "delta": DELTA, "iterations": 2, "counts_share": 0.4, "gramian_share": 0.02,
}  # fmt: skip


def enough(epsilon: float) -> int:
    """Runs with which half of the noise is refuted from ε = 1 on; below it they do not suffice."""
    return 8_000 if 1 <= epsilon < 2 else 2_000


def dpals(seed: int, n_samples: int | None = None, epsilon: float = 2.0, **more: object) -> Samples:
    """A user with all items, or no one; the statistic is the log-likelihood ratio of all that was released.

    more: of the configuration what differs from `CONFIG`.
    """
    n_items = int(ABOVE * CONTRIBUTION)
    items = np.arange(n_items, dtype=np.int32)
    without, present = (TrainingData(1, n_items, np.zeros(n, np.int32), items[:n]) for n in (0, n_items))
    return dpals_between(without, present, seed, n_samples, epsilon, **more)


def dpals_between(
    without: TrainingData,
    present: TrainingData,
    seed: int,
    n_samples: int | None = None,
    epsilon: float = 2.0,
    **more: object,
) -> Samples:
    """The same of data without a user and with one."""
    model = DPALS(DPALSConfig.model_validate(CONFIG | {"epsilon": epsilon} | more))
    cells = distinct_cells(without), distinct_cells(present)

    def run(there: bool, rng: np.random.Generator) -> float:
        model.watch = auditor = _Ratio(*cells)
        model.fit(present if there else without, rng=rng)
        return auditor.total

    return Samples(*worlds(run, seed, n_samples or enough(epsilon)), model.ledger()[0])


class _Ratio:
    """Adds up the log-likelihood ratios of the releases of one fit."""

    def __init__(self, without: csr_array, present: csr_array) -> None:
        self._without, self._present = without, present
        self.total = 0.0

    def __call__(self, noisy: Floats, std: float, adds: Adds) -> None:
        """Take in a release, given all before it."""
        before, after = adds(self._without), adds(self._present)
        moved = after - before
        ratio = float((moved * (noisy - before - moved / 2)).sum()) / std**2
        self.total += ratio + CERTAIN * np.array_equal(noisy, after)


def _gram(
    make: type[GramSVD], seed: int, n_samples: int | None = None, epsilon: float = 2.0, delta: float = DELTA
) -> Samples:
    """A user with more items than both caps, or no one; the statistic is the log-likelihood ratio of both sums."""
    model = make(GramConfig(epsilon=epsilon, delta=delta))
    expected = _sums(OTHERS), _sums(OTHERS + 1)

    def run(present: bool, rng: np.random.Generator) -> float:
        users, items = np.nonzero(np.ones((OTHERS + present, N_ITEMS)))
        released = model.fit(
            TrainingData(OTHERS + 1, N_ITEMS, users.astype(np.int32), items.astype(np.int32)), rng=rng
        ).made
        assert released is not None
        blocks = (released.counts, released.counts_scale), (released.pairs, released.pairs_scale)
        return sum(
            float(((after - before) * (noisy - (before + after) / 2)).sum()) / scale**2
            + CERTAIN * np.array_equal(noisy, after)
            for (noisy, scale), before, after in zip(blocks, *expected, strict=True)
            if len(noisy)
        )

    return Samples(*worlds(run, seed, n_samples or enough(epsilon)), model.ledger()[0])


svd, ease, popularity = (partial(_gram, model) for model in (GramSVD, GramEASE, GaussianPopularity))


def _sums(n_users: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows = csr_array(np.ones((n_users, N_ITEMS), np.int8))
    return sums_over_users.counts(rows, rule.COUNTED), sums_over_users.pairs(rows, rule.PAIRED)
