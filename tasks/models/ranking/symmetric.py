"""Symmetric matrices of `dpals`: sums of outer products, their noise, and what takes it away."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.privacy import noise

Floats = NDArray[np.float64]


def outer_sums(cells: csr_array, vectors: Floats, weights: Floats | None = None) -> Floats:
    """Σ_k weights_k v_k v_kᵀ over the k of each row of cells: (n_rows, d, d).

    A row at a time, as the product of a matrix and its transpose.
    """
    roots = vectors if weights is None else np.sqrt(weights)[:, None] * vectors
    sums = np.empty((cells.shape[0], vectors.shape[1], vectors.shape[1]))
    for row, (start, stop) in enumerate(pairwise(cells.indptr)):
        members = roots[cells.indices[start:stop]]
        np.matmul(members.T, members, out=sums[row])
    return sums


def positive_part(matrices: Floats) -> Floats:
    """The nearest positive semi-definite matrices (Frobenius norm) to symmetric ones: (..., d, d)."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def shrink(noisy: Floats, std: float) -> Floats:
    """(n, d) with each right singular direction of energy s² times max(0, 1 - n std²/s²), a Wiener filter.

    Noise adds n std² to the expected energy of every direction; one that has no more than that holds nothing else.
    """
    energies, directions = np.linalg.eigh(noisy.T @ noisy)
    of_noise = len(noisy) * std**2
    kept = 1 - np.divide(of_noise, energies, out=np.ones_like(energies), where=energies > of_noise)
    return noisy @ (directions * kept) @ directions.T


def noisy_squares(release: str, exact: Floats, std: float, sensitivity: float, rng: np.random.Generator) -> Floats:
    """Symmetric (..., d, d) with symmetric noise; as they are where `std` is 0."""
    return noise.add_symmetric_gaussian(rng, release, exact, std, sensitivity=sensitivity) if std else exact


def triangles(matrices: Floats) -> Floats:
    """Upper triangles of symmetric (..., d, d), what is off the diagonal times √2: a map that keeps norms."""
    above, below = np.triu_indices(matrices.shape[-1])
    return matrices[..., above, below] * np.where(above == below, 1.0, math.sqrt(2))
