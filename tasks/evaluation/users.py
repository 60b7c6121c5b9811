"""What a ranking is worth to each user, and how its values spread: counts of users, never who they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LEAST = 10
"""Users of a bin that may be published."""


def exposure(lists: NDArray[np.integer], popularity: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_users,) mean popularity of what each user is shown.

    Args:
        lists: (n_users, k) items.
        popularity: (n_items,) share of all users who have an item in the training data.
    """
    return np.asarray(popularity[lists].mean(axis=1), np.float64)


def bin_users(
    values: NDArray[np.float64], edges: Sequence[float], least: int = LEAST
) -> list[tuple[float, float, int]]:
    """(low, high, users) of bins between neighbouring edges; small ones are joined with the next, so none is smaller.

    Where no one is between two bins there is none.

    Args:
        values: (n_users,) within the first and the last edge; the last bin includes its upper end.
        edges: ascending.
        least: users that a bin must have; with fewer users in all there is no bin.
    """
    counts, _ = np.histogram(values, edges)
    bins: list[tuple[float, float, int]] = []
    low, high, users = float(edges[0]), float(edges[0]), 0
    for start, end, count in zip(edges[:-1], edges[1:], counts, strict=True):
        if not count:
            continue
        low, high, users = low if users else float(start), float(end), users + int(count)
        if users >= least:
            bins.append((low, high, users))
            users = 0
    if bins and users:  # what is left over belongs to the last one
        first, _, before = bins[-1]
        bins[-1] = (first, high, before + users)
    return bins
