"""BPR: matrix factorisation for implicit feedback, trained on pairwise ranking (Rendle et al., UAI 2009)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus
from typing_extensions import override

from tasks.models.training import EpochConfig, PairwiseModel
from tasks.training_data import TrainingData


class BPRConfig(EpochConfig):
    """Configuration of `BPR`; `regularization` weighs the rows a batch touches, as in the paper."""

    dimension: int
    """Length of user and item vectors."""
    init_std: float = 0.1
    """Standard deviation of the initial vectors."""


class BPRNetwork(nn.Module):
    """users: (n_users, d), items: (n_items, d), biases: (n_items,)."""

    def __init__(self, users: Tensor, items: Tensor, biases: Tensor) -> None:
        super().__init__()
        self.users = nn.Parameter(users)
        self.items = nn.Parameter(items)
        self.biases = nn.Parameter(biases)


class BPR(PairwiseModel):
    """Scores s_uv = p_u·q_v + b_v; loss −log σ(s_uv − s_uv') (BPR-OPT, Eq. 4.2 ff.)."""

    config: BPRConfig
    network: BPRNetwork

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """User and item vectors N(0, init_std²), item biases 0."""

        def vectors(rows: int) -> Tensor:
            return torch.from_numpy(rng.normal(0.0, self.config.init_std, (rows, self.config.dimension))).float()

        return BPRNetwork(vectors(data.n_users), vectors(data.n_items), torch.zeros(data.n_items))

    @override
    def loss(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        user, item, negative = self.network.users[users], self.network.items[items], self.network.items[negatives]
        bias, negative_bias = self.network.biases[items], self.network.biases[negatives]
        difference = (user * (item - negative)).sum(1) + bias - negative_bias
        return softplus(-difference).mean()

    def score(self, users: NDArray[np.int32]) -> Tensor:
        """See `Recommender.score`: one matrix product."""
        network = self.network
        with torch.no_grad():
            rows = network.users[torch.from_numpy(users).long()]
            return torch.addmm(network.biases, rows, network.items.T)

    @override
    def released(self) -> dict[str, Tensor]:
        return dict(self.network.state_dict())

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        self.network = BPRNetwork(**tensors)
