"""Noisy pairs as a matrix of low rank: what stands out of the noise, with the diagonal that was never released."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from tasks.release import rule, sums
from tasks.release.making import Release

Array = NDArray[np.float64]
ROUNDS = 4


class LowRank(NamedTuple):
    """Eigenvectors (H, k), eigenvalues (k,) from the largest on, gains (k,) in [0, 1), and the noise's τ."""

    vectors: Array
    values: Array
    gains: Array
    noise: float

    def matrix(self) -> Array:
        """Pairs without what is noise: (H, H)."""
        return (self.vectors * (self.values * self.gains)) @ self.vectors.T


def denoise(release: Release) -> LowRank:
    """HeteroPCA (Zhang, Cai and Wu, Annals of Statistics 2022) for the diagonal, then shrunken eigenvalues.

    With s the scale of a pair's noise, τ = s √H is half of where the noise's spectrum ends. An eigenvalue λ > 2τ is
    that of a true one x = (λ + √(λ² - 4τ²))/2 among noise, and its gain is 1 - τ²/x²; below, it is 0.
    """
    size = len(release.head)
    matrix = sums.squared(release.pairs, size)
    np.fill_diagonal(matrix, np.abs(matrix).mean())
    largest = [size - min(rule.RANK, size), size - 1]
    for _ in range(ROUNDS):
        values, vectors = (part[..., ::-1] for part in eigh(matrix, subset_by_index=largest, driver="evr"))
        np.fill_diagonal(matrix, np.maximum((vectors**2 * values).sum(1), 0))
    tau = release.pairs_scale * np.sqrt(size)
    true = (values + np.sqrt(np.maximum(values**2 - 4 * tau**2, 0))) / 2
    gains = np.where(values > 2 * tau, 1 - tau**2 / np.maximum(true, tau) ** 2, 0.0)
    return LowRank(vectors, values, gains, float(tau))
