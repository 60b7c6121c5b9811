"""Word2Vec (Mikolov et al., ICLR 2013): users as the mean of their words' vectors. On sanitised texts: SANTEXT.

Skip-gram with negative sampling is trained, or solved in closed form, which is what other models read of texts. Where a
network has only vectors of whole texts, these are the users'.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from tasks.errors import DataError
from tasks.models.base import ModelConfig
from tasks.models.user_networks.base import DirectEmbedder, NetworkData, Posts
from tasks.models.user_networks.skipgram import SkipgramConfig, skipgram, skipgram_vectors
from tasks.models.user_networks.walks import cooccurrences
from tasks.privacy.terms import Protected


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


class MeanOfWords(DirectEmbedder):
    """The mean of a user's words, whose vectors are trained on the posts."""

    reads: ClassVar[frozenset[Protected]] = frozenset({"text"})

    @override
    def vectors(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32]:
        """See `DirectEmbedder.vectors`."""
        users = self.users(data, rng)
        if users is None:
            raise DataError("network: no texts and no vectors of texts; choose a model that needs none")
        return users

    @abstractmethod
    def users(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32] | None:
        """(n_users, d): what each user wrote; None without any text."""


class Word2Vec(MeanOfWords):
    """The mean of a user's words, which are learned in closed form."""

    config: Word2VecConfig

    @override
    def users(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32] | None:
        return text_of_users(data, self.config, rng)


class TrainedWord2VecConfig(SkipgramConfig):
    """Configuration of `TrainedWord2Vec`. The paper names none; window and negatives are as in the original's code."""

    window: int = Field(default=5, ge=1)
    """Words of one post at most so far apart are near each other; each window's width is drawn up to it."""
    passes: int = Field(default=5, ge=1)
    """How often all posts are gone through; gensim's default."""


class TrainedWord2Vec(MeanOfWords):
    """The mean of a user's words, which are learned by skip-gram."""

    config: TrainedWord2VecConfig

    @override
    def users(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32] | None:
        if data.posts is None:
            return text_of_users(data, Word2VecConfig(), rng)
        rows = np.split(data.posts.tokens, data.posts.indptr[1:-1])
        return mean_of_words(data, skipgram(rows, data.posts.n_words, self.config, rng))
