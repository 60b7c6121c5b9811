"""DeepWalk (Perozzi et al., KDD 2014): skip-gram over random walks of users along friendships.

With negative sampling, where the original had hierarchical softmax. `netmf` has the closed form. A user without friends
has a row of zeros.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from pydantic import Field
from typing_extensions import override

from tasks.models.base import SILENT, Progress
from tasks.models.user_networks.base import NetworkData, UserEmbedder, raw_inputs
from tasks.models.user_networks.sgns import SkipgramConfig, skipgram
from tasks.models.user_networks.walks import walks_of
from tasks.privacy.terms import Protected


class DeepWalkConfig(SkipgramConfig):
    """Configuration of `DeepWalk`. Published (by its own paper): dimension 128, walks 80, length 40, window 10."""

    walks: int = Field(default=80, ge=1)
    """γ: walks from each user."""
    length: int = Field(default=40, ge=2)
    """t: users on a walk."""


class DeepWalk(UserEmbedder):
    """Users who are met on the same walks are close."""

    config: DeepWalkConfig
    reads: ClassVar[frozenset[Protected]] = frozenset({"edge"})

    @override
    def fit(self, data: NetworkData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:  # type: ignore[override]
        self._entries = tuple(raw_inputs([data], self.reads))
        blocks = [*walks_of(data.links, data.n_users, self.config.walks, self.config.length, rng)]
        walks = np.concatenate(blocks) if blocks else np.empty((0, self.config.length), np.int32)
        self._embeddings = {"users": torch.from_numpy(skipgram(walks, data.n_users, self.config, rng))}
        return self
