"""Checks of rankings: ids within their range, lists without repeats, hits that are possible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PADDING = -1
"""In place of an item after the end of a shorter list."""


def require_ids(name: str, ids: NDArray[np.integer], count: int | None = None, first: int = 0) -> None:
    """Check that ids are integers in first..count - 1.

    Args:
        ids: of any shape.
        count: None for no upper end.

    Raises:
        ValueError: they are not (names the first that is not).
    """
    if ids.size and ids.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, not {ids.dtype}")
    if ids.size and (ids.min() < first or (count is not None and ids.max() >= count)):
        wrong = ids[(ids < first) | (ids >= (np.inf if count is None else count))]
        raise ValueError(f"{name} must lie in {first}..{'∞' if count is None else count - 1}, not {wrong.flat[0]}")


def require_lists(items: NDArray[np.integer]) -> None:
    """Check that no list holds an item more than once.

    Args:
        items: (..., K) items of each list, or `PADDING`.

    Raises:
        ValueError: one does (names the item), or there is another negative number.
    """
    require_ids("items", items, first=PADDING)
    ordered = np.sort(items, axis=-1)
    repeated = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != PADDING)
    if repeated.any():
        raise ValueError(f"item {ordered[..., 1:][repeated][0]} is in one list more than once")


def require_hits(hits: NDArray[np.bool_], n_relevant: NDArray[np.integer]) -> None:
    """Check that there are users, each with a held-out item and with no more hits than held-out items.

    Args:
        hits: (n_users, K) 0 or 1.
        n_relevant: (n_users,) number of held-out items of each user.

    Raises:
        ValueError: it is not so.
    """
    if hits.ndim != 2 or n_relevant.shape != hits.shape[:1] or not len(hits):
        raise ValueError(f"hits of shape {hits.shape} need one or more users, not {n_relevant.shape} of n_relevant")
    require_ids("held-out items of each user", n_relevant, first=1)
    if hits.dtype != np.bool_ and not np.isin(hits, (0, 1)).all():
        raise ValueError("hits must be 0 or 1: relevance is not graded")
    if (impossible := np.flatnonzero(hits.sum(axis=1) > n_relevant)).size:
        worst = impossible[0]
        raise ValueError(f"user {worst} has {hits[worst].sum()} hits, but {n_relevant[worst]} held-out items")
