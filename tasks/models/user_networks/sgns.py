"""Skip-gram with negative sampling (Mikolov et al., NIPS 2013), by gensim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from gensim.models import Word2Vec
from numpy.typing import NDArray
from pydantic import Field

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

    One thread trains, so that the result is the same again. Frequent tokens are not thinned out.

    Args:
        rows: each (n_tokens,) ids from 0 to n - 1, and -1 for none; gone through once more than `passes`.
    """
    model = Word2Vec(
        vector_size=config.dimension,
        window=config.window,
        negative=config.negatives,
        epochs=config.passes,
        sg=1,
        min_count=1,
        sample=0,
        workers=1,
        seed=int(rng.integers(2**31)),
    )
    named = _Named(rows, np.array([str(token) for token in range(n)], object))
    vectors = np.zeros((n, config.dimension), np.float32)
    model.build_vocab(named)
    if len(model.wv):
        model.train(named, total_examples=model.corpus_count, epochs=config.passes)
        vectors[[int(name) for name in model.wv.index_to_key]] = model.wv.vectors
    return vectors
