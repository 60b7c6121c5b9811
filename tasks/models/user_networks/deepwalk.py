"""DeepWalk (Perozzi et al., KDD 2014): skip-gram over random walks of users along friendships.

Walks are counted as they come, a block of starts at a time; skip-gram is solved in closed form (`skipgram`). A user
without friends has a row of zeros.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor
from typing_extensions import override

from tasks.models.base import SILENT, ModelConfig, Progress
from tasks.models.user_networks.base import NetworkData, UserEmbedder, raw_inputs
from tasks.models.user_networks.friendship import neighbourhoods
from tasks.models.user_networks.skipgram import skipgram_vectors
from tasks.models.user_networks.walks import cooccurrences, random_walks
from tasks.privacy.accounting.ledger import Protected

STEPS_AT_ONCE = 1 << 22
"""Nodes of walks held at a time."""


class DeepWalkConfig(ModelConfig):
    """Configuration of `DeepWalk`. Published (by its own paper): dimension 128, walks 80, length 40, window 10."""

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


def walk_vectors(data: NetworkData, config: DeepWalkConfig, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n_users, dimension) float32; zeros for users without friends."""
    graph = neighbourhoods(data.links, data.n_users)
    befriended = np.flatnonzero(np.diff(graph.indptr.numpy()))
    starts = np.tile(befriended, config.walks)
    counts = csr_array((data.n_users, data.n_users))
    at_once = max(STEPS_AT_ONCE // config.length, 1)
    for begin in range(0, len(starts), at_once):
        walks = random_walks(graph, starts[begin : begin + at_once], config.length, rng)
        of_walks = np.repeat(np.arange(len(walks)), config.length)
        counts = counts + cooccurrences(walks.ravel(), of_walks, data.n_users, config.window)
    return skipgram_vectors(counts, config.dimension, config.negatives, rng)


class DeepWalk(UserEmbedder):
    """Users who are met on the same walks are close."""

    config: DeepWalkConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"edge"})

    @override
    def fit(self, data: NetworkData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:  # type: ignore[override]
        self._entries = tuple(raw_inputs([data], self.reads))
        self._embeddings = {"users": torch.from_numpy(walk_vectors(data, self.config, rng))}
        return self

    def compute(self) -> dict[str, Tensor]:
        """See `Embedder.compute`: nothing but what `fit` made."""
        raise RuntimeError("embed called before fit")
