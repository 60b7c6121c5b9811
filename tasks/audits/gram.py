"""Audits of the models that are fitted to noisy counts and pairs: `gram-svd` and `gram-ease`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.audits import Samples
from tasks.audits.worlds import worlds
from tasks.models.ranking.gram import GramConfig, GramEASE, GramSVD
from tasks.release import rule, sums
from tasks.training_data import TrainingData

N_ITEMS, OTHERS = 25, 60
"""All items are in the head; others have all of them, so that pairs are released."""
CERTAIN = 1e6
"""What a sum without noise adds to a statistic: it then tells the world for certain."""


def svd(seed: int, n_samples: int = 2_000, epsilon: float = 2.0, delta: float = 0.1) -> Samples:
    """A user with more items than both caps, or nobody; the statistic is the log-likelihood ratio of both sums."""
    return _samples(GramSVD(GramConfig(epsilon=epsilon, delta=delta)), seed, n_samples)


def ease(seed: int, n_samples: int = 2_000, epsilon: float = 2.0, delta: float = 0.1) -> Samples:
    """As `svd`."""
    return _samples(GramEASE(GramConfig(epsilon=epsilon, delta=delta)), seed, n_samples)


def _samples(model: GramSVD, seed: int, n_samples: int) -> Samples:
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
        )

    return Samples(*worlds(run, seed, n_samples), model.ledger()[0])


def _sums(n_users: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts and pairs of so many users with all items."""
    rows = csr_array(np.ones((n_users, N_ITEMS), np.int8))
    return sums.counts(rows, rule.COUNTED), sums.pairs(rows, rule.PAIRED)
