"""What published ratings alone make someone expect of other ratings: damped means of items and users.

mean + Σ_item (r - mean) / (n_item + d) + Σ_user (r - mean - item) / (n_user + d). Source: Koren, "Factor in the
Neighbors" (TKDD 2010), §2.1, its two dampings set equal. d is the one of a grid whose mean absolute error is the least
over published ratings, each predicted without itself: no other rating has a say.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAMPINGS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
"""Made-up average ratings of every item, and of every user, to choose from."""


@dataclass(frozen=True)
class DampedMeans:
    """Means of known ratings.

    users, items: (n,) ids; ratings: (n,), at least one; low, high: ends of the scale.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    ratings: Floats
    n_users: int
    n_items: int
    low: float
    high: float

    def expected(self, users: NDArray[np.int32], items: NDArray[np.int32], damping: float) -> Floats:
        """Ratings of (n_asked,) users of as many items: (n_asked,)."""
        mean, of_items, of_users, (n_items, n_users) = self._sums(damping)
        item, user = of_items / np.maximum(n_items + damping, 1), of_users / np.maximum(n_users + damping, 1)
        return np.clip(mean + item[items] + user[users], self.low, self.high)

    def left_out(self, damping: float) -> Floats:
        """What is expected of each known rating without it, but for its part in the mean of all: (n,)."""
        mean, of_items, of_users, (n_items, n_users) = self._sums(damping)
        users, items, off = self.users, self.items, self.ratings - mean
        item = of_items / np.maximum(n_items + damping, 1)
        without = (of_items[items] - off) / np.maximum(n_items[items] - 1 + damping, 1)
        user = (of_users[users] - (off - item[items])) / np.maximum(n_users[users] - 1 + damping, 1)
        return np.clip(mean + without + user, self.low, self.high)

    @cached_property
    def best(self) -> float:
        """The damping of the grid that predicts known ratings best, each without itself."""
        return min(DAMPINGS, key=lambda damping: float(np.abs(self.left_out(damping) - self.ratings).mean()))

    def _sums(self, damping: float) -> tuple[float, Floats, Floats, tuple[Floats, Floats]]:
        """The mean rating, sums of items' deviations from it and of users' from their items', and how many each has."""
        mean = float(self.ratings.mean(dtype=np.float64))
        off = self.ratings - mean
        n_items = np.bincount(self.items, minlength=self.n_items).astype(np.float64)
        n_users = np.bincount(self.users, minlength=self.n_users).astype(np.float64)
        of_items = np.bincount(self.items, off, self.n_items).astype(np.float64)
        off = off - (of_items / np.maximum(n_items + damping, 1))[self.items]
        of_users = np.bincount(self.users, off, self.n_users).astype(np.float64)
        return mean, of_items, of_users, (n_items, n_users)
