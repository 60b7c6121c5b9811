"""Negative sampling for pairwise ranking losses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.errors import DataError

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: a multiplicative hash (Knuth, The Art of Computer Programming, vol. 3, 6.4)."""
SLOTS, MOST_BITS = 16, 26
"""Slots of the hash table for each interaction, and at most 2^26 of them, of a byte each."""


class NegativeSampler:
    """Draws items that a user has no training interaction with, uniformly; memory is linear in the interactions."""

    def __init__(self, users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int) -> None:
        """users, items: (n_interactions,) parallel arrays."""
        self.n_items = n_items
        self._codes = np.unique(users.astype(np.int64) * n_items + items)
        counts = np.bincount(self._codes // n_items, minlength=n_users)
        if (full := np.flatnonzero(counts >= n_items)).size:
            raise DataError(f"interactions: user {full[0]} has all {n_items} items, so no negative item can be drawn")
        bits = min(MOST_BITS, (SLOTS * len(self._codes)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._taken = np.zeros(1 << bits, bool)
        self._taken[self._slots(self._codes)] = True

    def draw(self, users: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
        """One negative item for each of `users`: (n,) int32."""
        negatives = rng.integers(0, self.n_items, len(users), dtype=np.int32)
        pending = np.flatnonzero(self._is_positive(users, negatives))
        while pending.size:
            negatives[pending] = rng.integers(0, self.n_items, len(pending), dtype=np.int32)
            pending = pending[self._is_positive(users[pending], negatives[pending])]
        return negatives

    def _is_positive(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.bool_]:
        codes = users.astype(np.int64) * self.n_items + items
        positive = self._taken[self._slots(codes)]
        doubtful = np.flatnonzero(positive)  # a slot is taken by others, too
        queries = codes[doubtful]
        positions = np.searchsorted(self._codes, queries)
        positions[positions == len(self._codes)] = 0
        positive[doubtful] = self._codes[positions] == queries
        return positive

    def _slots(self, codes: NDArray[np.int64]) -> NDArray[np.uint64]:
        return (codes.view(np.uint64) * MULTIPLIER) >> self._shift
