"""SNE (Liao et al., TKDE 2018): friends from who a user is and from what the user's attributes are.

A user's id and attributes are embedded apart, laid side by side (early fusion, attributes weighted by λ = 1) and go
through a layer of softsign units; what comes out predicts the users met on short random walks, by a vector that each
has for that purpose. The paper's softmax over all users is learned by sampling, here by Q negatives. The embedding is
the sum of a user's two vectors, as in the paper.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softsign
from typing_extensions import override

from tasks.models.draws import normal
from tasks.models.training import EpochConfig, draw_weights
from tasks.models.user_networks.base import EpochEmbedder, NetworkData, UserEmbedder, scale
from tasks.models.user_networks.friendship import friendship_loss, nearby_pairs, neighbourhoods, random_walks
from tasks.privacy.terms import Protected


class SNEConfig(EpochConfig):
    """Configuration of `SNE`. `batch_size`: pairs of users met on one walk."""

    dimension: int = Field(default=128, ge=1)
    """Length of the embeddings."""
    ids: int = Field(default=64, ge=1)
    """Length of the vectors of ids."""
    attributes: int = Field(default=64, ge=1)
    """Length of the embedded attributes."""
    length: int = Field(default=10, ge=2)
    """Users on a walk; an epoch is a walk from every user."""
    window: int = Field(default=2, ge=1)
    """Users of one walk at most so far apart are neighbours."""
    negatives: int = Field(default=5, ge=1)
    """Q: users drawn against each pair."""


class SNENetwork(nn.Module):
    """Vectors of ids and attributes, one layer, and vectors of users as neighbours."""

    features: Tensor | None

    def __init__(self, data: NetworkData, config: SNEConfig) -> None:
        super().__init__()
        self.register_buffer("features", None if data.features is None else scale(data.features), persistent=False)
        self.ids = nn.Parameter(torch.empty(data.n_users, config.ids))
        self.neighbours = nn.Parameter(torch.empty(data.n_users, config.dimension))
        width = config.ids
        if data.features is not None:
            self.attributes = nn.Linear(data.features.shape[1], config.attributes, bias=False)
            width += config.attributes
        self.layer = nn.Linear(width, config.dimension)

    def forward(self) -> Tensor:
        """(n_users, dimension): users as they look for neighbours."""
        parts: list[Tensor] = [self.ids]
        if self.features is not None:
            parts.append(self.attributes(self.features))
        return softsign(self.layer(torch.cat(parts, 1)))


class SNE(EpochEmbedder, UserEmbedder):
    """Ids and attributes that predict whom a walk meets."""

    config: SNEConfig
    network: SNENetwork
    reads: ClassVar[frozenset[Protected]] = frozenset({"feature", "edge"})

    @override
    def build(self, data: NetworkData, rng: np.random.Generator) -> nn.Module:  # type: ignore[override]
        self._graph = neighbourhoods(data.links, data.n_users)
        network = SNENetwork(data, self.config)
        draw_weights(network, rng)
        for table in (network.ids, network.neighbours):
            table.data = torch.from_numpy(normal(rng, tuple(table.shape), table.shape[1] ** -0.5).astype(np.float32))
        return network

    def train_epoch(self) -> float:
        """The neighbours on one walk from every user who has friends; returns the mean loss."""
        config, rng = self.config, self._rng
        starts = np.flatnonzero(np.diff(self._graph.indptr.numpy()))
        cooccurring = nearby_pairs(random_walks(self._graph, starts, config.length, rng), config.window)
        n_users, total = len(self.network.ids), 0.0
        for pairs in np.array_split(
            cooccurring[rng.permutation(len(cooccurring))], max(-(-len(cooccurring) // config.batch_size), 1)
        ):
            if len(pairs):
                negatives = torch.from_numpy(rng.integers(0, n_users, (len(pairs), config.negatives)))
                loss = friendship_loss(self.network(), self.network.neighbours, torch.from_numpy(pairs), negatives)
                total += self.step(loss) * len(pairs)
        return total / max(len(cooccurring), 1)

    @override
    def compute(self) -> dict[str, Tensor]:
        return {"users": self.network() + self.network.neighbours}
