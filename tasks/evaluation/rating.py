"""Error of predicted ratings (docs/methods.md §5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


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
