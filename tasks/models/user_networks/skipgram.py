"""Skip-gram with negative sampling in closed form: factorising the shifted positive PMI.

Levy and Goldberg (NIPS 2014) show that skip-gram with Q negatives factorises log(#(w, c) · |D| / (#w · #c)) − log Q.
What `sgns` reaches by passes over words or walks is here one sparse singular value decomposition: the same on every
machine up to rounding, and nothing but counts to keep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds


def shifted_ppmi(counts: csr_array, negatives: float) -> csr_array:
    """max(0, log(C_ij · ΣC / (C_i · C_j)) − log Q), sparse: cells without a count are 0 as well."""
    cells = counts.tocoo()
    of_rows, of_columns = np.asarray(counts.sum(1)).ravel(), np.asarray(counts.sum(0)).ravel()
    values = np.log(cells.data * counts.sum() / (of_rows[cells.row] * of_columns[cells.col])) - np.log(negatives)
    kept = values > 0
    return csr_array((values[kept], (cells.row[kept], cells.col[kept])), shape=counts.shape)


def factorise(matrix: csr_array, dimension: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """U √Σ of the `dimension` largest singular values: (n, dimension) float32; columns beyond the rank are 0."""
    n = matrix.shape[0]
    vectors = np.zeros((n, dimension), np.float32)
    if not matrix.nnz:
        return vectors
    if dimension < n - 1:
        left, values, _ = svds(matrix, dimension, v0=rng.standard_normal(n), random_state=rng)
        left, values = left[:, ::-1], values[::-1]
    else:
        left, values, _ = np.linalg.svd(matrix.toarray())
    left, values = left[:, :dimension], values[:dimension]
    vectors[:, : len(values)] = left * np.sqrt(np.where(values > 1e-9 * values[0], values, 0.0))
    return vectors


def skipgram_vectors(
    counts: csr_array, dimension: int, negatives: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """A vector for each row of a symmetric matrix of co-occurrences: (n, dimension); zeros where nothing occurred."""
    return factorise(shifted_ppmi(counts, negatives), dimension, rng)
