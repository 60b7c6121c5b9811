"""Errors of predicted ratings (docs/methods.md §5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mae(ratings: ArrayLike, predictions: ArrayLike, low: float = -np.inf, high: float = np.inf) -> float:
    """Mean absolute error of (n,) predictions, cut off at `low` and `high`.

    Raises:
        ValueError: no ratings, arrays of different length, or a value that is not finite.
    """
    truth, guess = np.asarray(ratings, np.float64), np.asarray(predictions, np.float64)
    if truth.ndim != 1 or truth.shape != guess.shape or not len(truth):
        raise ValueError(f"mae needs two 1-D arrays of equal length, 1 or more (have {truth.shape} and {guess.shape})")
    if not (np.isfinite(truth).all() and np.isfinite(guess).all()):
        raise ValueError("mae: a rating or prediction is not finite")
    return float(np.abs(truth - np.clip(guess, low, high)).mean())


def errors(
    ratings: NDArray[np.floating],
    predictions: NDArray[np.floating],
    sensitive: NDArray[np.bool_],
    low: float,
    high: float,
) -> dict[str, float]:
    """`mae`, without cutting off (`mae/uncut`), and of the ratings that users keep to themselves and of all others.

    Args:
        ratings, predictions, sensitive: (n,). Where none or all are sensitive, one of the parts is left out.

    Raises:
        ValueError: see `mae`.
    """
    values = {"mae": mae(ratings, predictions, low, high), "mae/uncut": mae(ratings, predictions)}
    for name, which in (("mae/sensitive", sensitive), ("mae/public", ~sensitive)):
        if which.any():
            values[name] = mae(ratings[which], predictions[which], low, high)
    return values
