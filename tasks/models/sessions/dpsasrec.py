"""DP-SASRec: self-attention over a user's sequence, trained by differentially private SGD on users.

The network is `tasks.models.sessions.sasrec`; records, clipping and noise are those of
`tasks.models.sessions.private`. A user's gradient for the item vectors, which are read and multiplied with, is formed:
with as few dimensions as noise allows that is less work than "phantom clipping" of tied vectors, whose norms take the
products of all pairs of a user's events (Ding et al., "Delving into differentially private Transformer", ICML 2024).
There is no dropout.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import layer_norm, relu
from typing_extensions import override

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.sessions.private import COUNTED, PrivateConfig, PrivateSequences, UserDropout
from tasks.models.sessions.sasrec import Layout, SASRec, SASRecConfig, SASRecNetwork, mix
from tasks.privacy.accounting.per_record import Owned, product


class DPSASRecConfig(PrivateConfig, SASRecConfig):
    """Configuration of `DPSASRec`."""

    positions: int = Field(ge=1)
    """Places in a sequence that have a vector; later events share the last. Not read off the longest sequence."""
    dropout: Literal[0] = 0


class DPSASRec(PrivateSequences, SASRec):
    """SASRec with user-level differential privacy."""

    noise_key = "DPSASRec"
    config: DPSASRecConfig
    network: SASRecNetwork
    counted = (*COUNTED, "n_users")

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """See `PrivateSequences.build`; and the number of users, which a loaded model must know, too."""
        network = super().build(data, rng)
        network.register_buffer("n_users", torch.tensor(data.n_users))
        return network

    @override
    def n_positions(self) -> int:
        return self.config.positions

    @override
    def own_logits(self, parameters: dict[str, Tensor], sequences: Sequences, dropout: UserDropout) -> Tensor:
        del dropout
        config, owners = self.config, torch.from_numpy(sequences.owners).to(self.device)
        owned, layout = Owned(owners, len(sequences)), Layout(sequences, self.device)

        def linear(name: str, rows: Tensor) -> Tensor:
            rows = product(rows, parameters[f"{name}.weight"], owned)
            return rows + parameters[f"{name}.bias"][owners] if f"{name}.bias" in parameters else rows

        def norm(name: str, rows: Tensor) -> Tensor:
            scaled = layer_norm(rows, rows.shape[1:])
            return scaled * parameters[f"{name}.weight"][owners] + parameters[f"{name}.bias"][owners]

        items, positions = self.network.places(sequences)
        events = parameters["items"][owners, items] * config.dimension**0.5
        events = events + parameters["positions"][owners, positions]
        for block in (f"blocks.{layer}" for layer in range(config.layers)):
            projected = linear(f"{block}.query_key_value", norm(f"{block}.attention_norm", events))
            events = events + mix(projected, layout, config.heads)
            hidden = relu(linear(f"{block}.inner", norm(f"{block}.network_norm", events)))
            events = events + linear(f"{block}.outer", hidden)
        return product(norm("norm", events), parameters["items"], owned)

    @override
    def n_records(self) -> int:
        return int(self.network.get_buffer("n_users"))
