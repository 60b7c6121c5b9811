"""Checks of rankings: ids within their range, lists without repeats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PADDING = -1
"""In place of an item after the end of a shorter list."""


def require_ids(name: str, ids: NDArray[np.integer], count: int | None = None, first: int = 0) -> None:
    """Check that ids, of any shape, are integers in first..count - 1, or from `first` where there is no `count`."""
    if ids.size and ids.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers, not {ids.dtype}")
    end = np.inf if count is None else count
    if ids.size and (ids.min() < first or ids.max() >= end):
        wrong = ids[(ids < first) | (ids >= end)]
        raise ValueError(f"{name} must lie in {first}..{'∞' if count is None else count - 1}, not {wrong.flat[0]}")


def require_lists(items: NDArray[np.integer]) -> None:
    """Check that no list of (..., K) items, or `PADDING`, holds an item more than once."""
    require_ids("items", items, first=PADDING)
    ordered = np.sort(items, axis=-1)
    repeated = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != PADDING)
    if repeated.any():
        raise ValueError(f"item {ordered[..., 1:][repeated][0]} is in one list more than once")
