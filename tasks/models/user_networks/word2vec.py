"""Word2Vec (Mikolov et al., ICLR 2013): users as the mean of their words' vectors. On sanitised texts: SANTEXT.

Skip-gram is solved in closed form (`skipgram`). Where a network has only vectors of whole texts, these are the users'.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from tasks.errors import DataError
from tasks.models.base import SILENT, ModelConfig, Progress
from tasks.models.user_networks.base import NetworkData, Posts, UserEmbedder, raw_inputs
from tasks.models.user_networks.skipgram import skipgram_vectors
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
    """The network with vectors of its words, learnt from its own posts; as it is where it has no posts."""
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


class MeanOfWords(UserEmbedder):
    """The mean of a user's words, whose vectors are learnt from the posts."""

    reads: ClassVar[frozenset[Protected]] = frozenset({"text"})

    @override
    def fit(self, data: NetworkData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:  # type: ignore[override]
        """See `UserEmbedder.fit`.

        Raises:
            DataError: the network has no texts.
        """
        self._entries = tuple(raw_inputs([data], self.reads))
        users = self.users(data, rng)
        if users is None:
            raise DataError("network: no texts and no vectors of texts; choose a model that needs none")
        self._embeddings = {"users": torch.from_numpy(users)}
        return self

    @abstractmethod
    def users(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32] | None:
        """(n_users, d): what each user wrote; None without any text."""


class Word2Vec(MeanOfWords):
    """The mean of a user's words, which are learnt in closed form."""

    config: Word2VecConfig

    def users(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32] | None:
        """See `text_of_users`."""
        return text_of_users(data, self.config, rng)
