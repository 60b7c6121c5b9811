"""SVD and MF: rating matrices as products of users' and items' vectors, learned by gradient steps on users.

Source: the factorisations of DP-VAE's Tables 8 and 11 (Fang, Du and Wu, 2022), which names SGD and, for SVD, rank 100,
and no more. Here SVD has a bias for every item and MF has none. A cell without an interaction counts as a rating of 0
with weight `unobserved`. Users' vectors stay with the users; an item's gradient is an outer product of a user's errors
and that user's vector, so norms have a closed form (`tasks.privacy.mechanisms.ghost`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.models.draws import Draws
from tasks.models.training import draw_weights
from tasks.models.vae.user_config import UserConfig
from tasks.models.vae.userwise import UserModel, UserNetwork


class FactorisationConfig(UserConfig):
    """Configuration of `MF` and `SVD`."""

    dimension: int = Field(ge=1)
    """Length of the vectors."""
    unobserved: float = Field(ge=0, le=1)
    """Weight of the squared error of a cell without an interaction; 0 learns from ratings alone."""
    init_std: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """Standard deviation of the initial vectors."""


class FactorisationNetwork(UserNetwork):
    """Scores B u (+ b); the squared errors of a user's row."""

    def __init__(self, n_users: int, n_items: int, dimension: int, unobserved: float, *, bias: bool) -> None:
        super().__init__()
        self.users = nn.Parameter(torch.empty(n_users, dimension))
        self.items = nn.Linear(dimension, n_items, bias=bias)
        self.unobserved = unobserved

    @override
    def codes(self, rows: Tensor, users: Tensor, rng: Draws | None) -> tuple[Tensor, Tensor]:
        return self.users[users], rows.new_zeros(len(rows))

    def mismatch(self, rows: Tensor, logits: Tensor) -> Tensor:
        """(n,) sums of weighted squared errors."""
        return (torch.where(rows > 0, 1.0, self.unobserved) * (rows - logits).square()).sum(1)

    @override
    def local(self) -> list[nn.Parameter]:
        return [self.users]


class MF(UserModel):
    """Matrix factorisation without biases."""

    noise_key = "MF"
    config: FactorisationConfig
    bias: ClassVar[bool] = False

    @override
    def architecture(self, data: TrainingData, rng: np.random.Generator) -> UserNetwork:
        config = self.config
        network = FactorisationNetwork(data.n_users, data.n_items, config.dimension, config.unobserved, bias=self.bias)
        draw_weights(network, rng, std=config.init_std)
        if network.items.bias is not None:
            nn.init.zeros_(network.items.bias)
        return network


class SVD(MF):
    """Matrix factorisation with a bias for every item."""

    noise_key = "SVD"
    bias: ClassVar[bool] = True
