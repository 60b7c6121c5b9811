"""The graph recommender of GERAI §3, without privacy (also GERAI-NF, when it is given perturbed features)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import softplus
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.graph import ops
from tasks.graph.attention import attend
from tasks.models.training import DerivedModel, EpochConfig, PairwiseModel, draw_weights

PIECE = 2**19  # numbers at a time when all items are scored: 2 MB of float32


class GCNConfig(EpochConfig):
    """Configuration of `GCN`. Published: dimension 60, batch_size 64, learning_rate 0.005, regularization 0.01/|D|.

    The paper adds γ‖Θ‖² (γ = 0.01) to the *sum* of the losses of all triples (Eq. 11); here losses are means, so the
    same weight is 0.01 / |D|.
    """

    dimension: int = Field(ge=1)
    """d: length of every hidden vector."""
    init: Literal["scaled", "published"] = "scaled"
    """`published` draws all weights from N(0, 1), which diverges in practice; `scaled` is Glorot's."""


class GCNNetwork(nn.Module):
    """One round of attentive message passing on the user-item graph, then a score for a pair (Eq. 3-10).

    Nodes are users, then items. Equation 7's W1(m_k ⊕ z_c) is W1a m_k + W1b z_c, and equation 10's W3(z_u ⊕ z_v) is
    W3a z_u + W3b z_v: products per node and sums per edge or pair, never a concatenation per edge. b2 of equation 7
    is left out: softmax does not see it.
    """

    features: Tensor

    def __init__(self, features: Tensor, n_items: int, dimension: int) -> None:
        """features: (n_users, d0) float32, raw or perturbed."""
        super().__init__()
        d = dimension
        self.n_users = len(features)
        self.register_buffer("features", features, persistent=False)
        self.embed_users = nn.Linear(features.shape[1], d, bias=False)
        self.embed_items = nn.Parameter(torch.empty(n_items, d))
        self.message = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
        self.attend_message = nn.Linear(d, d, bias=False)
        self.attend_centre = nn.Linear(d, d)
        self.attention = nn.Linear(d, 1, bias=False)
        self.aggregate = nn.Linear(d, d)
        self.pair_user = nn.Linear(d, d, bias=False)
        self.pair_item = nn.Linear(d, d)
        self.project = nn.Linear(d, 1, bias=False)

    def forward(self, block: ops.Block, centres: Tensor) -> Tensor:
        """z* (Eq. 5, 9) of the block's centres: (n_centres, d)."""
        nodes = torch.cat([self.embed_users(self.features), self.embed_items])
        messages = self.message(nodes)
        rows = self.attend_message(messages), self.attend_centre(nodes[centres])
        return torch.relu(self.aggregate(attend(block, *rows, self.attention.weight[0], messages)))


class GCN(DerivedModel, PairwiseModel):
    """Graph recommender trained on the pairwise ranking loss (Eq. 11)."""

    config: GCNConfig
    uses_features: ClassVar[bool] = True
    network_class: ClassVar[type[GCNNetwork]] = GCNNetwork
    network: GCNNetwork

    @override
    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        if data.features is None:
            raise ValueError("the graph recommender needs user features")
        graph = ops.Neighbourhoods.bipartite(data.users, data.items, data.n_users, data.n_items)
        self._neighbourhoods = graph.to(self.device)
        network = self.network_class(torch.from_numpy(data.features), data.n_items, self.config.dimension)
        draw_weights(network, rng, std=1.0 if self.config.init == "published" else None)
        return network

    def loss(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        """See `PairwiseModel.loss`. Only the neighbourhoods of the batch's own nodes are aggregated."""
        network, n_users = self.network, self.network.n_users
        centres, where = torch.unique(
            torch.cat([users, n_users + items, n_users + negatives]), sorted=True, return_inverse=True
        )
        nodes = network(self._neighbourhoods.block(centres), centres)
        return self.objective(self.difference(*nodes[where].split(len(users))))

    def difference(self, user: Tensor, item: Tensor, negative: Tensor) -> Tensor:
        """q_uv − q_uv' (Eq. 10) from z* of each: (batch, d)."""
        network = self.network
        of_user = network.pair_user(user)
        return self.predictive(of_user + network.pair_item(item)) - self.predictive(
            of_user + network.pair_item(negative)
        )

    def predictive(self, pair: Tensor) -> Tensor:
        """q_uv (Eq. 10) from W3(z_u ⊕ z_v) + b3: any shape, element-wise."""
        return torch.relu(pair)

    def objective(self, difference: Tensor) -> Tensor:
        """Mean of −log σ(hᵀ(q_uv − q_uv')) over the batch; difference: (batch, d)."""
        return softplus(-self.network.project(difference)).mean()

    def derived(self) -> dict[str, Tensor]:
        """What scoring needs: W3a z*_u for users, W3b z*_v + b3 for items, and h."""
        network = self.network
        everybody = torch.arange(network.n_users + len(network.embed_items), device=self.device)
        nodes = network(self._neighbourhoods.all(), everybody)
        return {
            "users": network.pair_user(nodes[: network.n_users]),
            "items": network.pair_item(nodes[network.n_users :]),
            "project": network.project.weight[0].clone(),
        }

    def score(self, users: NDArray[np.int32]) -> Tensor:
        """See `Recommender.score`; a few users at a time, so that their (users, n_items, d) stay in the cache."""
        scoring = self.released()
        rows, items, project = scoring["users"][torch.from_numpy(users).long()], scoring["items"], scoring["project"]
        scores = rows.new_empty(len(rows), len(items))
        piece = max(1, PIECE // items.numel())
        with torch.no_grad():
            for part, out in zip(rows.split(piece), scores.split(piece), strict=True):
                torch.matmul(self.predictive(part.unsqueeze(1) + items), project, out=out)
        return scores


class DotNetwork(GCNNetwork):
    """`GCNNetwork` without what scores a pair."""

    def __init__(self, features: Tensor, n_items: int, dimension: int) -> None:
        super().__init__(features, n_items, dimension)
        del self.pair_user, self.pair_item, self.project


class DotGCN(GCN):
    """A control of `GCN`: a pair's score is z*_uᵀ z*_v in place of equation 10."""

    network_class = DotNetwork

    def difference(self, user: Tensor, item: Tensor, negative: Tensor) -> Tensor:
        """Its sum over coordinates is the difference of the two scores: (batch, d)."""
        return user * (item - negative)

    @override
    def objective(self, difference: Tensor) -> Tensor:
        return softplus(-difference.sum(1)).mean()

    def derived(self) -> dict[str, Tensor]:
        """What scoring needs: z* of users and of items."""
        network = self.network
        everybody = torch.arange(network.n_users + len(network.embed_items), device=self.device)
        users, items = network(self._neighbourhoods.all(), everybody).tensor_split([network.n_users])
        return {"users": users, "items": items}

    @override
    def score(self, users: NDArray[np.int32]) -> Tensor:
        scoring = self.released()
        with torch.no_grad():
            return scoring["users"][torch.from_numpy(users).long()] @ scoring["items"].T
