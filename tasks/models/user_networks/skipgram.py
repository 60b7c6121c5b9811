"""Skip-gram with negative sampling (Mikolov et al., NIPS 2013): by gensim, and in closed form.

Levy and Goldberg (NIPS 2014) show that skip-gram with Q negatives factorises log(#(w, c) · |D| / (#w · #c)) − log Q.
What `skipgram` reaches by passes over words or walks is in `skipgram_vectors` one sparse singular value decomposition:
the same on every machine up to rounding, and nothing but counts to keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from tasks.models.base import ModelConfig

Row = NDArray[np.integer]


class SkipgramConfig(ModelConfig):
    """How skip-gram is trained; all else is as gensim has it by default."""

    dimension: int = Field(default=128, ge=1)
    """Length of the vectors."""
    window: int = Field(default=10, ge=1)
    """Tokens of one row at most so far apart are near each other; each window's width is drawn up to it."""
    negatives: int = Field(default=5, ge=1)
    """Q: tokens drawn against each pair."""
    passes: int = Field(default=1, ge=1)
    """How often all rows are gone through."""


@dataclass(frozen=True)
class _Named:
    """Rows as gensim reads them, again in every pass: lists of names, without -1."""

    rows: Iterable[Row]
    names: NDArray[np.object_]

    def __iter__(self) -> Iterator[list[str]]:
        for row in self.rows:
            yield self.names[row[row >= 0]].tolist()


def skipgram(rows: Iterable[Row], n: int, config: SkipgramConfig, rng: np.random.Generator) -> NDArray[np.float32]:
    """A vector for each token: (n, dimension) float32; zeros for tokens that are in no row.

    One thread trains, so that the result is the same again. Frequent tokens are not downsampled.

    Args:
        rows: each (n_tokens,) ids from 0 to n - 1, and -1 for none; gone through once more than `passes`.
    """
    from gensim.models import Word2Vec  # a second to import, which the closed form need not pay

    model = Word2Vec(
        vector_size=config.dimension, window=config.window, negative=config.negatives, epochs=config.passes,
        sg=1, min_count=1, sample=0, workers=1, seed=int(rng.integers(2**31)),
    )  # fmt: skip
    named = _Named(rows, np.array([str(token) for token in range(n)], object))
    vectors = np.zeros((n, config.dimension), np.float32)
    model.build_vocab(named)
    if len(model.wv):
        model.train(named, total_examples=model.corpus_count, epochs=config.passes)
        vectors[[int(name) for name in model.wv.index_to_key]] = model.wv.vectors
    return vectors


def shifted_ppmi(counts: csr_array, negatives: float) -> csr_array:
    """max(0, log(C_ij · ΣC / (C_i · C_j)) − log Q), sparse: cells without a count are 0 as well."""
    cells = counts.tocoo()
    row_sums, column_sums = np.asarray(counts.sum(1)).ravel(), np.asarray(counts.sum(0)).ravel()
    values = np.log(cells.data * counts.sum() / (row_sums[cells.row] * column_sums[cells.col])) - np.log(negatives)
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
