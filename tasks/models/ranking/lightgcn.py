"""LightGCN: user and item vectors smoothed over the graph of interactions (He et al., SIGIR 2020), without privacy.

With A the adjacency matrix of users and items and D its degrees, the vectors of layer k are E⁽ᵏ⁾ = (D^-½ A D^-½) E⁽ᵏ⁻¹⁾
(Eq. 3, 7); no layer has weights, a nonlinearity or a loop from a node to itself. A node's vector is the mean of its
layers 0..L (α_k = 1 / (L + 1)), a score the inner product of two (Eq. 5). E⁽⁰⁾ alone is learned, by the pairwise loss.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softplus

from tasks.core.training_data import TrainingData
from tasks.graph import ops
from tasks.models.training import DerivedModel, EpochConfig, PairwiseModel


class LightGCNConfig(EpochConfig):
    """Configuration of `LightGCN`.

    Published: dimension 64, layers 3, batch_size 2048, learning_rate 0.001, row_regularization 1e-4, init_std 0.1.
    """

    dimension: int = Field(ge=1)
    """Length of user and item vectors."""
    layers: int = Field(ge=0)
    """L: how far vectors travel; 0 is matrix factorisation."""
    row_regularization: float = Field(default=0.0, ge=0)
    """λ: weight of half the squared norms of the three vectors of layer 0 that a triple takes, averaged over the batch.

    This is the released code's reading of λ‖E⁽⁰⁾‖² (Eq. 15). The inherited `regularization` weighs all of E⁽⁰⁾ in every
    step, whichever rows the batch takes; the paper has no such term next to this one."""
    init_std: float = Field(default=0.1, gt=0)
    """Standard deviation of the initial vectors."""


class Propagation(nn.Module):
    """E⁽⁰⁾ and the graph over which it travels. Nodes are users, then items."""

    def __init__(self, embeddings: Tensor, travel: ops.ConstantSum, layers: int) -> None:
        """embeddings: (n_nodes, d); travel: multiplication by D^-½ A D^-½."""
        super().__init__()
        self.embeddings = nn.Parameter(embeddings)
        self.travel = travel
        self.layers = layers

    def forward(self) -> Tensor:
        """The mean of all layers: (n_nodes, d)."""
        layer: Tensor = self.embeddings
        total = layer
        for _ in range(self.layers):
            layer = self.travel(layer)
            total = total + layer
        return total / (self.layers + 1)


class LightGCN(DerivedModel, PairwiseModel):
    """Inner products of vectors that were averaged over neighbourhoods; loss −log σ(s_uv − s_uv') (Eq. 15)."""

    config: LightGCNConfig
    network: Propagation

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """Vectors N(0, init_std²); see `EpochModel.build`."""
        self._n_users = data.n_users
        block = ops.Neighbourhoods.bipartite(data.users, data.items, data.n_users, data.n_items, loops=False).all()
        scales = block.indptr.diff().clamp(min=1).rsqrt()  # a node without edges has no edge to be scaled
        weights = scales[block.centres] * scales[block.sources]
        initial = rng.normal(0.0, self.config.init_std, (data.n_users + data.n_items, self.config.dimension))
        return Propagation(torch.from_numpy(initial).float(), ops.ConstantSum(block, weights), self.config.layers)

    def loss(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        """See `PairwiseModel.loss`; the whole graph is propagated over once per batch."""
        nodes = torch.cat([users, self._n_users + items, self._n_users + negatives])
        user, item, negative = self.network()[nodes].split(len(users))
        loss = softplus(-(user * (item - negative)).sum(1)).mean()
        if self.config.row_regularization:
            squares = self.network.embeddings[nodes].square().sum() / len(users)
            loss = loss + self.config.row_regularization / 2 * squares
        return loss

    def derived(self) -> dict[str, Tensor]:
        """What scoring needs: the propagated vectors of users and of items."""
        final = self.network()
        return {"users": final[: self._n_users], "items": final[self._n_users :]}

    def score(self, users: NDArray[np.int32]) -> Tensor:
        """See `Recommender.score`: one matrix product."""
        vectors = self.released()
        return vectors["users"][torch.from_numpy(users).long()] @ vectors["items"].T
