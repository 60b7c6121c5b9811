"""Errors of predicted ratings (docs/methods.md §5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tasks.evaluation.metrics import Measured


def mae(ratings: ArrayLike, predictions: ArrayLike, low: float = -np.inf, high: float = np.inf) -> float:
    """Mean absolute error of (n,) predictions, cut off at `low` and `high`."""
    return float(absolute_errors(ratings, predictions, low, high).mean())


def absolute_errors(
    ratings: ArrayLike, predictions: ArrayLike, low: float = -np.inf, high: float = np.inf
) -> NDArray[np.float64]:
    """What `mae` averages, and its errors: (n,)."""
    truth, guess = np.asarray(ratings, np.float64), np.asarray(predictions, np.float64)
    if truth.ndim != 1 or truth.shape != guess.shape or not len(truth):
        raise ValueError(f"mae needs two 1-D arrays of equal length, 1 or more (have {truth.shape} and {guess.shape})")
    if not (np.isfinite(truth).all() and np.isfinite(guess).all()):
        raise ValueError("mae: a rating or prediction is not finite")
    return np.abs(truth - np.clip(guess, low, high))


def errors(
    users: NDArray[np.integer],
    ratings: NDArray[np.floating],
    predictions: NDArray[np.floating],
    sensitive: NDArray[np.bool_],
    low: float,
    high: float,
) -> list[Measured]:
    """`mae`, without cutting off (`mae/uncut`), and of the ratings that users keep to themselves and of all others.

    Args:
        users, ratings, predictions, sensitive: (n,). Where none or all are sensitive, one of the parts is left out.
    """
    cut, uncut = absolute_errors(ratings, predictions, low, high), absolute_errors(ratings, predictions)
    parts = (("mae/sensitive", sensitive), ("mae/public", ~sensitive))
    return [
        Measured("mae", None, users, cut),
        Measured("mae/uncut", None, users, uncut),
        *(Measured(name, None, users[part], cut[part]) for name, part in parts if part.any()),
    ]
