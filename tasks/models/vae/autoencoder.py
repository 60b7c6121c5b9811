"""AE: an autoencoder of users' rows with one hidden layer, tanh and the multinomial likelihood.

Source: the autoencoder of DP-VAE's Tables 8 and 11 (Fang, Du and Wu, 2022), of whose structure the paper gives the
latent dimension alone; as Mult-DAE (Liang et al., WWW 2018) with one layer.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import override

from tasks.models.draws import Draws
from tasks.models.training import draw_weights
from tasks.models.vae.user_config import UserConfig
from tasks.models.vae.userwise import UserModel, UserNetwork
from tasks.privacy.mechanisms import ghost
from tasks.training_data import TrainingData


class AEConfig(UserConfig):
    """Configuration of `AE`."""

    dimension: int = Field(ge=1)
    """K, length of the code."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of a row's entries that are hidden from the encoder in training."""
    frozen_encoder: bool = False
    """Whether the layer that reads rows stays at its initial, random weights: half as many values to add noise to."""
    tied: bool = False
    """Whether the last layer's weights are those of the layer that reads rows, transposed: half as many, too."""

    @model_validator(mode="after")
    def _tied_weights_are_learnt(self) -> Self:
        if self.tied and self.frozen_encoder:
            raise ValueError("tied and frozen_encoder: the last layer would stay random, too; say one of them")
        if self.tied and self.privacy == "dpsgd-optimal-clip":
            raise ValueError("tied: dpsgd-optimal-clip needs L1 norms of gradients, which tied weights do not give")
        return self


class RowNetwork(UserNetwork):
    """What reads rows and writes multinomial shares. `reader` is the first layer."""

    reader: nn.Linear

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def writer(self, *, tied: bool) -> nn.Linear | ghost.Transposed:
        """The last layer, from as many numbers as `reader` passes on to the items."""
        reader = self.reader
        return ghost.Transposed(reader) if tied else nn.Linear(reader.out_features, reader.in_features)

    def read(self, rows: Tensor, rng: Draws | None) -> Tensor:
        """(n, width of `reader`) rows, scaled to norm 1 (zeros stay), after the first layer and tanh."""
        inputs = rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)
        if rng is not None and self.dropout:
            kept = torch.from_numpy(rng.random(tuple(rows.shape)) >= self.dropout).to(rows.device)
            inputs = inputs * kept / (1 - self.dropout)
        return torch.tanh(self.reader(inputs))

    def mismatch(self, rows: Tensor, logits: Tensor) -> Tensor:
        """(n,) negative multinomial log-likelihoods of the rows, up to a constant."""
        return -(rows * torch.log_softmax(logits, 1)).sum(1)


class AENetwork(RowNetwork):
    """h = tanh(A x/‖x‖ + a), logits B h + b; tied: B = Aᵀ."""

    def __init__(self, n_items: int, config: AEConfig) -> None:
        super().__init__(config.dropout)
        self.reader = nn.Linear(n_items, config.dimension)
        self.items = self.writer(tied=config.tied)

    @override
    def codes(self, rows: Tensor, users: Tensor, rng: Draws | None) -> tuple[Tensor, Tensor]:
        return self.read(rows, rng), rows.new_zeros(len(rows))


class AE(UserModel):
    """Autoencoder recommender."""

    noise_key = "AE"
    config: AEConfig

    def architecture(self, data: TrainingData, rng: np.random.Generator) -> UserNetwork:
        """See `UserModel.architecture`: Glorot."""
        network = AENetwork(data.n_items, self.config)
        draw_weights(network, rng)
        network.reader.requires_grad_(not self.config.frozen_encoder)
        return network
