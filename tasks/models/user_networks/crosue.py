"""The cross-network GCN of DP-CroSUE (Ren et al., CIKM 2022, section 4.3): two networks joined at their anchors.

It starts from embeddings Z of both networks learned alone, which stay as they are; what is learned carries them across
and around. An anchor's vector takes in the other network's (Eq. 10), z'₁ = σ(z₁ + W₂₁ z₂) and the same the other way;
of several partners the mean. With Â the row-normalised adjacency (means over friends) and D the diagonal of anchors,

    H^l = (α D + Â^l) Z', l = 1..k,    O = σ(W · stack(Z', H^1, …, H^k))    (Eq. 11)

for each network with weights of its own. W is split as W_0 … W_k, and the stack is never made: by linearity

    O = σ(Z' W_0 + α D Z' (W_1 + … + W_k) + Â(Z' W_1 + Â(Z' W_2 + … + Â Z' W_k)) + b),

k products with a sparse matrix and k + 1 with small ones, in the memory of a few times Z'. The loss is Eq. 9 on both
networks and 10 times the mean over anchors and columns of |O_1 − O_2| (Eq. 12 has their sum; the mean and its weight
are the released code's), so that neither term grows with the networks. Summed over 128 columns, the distance outweighs
the rest and both networks shrink to one point.

Both networks' weights are in one optimiser, and Z' is made without writing into Z: an implementation that edits a copy
Z[anchors] in place carries nothing across. Without anchors nothing crosses and the model is two networks, each a GCN
over its own embeddings, in spaces that have nothing to do with each other.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import leaky_relu
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.models.training import EpochConfig, draw_weights
from tasks.models.user_networks.base import Constants, EpochEmbedder, NetworkData, PairData, PairEmbedder
from tasks.models.user_networks.friendship import batches, friendship_loss, mean_of_friends


class CroGCNConfig(EpochConfig):
    """Configuration of `CroGCN`.

    Published: hops 4, alpha 2, dimension 128. Ablations: CroGCN-NH is propagation `iterative`, CroGCN-NA is
    anchor_weight 0. `batch_size`: friendships of the larger network per step, in both directions; the smaller one goes
    through in as many steps. Released code: 80 steps of 50,000, negatives 1, learning_rate 0.003, regularization 5e-5,
    anchor_weight 10.
    """

    dimension: int = Field(default=128, ge=1)
    """Length of the embeddings."""
    hops: int = Field(default=4, ge=1)
    """k: how far what an anchor brought travels."""
    alpha: float = Field(default=2.0, ge=0)
    """α: additional weight of an anchor's own vector among those of its hops."""
    propagation: Literal["hierarchy", "iterative"] = "hierarchy"
    """`hierarchy`: Eq. 11. `iterative`: k layers σ(Â H W) with biases one after the other, and no D (section 4.3)."""
    anchor_weight: float = Field(default=10.0, ge=0)
    """Weight of the mean absolute difference between the two vectors of an anchor."""
    negatives: int = Field(default=1, ge=1)
    """Q: users drawn against each friendship."""


class Around(nn.Module):
    """Propagation within one network."""

    emphasis: Tensor

    def __init__(self, data: NetworkData, is_anchor: NDArray[np.bool_], width: int, config: CroGCNConfig) -> None:
        """is_anchor: (n_users,); width: length of Z'."""
        super().__init__()
        self.config = config
        self.friends = mean_of_friends(data.links, data.n_users)
        self.register_buffer(
            "emphasis", config.alpha * torch.from_numpy(is_anchor).float().unsqueeze(1), persistent=False
        )
        iterative = config.propagation == "iterative"
        widths = [width, *[config.dimension] * (config.hops - 1)] if iterative else [width] * (config.hops + 1)
        self.layers = nn.ModuleList(nn.Linear(w, config.dimension, bias=iterative) for w in widths)
        self.bias = None if iterative else nn.Parameter(torch.empty(config.dimension))

    def forward(self, users: Tensor) -> Tensor:
        """Z' (n_users, width) -> O (n_users, dimension)."""
        if self.bias is None:
            for layer in self.layers:
                users = leaky_relu(self.friends(layer(users)))
            return users
        first_layer, *hops = self.layers
        travelling = hops[-1](users)
        for layer in reversed(hops[:-1]):
            travelling = layer(users) + self.friends(travelling)
        of_all_hops = torch.stack([layer.weight for layer in hops]).sum(0)  # type: ignore[misc]  # ModuleList of Linear
        emphasised = self.emphasis * nn.functional.linear(users, of_all_hops)
        return leaky_relu(first_layer(users) + emphasised + self.friends(travelling) + self.bias)


