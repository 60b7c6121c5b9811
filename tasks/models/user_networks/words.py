"""Word2Vec (Mikolov et al., NIPS 2013): users as the mean of their words' vectors. On sanitised texts: SANTEXT.

Skip-gram with negative sampling, by gensim; `word2vec` has its closed form, which is what other models read of texts.
Where a network has only vectors of whole texts, these are the users'.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tasks.models.user_networks.base import NetworkData
from tasks.models.user_networks.sgns import SkipgramConfig, skipgram
from tasks.models.user_networks.word2vec import MeanOfWords, Word2VecConfig, mean_of_words, text_of_users


class TrainedWord2VecConfig(SkipgramConfig):
    """Configuration of `TrainedWord2Vec`. The paper names none; window and negatives are as in the original's code."""

    window: int = Field(default=5, ge=1)
    """Words of one post at most so far apart are near each other; each window's width is drawn up to it."""
    passes: int = Field(default=5, ge=1)
    """How often all posts are gone through; gensim's default."""


class TrainedWord2Vec(MeanOfWords):
    """The mean of a user's words, which are learnt by skip-gram."""

    config: TrainedWord2VecConfig

    def users(self, data: NetworkData, rng: np.random.Generator) -> NDArray[np.float32] | None:
        """See `MeanOfWords.users`."""
        if data.posts is None:
            return text_of_users(data, Word2VecConfig(), rng)
        rows = np.split(data.posts.tokens, data.posts.indptr[1:-1])
        return mean_of_words(data, skipgram(rows, data.posts.n_words, self.config, rng))
