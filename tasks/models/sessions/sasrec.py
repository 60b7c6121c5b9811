"""SASRec: causal self-attention over the sequence (Kang and McAuley, ICDM 2018).

An event's vector is that of its item plus that of its position. Blocks of causal self-attention and a point-wise
network follow, each in the paper's residual form x + Dropout(g(LayerNorm(x))) (section III-B). Scores are products
with the item vectors, which input and output share.

The loss is cross-entropy over all items. The paper's is binary, with one random negative for each example. With one
drawn from all items, the user's own among them, that reached Recall@20 0.226 on the validation users of ML-100K
(dipsgnn protocol, one seed), and cross-entropy 0.251 with the same settings.

Positions count from the beginning of a sequence. A prefix then has the same positions whether it is a short sequence or
the start of a long one, so one causal pass trains every prefix exactly as it will be scored, and the first positions,
which are all that short test sequences have, are the best trained: every sequence trains them. Counted from the end, as
the authors' code does by padding in front, a prefix's positions would depend on how long its sequence goes on, and the
first ten events of a long training sequence would teach nothing about a test sequence of ten. How far an event lies
before the prefix's end, attention can tell from the two positions. Positions beyond those of the longest training
sequence share the vector of the last.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import embedding, relu, scaled_dot_product_attention
from typing_extensions import override

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.sessions.sequential import (
    NO_DROPOUT,
    Dropout,
    SequenceConfig,
    SequenceModel,
    inputs_and_targets,
    mean_cross_entropy,
)
from tasks.models.training import draw_weights


class SASRecConfig(SequenceConfig):
    """Configuration of `SASRec`. Dropout applies to embeddings and to what every block adds."""

    layers: int = Field(default=2, ge=1)
    """Blocks of self-attention and point-wise network."""
    heads: int = Field(default=1, ge=1)
    """Parts of a vector with attention of their own; the paper has 1."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.dimension % self.heads:
            raise ValueError(f"dimension {self.dimension} must be a multiple of heads {self.heads}")
        return self


class Layout:
    """Which cells of a table (n_sequences, longest) hold the events of a batch; only attention needs the table."""

    def __init__(self, sequences: Sequences, device: torch.device) -> None:
        self._rows, self._columns = len(sequences), int(sequences.lengths.max(initial=0))
        self._places = torch.from_numpy(sequences.owners * self._columns + sequences.positions).to(device)

    def scatter(self, events: Tensor) -> Tensor:
        """(n_events, width) -> (n_sequences, longest, width), 0 after a sequence's end."""
        table = events.new_zeros(self._rows * self._columns, events.shape[1])
        return table.index_copy(0, self._places, events).view(self._rows, self._columns, -1)

    def gather(self, table: Tensor) -> Tensor:
        """The reverse of `scatter`: (n_sequences, longest, ...) -> (n_events, ...), flattened to two dimensions."""
        return table.reshape(self._rows * self._columns, -1).index_select(0, self._places)


class Block(nn.Module):
    """Causal self-attention, then a point-wise network of two layers (Eq. 2 to 5)."""

    def __init__(self, dimension: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.attention_norm = nn.LayerNorm(dimension)
        self.query_key_value = nn.Linear(dimension, 3 * dimension, bias=False)
        self.network_norm = nn.LayerNorm(dimension)
        self.inner = nn.Linear(dimension, dimension)
        self.outer = nn.Linear(dimension, dimension)

    def forward(self, events: Tensor, layout: Layout, dropout: Dropout) -> Tensor:
        """events, result: (n_events, d)."""
        events = events + dropout(mix(self.query_key_value(self.attention_norm(events)), layout, self._heads))
        return events + dropout(self.outer(dropout(relu(self.inner(self.network_norm(events))))))


def mix(projected: Tensor, layout: Layout, heads: int) -> Tensor:
    """Causal attention from queries, keys and values, (n_events, 3 d); padding lies after, so nothing sees it."""
    query, key, value = (
        part.unflatten(2, (heads, -1)).transpose(1, 2) for part in layout.scatter(projected).chunk(3, dim=2)
    )  # each (n_sequences, heads, longest, d / heads)
    mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
    return layout.gather(mixed.transpose(1, 2))


class SASRecNetwork(nn.Module):
    """Vectors of items, (n_items, d), and of positions, (n_positions, d); blocks; a last LayerNorm."""

    def __init__(self, n_items: int, n_positions: int, config: SASRecConfig) -> None:
        super().__init__()
        self.items = nn.Parameter(torch.zeros(n_items, config.dimension))
        self.positions = nn.Parameter(torch.zeros(n_positions, config.dimension))
        self.blocks = nn.ModuleList(Block(config.dimension, config.heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dimension)

    def forward(self, sequences: Sequences, dropout: Dropout) -> Tensor:
        """What follows each event, as a vector to multiply with item vectors: (n_events, d)."""
        device = self.items.device
        items, positions = self.places(sequences)
        events = embedding(items, self.items) * self.items.shape[1] ** 0.5 + embedding(positions, self.positions)
        events, layout = dropout(events), Layout(sequences, device)
        for block in self.blocks:
            events = block(events, layout, dropout)
        return self.norm(events)

    def places(self, sequences: Sequences) -> tuple[Tensor, Tensor]:
        """The rows of `items` and of `positions` for each event, (n_events,) int64 each."""
        positions = np.minimum(sequences.positions, len(self.positions) - 1)
        items, rows = (torch.from_numpy(part.astype(np.int64)) for part in (sequences.items, positions))
        return items.to(self.items.device), rows.to(self.items.device)


class SASRec(SequenceModel):
    """Self-attentive sequential recommender."""

    config: SASRecConfig
    network: SASRecNetwork

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The network at its initial weights: matrices after Glorot, biases 0, norms without effect on the scale."""
        network = SASRecNetwork(data.n_items, self.n_positions(), self.config)
        draw_weights(network, rng)
        for module in network.modules():
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
        return network

    def n_positions(self) -> int:
        """Positions that have a vector: those of all events but the last of the longest training sequence."""
        return int(self._examples.lengths.max()) - 1

    @override
    def loss(self, sequences: Sequences, dropout: Dropout) -> Tensor:
        inputs, targets = inputs_and_targets(sequences, self.device)
        return mean_cross_entropy(self.network(inputs, dropout) @ self.network.items.T, targets)

    @override
    def score_next(self, sequences: Sequences) -> Tensor:
        with torch.no_grad():
            return self.network(sequences, NO_DROPOUT) @ self.network.items.T

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        network = SASRecNetwork(len(tensors["items"]), len(tensors["positions"]), self.config)
        network.load_state_dict(tensors)
        self.network = network.to(self.device)
