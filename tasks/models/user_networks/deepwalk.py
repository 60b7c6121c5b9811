"""DeepWalk (Perozzi et al., KDD 2014): skip-gram over random walks of users along friendships; and NetMF.

DeepWalk has negative sampling, where the original had hierarchical softmax. NetMF (Qiu et al., WSDM 2018) factorises
the matrix that DeepWalk factorises implicitly: its powers of the transition matrix are estimated by walks, counted as
they come, a block of starts at a time. A user without friends has a row of zeros.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from typing_extensions import override

from tasks.models.base import ModelConfig
from tasks.models.user_networks.base import DirectEmbedder, NetworkData
from tasks.models.user_networks.skipgram import SkipgramConfig, skipgram, skipgram_vectors
from tasks.models.user_networks.walks import cooccurrences, walks_of
from tasks.privacy.terms import Protected


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
