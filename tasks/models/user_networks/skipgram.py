"""Skip-gram with negative sampling (Mikolov et al., NIPS 2013): by gensim, and in closed form; of texts and of walks.

Levy and Goldberg (NIPS 2014) show that skip-gram with Q negatives factorises log(#(w, c) · |D| / (#w · #c)) − log Q.
What `skipgram` reaches by passes over words or walks is in `skipgram_vectors` one sparse singular value decomposition:
the same on every machine up to rounding, and nothing but counts to keep.

Word2Vec: users as the mean of their words' vectors; on sanitised texts SANTEXT. The closed form is what other models
read of texts. Where a network has only vectors of whole texts, these are the users'.

DeepWalk (Perozzi et al., KDD 2014): random walks of users along friendships, with negative sampling where the original
had hierarchical softmax. NetMF (Qiu et al., WSDM 2018) factorises the matrix that DeepWalk factorises implicitly: its
powers of the transition matrix are estimated by walks, counted as they come, a block of starts at a time. A user
without friends has a row of zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.models.base import ModelConfig
from tasks.models.user_networks.base import DirectEmbedder, NetworkData, Posts
from tasks.models.user_networks.friendship import cooccurrences, walks_of
from tasks.privacy.terms import Protected

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


class Word2VecConfig(ModelConfig):
    """Configuration of `Word2Vec`. The paper names none; window and negatives are those of the original's code."""

    dimension: int = Field(default=128, ge=1)
    """Length of the vectors of words."""
    window: int = Field(default=5, ge=1)
    """Words of one post at most so far apart are near each other."""
    negatives: float = Field(default=5.0, ge=1)
    """Q: words drawn against each pair, whose logarithm is taken off the PMI."""


def word_vectors(posts: Posts, config: Word2VecConfig, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n_words, dimension) float32: a vector for each word of the vocabulary."""
    counts = cooccurrences(posts.tokens, posts.of_tokens, posts.n_words, config.window)
    return skipgram_vectors(counts, config.dimension, config.negatives, rng)


def with_word_vectors(data: NetworkData, config: Word2VecConfig, rng: np.random.Generator) -> NetworkData:
    """The network with vectors of its words, trained on its own posts; as it is where it has no posts."""
    return data if data.posts is None else replace(data, word_vectors=word_vectors(data.posts, config, rng))


def mean_of_words(data: NetworkData, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n_users, d): the mean over all words that a user wrote, zeros for users who wrote none."""
    assert data.posts is not None
    posts = data.posts
    writers = torch.from_numpy(np.repeat(posts.users, np.diff(posts.indptr)).astype(np.int64))
    bounds = torch.searchsorted(writers, torch.arange(data.n_users))
    tokens = torch.from_numpy(posts.tokens).long()
    if not len(tokens):
        return np.zeros((data.n_users, vectors.shape[1]), np.float32)
    return torch.nn.functional.embedding_bag(tokens, torch.from_numpy(vectors), bounds, mode="mean").numpy()


def text_of_users(data: NetworkData, config: Word2VecConfig, rng: np.random.Generator) -> NDArray[np.float32] | None:
    """(n_users, d): what each user wrote; the words' own vectors if the network has them. None without any text."""
    if data.posts is not None:
        vectors = data.word_vectors if data.word_vectors is not None else word_vectors(data.posts, config, rng)
        return mean_of_words(data, vectors)
    if data.text_vectors is None:
        return None
    if data.has_text is None:
        return data.text_vectors
    return np.where(data.has_text[:, None], data.text_vectors, np.float32(0))


class Word2Vec(DirectEmbedder):
    """The mean of a user's words, which are learned in closed form from the posts."""

    config: Word2VecConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"text"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        users = text_of_users(data, self.config, rng)
        if users is None:
            raise DataError("network: no texts and no vectors of texts; choose a model that needs none")
        return users


class TrainedWord2VecConfig(SkipgramConfig):
    """Configuration of `TrainedWord2Vec`. The paper names none; window and negatives are as in the original's code."""

    window: int = Field(default=5, ge=1)
    """Words of one post at most so far apart are near each other; each window's width is drawn up to it."""
    passes: int = Field(default=5, ge=1)
    """How often all posts are gone through; gensim's default."""


class TrainedWord2Vec(Word2Vec):
    """The mean of a user's words, which are learned by skip-gram."""

    config: TrainedWord2VecConfig  # type: ignore[assignment]  # nothing of the other is read where words have vectors

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        if data.posts is not None:
            rows = np.split(data.posts.tokens, data.posts.indptr[1:-1])
            data = replace(data, word_vectors=skipgram(rows, data.posts.n_words, self.config, rng))
        return super().vectors(data, rng)


class DeepWalkConfig(SkipgramConfig):
    """Configuration of `DeepWalk`. Published (by its own paper): dimension 128, walks 80, length 40, window 10."""

    walks: int = Field(default=80, ge=1)
    """γ: walks from each user."""
    length: int = Field(default=40, ge=2)
    """t: users on a walk."""


class DeepWalk(DirectEmbedder):
    """Users who are met on the same walks are close."""

    config: DeepWalkConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"edge"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        blocks = [*walks_of(data.links, data.n_users, self.config.walks, self.config.length, rng)]
        walks = np.concatenate(blocks) if blocks else np.empty((0, self.config.length), np.int32)
        return skipgram(walks, data.n_users, self.config, rng)


class NetMFConfig(ModelConfig):
    """Configuration of `NetMF`: DeepWalk's of its own paper by default."""

    dimension: int = Field(default=128, ge=1)
    """Length of the embeddings."""
    walks: int = Field(default=80, ge=1)
    """γ: walks from each user."""
    length: int = Field(default=40, ge=2)
    """t: users on a walk."""
    window: int = Field(default=10, ge=1)
    """w: users of one walk at most so far apart are near each other."""
    negatives: float = Field(default=1.0, ge=1)
    """Q of skip-gram, whose logarithm is taken off the PMI."""


def netmf_vectors(data: NetworkData, config: NetMFConfig, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n_users, dimension) float32; zeros for users without friends."""
    counts = csr_array((data.n_users, data.n_users))
    for walks in walks_of(data.links, data.n_users, config.walks, config.length, rng):
        walk_ids = np.repeat(np.arange(len(walks)), config.length)
        counts = counts + cooccurrences(walks.ravel(), walk_ids, data.n_users, config.window)
    return skipgram_vectors(counts, config.dimension, config.negatives, rng)


class NetMF(DirectEmbedder):
    """Users who are met on the same walks are close."""

    config: NetMFConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"edge"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        return netmf_vectors(data, self.config, rng)
