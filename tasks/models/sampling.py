"""Negative sampling for pairwise ranking losses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.errors import DataError


class NegativeSampler:
    """Draws items that a user has no training interaction with, uniformly; memory is linear in the interactions."""

    def __init__(self, users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int) -> None:
        """users, items: (n_interactions,) parallel arrays.

        Raises:
            DataError: a user interacted with every item, so that no negative exists.
        """
        self.n_items = n_items
        self._codes = np.unique(users.astype(np.int64) * n_items + items)
        counts = np.bincount(self._codes // n_items, minlength=n_users)
        if (full := np.flatnonzero(counts >= n_items)).size:
            raise DataError(f"interactions: user {full[0]} has all {n_items} items, so no negative item can be drawn")

    def draw(self, users: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
        """One negative item for each of `users`: (n,) int32."""
        negatives = rng.integers(0, self.n_items, len(users), dtype=np.int32)
        pending = np.flatnonzero(self._seen(users, negatives))
        while pending.size:
            negatives[pending] = rng.integers(0, self.n_items, len(pending), dtype=np.int32)
            pending = pending[self._seen(users[pending], negatives[pending])]
        return negatives

    def _seen(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.bool_]:
        codes = users.astype(np.int64) * self.n_items + items
        positions = np.searchsorted(self._codes, codes)
        positions[positions == len(self._codes)] = 0
        return self._codes[positions] == codes
