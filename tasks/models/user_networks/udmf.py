"""UDMF: the modalities of a user fused by a deep network, as DP-CroSUE's tables call it.

The paper says "a novel hybrid DNN-based framework that fuses information across different modalities" and cites a work
on the popularity of images; the name is that of Farnadi et al. (WSDM 2018), whose network is trained on the labels.
Embeddings that are to be attacked and compared cannot have seen labels, so the plain reading here is without them: each
modality (attributes, texts, and structure as NetMF's vectors) has an encoder of its own, a joint layer fuses
them, and decoders give all modalities back. The loss is the sum of their mean squared errors.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.models.training import EpochConfig, draw_weights
from tasks.models.user_networks.base import Constants, EpochEmbedder, NetworkData, UserEmbedder
from tasks.models.user_networks.skipgram import NetMFConfig, Word2VecConfig, netmf_vectors, text_of_users


class UDMFConfig(EpochConfig):
    """Configuration of `UDMF`. `batch_size`: users per step."""

    dimension: int = Field(default=128, ge=1)
    """Length of the embeddings."""
    hidden: int = Field(default=64, ge=1)
    """Width of each modality's encoder."""
    walk: NetMFConfig = NetMFConfig(walks=10)
    """How structure becomes a modality."""
    text: Word2VecConfig = Word2VecConfig()
    """How texts become one, where words have no vectors."""


class UDMFNetwork(nn.Module):
    """An encoder and a decoder for each modality, and the layer that fuses them."""

    def __init__(self, modalities: list[Tensor], config: UDMFConfig) -> None:
        super().__init__()
        self.modalities = Constants(modalities)
        self.encoders = nn.ModuleList(nn.Linear(rows.shape[1], config.hidden) for rows in modalities)
        self.fusion = nn.Linear(config.hidden * len(modalities), config.dimension)
        self.decoders = nn.ModuleList(nn.Linear(config.dimension, rows.shape[1]) for rows in modalities)

    def forward(self, users: Tensor) -> Tensor:
        """(len(users), dimension)."""
        encoded = [
            torch.tanh(encoder(rows[users])) for encoder, rows in zip(self.encoders, self.modalities, strict=True)
        ]
        return torch.tanh(self.fusion(torch.cat(encoded, 1)))

    def loss(self, users: Tensor) -> Tensor:
        """Sum over modalities of the mean squared error of giving them back."""
        fused = self(users)
        errors = [
            (decoder(fused) - rows[users]).square().mean()
            for decoder, rows in zip(self.decoders, self.modalities, strict=True)
        ]
        return torch.stack(errors).sum()


def standardise(rows: Tensor) -> Tensor:
    """Columns centred, and the whole scaled to a mean square of 1, so that no modality outweighs another."""
    centred = rows - rows.mean(0)
    return centred / centred.square().mean().sqrt().clamp(min=1e-9)


class UDMF(EpochEmbedder, UserEmbedder):
    """What attributes, texts and structure of a user have in common."""

    config: UDMFConfig
    network: UDMFNetwork

    @override
    def build(self, data: NetworkData, rng: np.random.Generator) -> nn.Module:  # type: ignore[override]
        structure = netmf_vectors(data, self.config.walk, rng) if len(data.links) else None
        modalities = [data.features, text_of_users(data, self.config.text, rng), structure]
        present = [standardise(torch.from_numpy(rows)) for rows in modalities if rows is not None]
        if not present or not data.n_users:
            raise DataError("network: no attributes, no texts and no links; there is nothing to fuse")
        network = UDMFNetwork(present, self.config)
        draw_weights(network, rng)
        return network

    @override
    def train_epoch(self) -> float:
        n_users = len(self.network.modalities[0])
        order = torch.from_numpy(self._rng.permutation(n_users))
        return sum(self.step(self.network.loss(u)) * len(u) for u in order.split(self.config.batch_size)) / n_users

    @override
    def compute(self) -> dict[str, Tensor]:
        return {"users": self.network(torch.arange(len(self.network.modalities[0])))}