class CroGCNNetwork(nn.Module):
    """Across at anchors, then around in each network."""

    anchors: Tensor

    def __init__(self, data: PairData, config: CroGCNConfig) -> None:
        super().__init__()
        assert data.embeddings is not None
        self.users = Constants(torch.from_numpy(rows) for rows in data.embeddings)
        anchors = torch.from_numpy(np.unique(data.anchors, axis=0).astype(np.int64)).T
        self.register_buffer("anchors", anchors, persistent=False)
        width = self.users[0].shape[1]
        self.to_first = nn.Linear(width, width, bias=False)
        self.to_second = nn.Linear(width, width, bias=False)
        counts = [torch.bincount(ids, minlength=len(z)) for ids, z in zip(self.anchors, self.users, strict=True)]
        self.partners = Constants(n.float().unsqueeze(1) for n in counts)
        aggregations = [
            Around(network, n.numpy() > 0, width, config) for network, n in zip(data.networks, counts, strict=True)
        ]
        self.around = nn.ModuleList(aggregations)

    def across(self) -> tuple[Tensor, Tensor]:
        """Z' of both networks (Eq. 10)."""
        (first, second), (of_first, of_second) = self.users, self.anchors
        return (
            self._meet(first, self.partners[0], of_first, self.to_first(second[of_second])),
            self._meet(second, self.partners[1], of_second, self.to_second(first[of_first])),
        )

    def _meet(self, users: Tensor, partners: Tensor, anchors: Tensor, received: Tensor) -> Tensor:
        means = torch.zeros_like(users).index_add(0, anchors, received) / partners.clamp(min=1)
        return torch.where(partners > 0, leaky_relu(users + means), users)

    def forward(self) -> tuple[Tensor, Tensor]:
        """O of both networks."""
        first, second = (around(users) for around, users in zip(self.around, self.across(), strict=True))
        return first, second

    def anchor_loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Mean over anchors and columns of |O_1 − O_2|; 0 without anchors."""
        of_first, of_second = self.anchors
        distances = (first[of_first] - second[of_second]).abs()
        return distances.sum() / max(distances.numel(), 1)


class CroGCN(EpochEmbedder, PairEmbedder):
    """Users' vectors of two networks, joined. On perturbed networks with found anchors: DP-CroSUE; on raw: CroSUE."""

    config: CroGCNConfig
    network: CroGCNNetwork
    figures = ("friendships",)
    """The part of an epoch's loss that is of friendships (Eq. 9)."""

    @override
    def build(self, data: PairData, rng: np.random.Generator) -> nn.Module:  # type: ignore[override]
        if data.embeddings is None:
            raise DataError("pair: no embeddings of the two networks; embed each of them first (rgcn)")
        self._pair = data
        network = CroGCNNetwork(data, self.config)
        draw_weights(network, rng)
        return network

    def train_epoch(self) -> float:
        """Every friendship of both networks once from each side; returns the mean loss of a step."""
        config, networks = self.config, self._pair.networks
        n_steps = -(-2 * max(len(network.links) for network in networks) // config.batch_size)
        both = [batches(n.links, n.n_users, config.negatives, n_steps, self._rng) for n in networks if n_steps]
        total = of_friendships = 0.0
        for parts in zip(*both, strict=True):
            embeddings = self.network()
            anchors = config.anchor_weight * self.network.anchor_loss(*embeddings)
            (first, of_first), (second, of_second) = zip(embeddings, parts, strict=True)
            friendships = friendship_loss(first, first, *of_first) + friendship_loss(second, second, *of_second)
            total += self.step(anchors + friendships)
            of_friendships += friendships.item() / n_steps
        self._noted["friendships"].append(of_friendships)
        return total / max(n_steps, 1)

    @override
    def compute(self) -> dict[str, Tensor]:
        first, second = self.network()
        return {"first": first, "second": second}
