"""Word2Vec (Mikolov et al., NIPS 2013): users as the mean of their words' vectors. On sanitised texts: SANTEXT.

Skip-gram with negative sampling, by gensim; `word2vec` has its closed form, which is what other models read of texts.
Where a network has only vectors of whole texts, these are the users'.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from tasks.errors import DataError
from tasks.models.base import SILENT, Progress
from tasks.models.user_networks.base import NetworkData, UserEmbedder, raw_inputs
from tasks.models.user_networks.sgns import SkipgramConfig, skipgram
from tasks.models.user_networks.word2vec import Word2VecConfig, mean_of_words, text_of_users
from tasks.privacy.accounting.ledger import Protected


class TrainedWord2VecConfig(SkipgramConfig):
    """Configuration of `TrainedWord2Vec`. The paper names none; window and negatives are as in the original's code."""

    window: int = Field(default=5, ge=1)
    """Words of one post at most so far apart are near each other; each window's width is drawn up to it."""
    passes: int = Field(default=5, ge=1)
    """How often all posts are gone through; gensim's default."""


class TrainedWord2Vec(UserEmbedder):
    """The mean of a user's words."""

    config: TrainedWord2VecConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"text"})

    @override
    def fit(self, data: NetworkData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:  # type: ignore[override]
        """See `UserEmbedder.fit`.

        Raises:
            DataError: the network has no texts.
        """
        self._entries = tuple(raw_inputs([data], self.reads))
        if data.posts is None:
            users = text_of_users(data, Word2VecConfig(), rng)
        else:
            rows = np.split(data.posts.tokens, data.posts.indptr[1:-1])
            users = mean_of_words(data, skipgram(rows, data.posts.n_words, self.config, rng))
        if users is None:
            raise DataError("network: no texts and no vectors of texts; choose a model that needs none")
        self._embeddings = {"users": torch.from_numpy(users)}
        return self

    def compute(self) -> dict[str, Tensor]:
        """See `Embedder.compute`: nothing but what `fit` made."""
        raise RuntimeError("embed called before fit")
