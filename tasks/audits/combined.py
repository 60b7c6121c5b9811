"""One statistic of several that are seen in every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RIDGE = 1e-9
"""Share of the mean variance that every statistic is given, so that one without noise decides alone."""


def combined(
    without: NDArray[np.float64], present: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Their sum with the weights that tell the two worlds apart best (Fisher's linear discriminant): (n,) each.

    Weights come from the first half of the runs, which also chooses an audit's event, so that they do not spoil its
    confidence. Of Gaussian noise the sum is the log-likelihood ratio; a statistic that lacks its noise has by far the
    largest weight.

    Args:
        without, present: (n, k) statistics of runs in either world.
    """
    first = [side[: len(side) // 2] for side in (without, present)]
    moved = first[1].mean(0) - first[0].mean(0)
    covariance = sum(np.cov(side, rowvar=False) for side in first)
    weights = np.linalg.solve(covariance + RIDGE * np.trace(covariance) * np.eye(len(moved)), moved)
    return without @ weights, present @ weights
