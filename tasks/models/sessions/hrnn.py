"""HRNN: a recurrent network over sessions, started from one over a user's sessions (Quadrana et al., RecSys 2017).

A session-level GRU reads the items of a session. At its end a user-level GRU takes the session's last state, and the
user's new state c starts the next session: s₀ = tanh(W c + b) (HRNN Init, section 3.2).

**Our sequences have no session boundaries.** Every `session_length` consecutive events of a user count as a session,
whatever lay between them. A sequence to be scored starts a new session, however short the last training session was;
its user's state is the one after the user's training sessions, zeros for a user without any: this model alone reads the
training part again when it is asked, and those who validate have none. That state is for the user's own eyes.

The loss is cross-entropy over all items. The paper's TOP1 and BPR compare with the items of other sessions in the
batch, which saves the scores of all items; a few thousand are cheap, and cross-entropy then uses them all. As in the
paper, items have separate vectors for input and output.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import embedding
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

PIECE = 256  # sequences at a time when the states of all users are computed


class HRNNConfig(SequenceConfig):
    """Configuration of `HRNN`. Dropout applies to items' vectors, to what starts a session and to what is scored."""

    session_length: int = Field(ge=1)
    """Consecutive events of a user that count as one session."""


class HRNNNetwork(nn.Module):
    """items, outputs: (n_items, d), read and scored; biases: (n_items,); two GRUs of d units, and what joins them."""

    def __init__(self, n_items: int, dimension: int, session_length: int) -> None:
        super().__init__()
        self._session_length = session_length
        self.items = nn.Parameter(torch.zeros(n_items, dimension))
        self.outputs = nn.Parameter(torch.zeros(n_items, dimension))
        self.biases = nn.Parameter(torch.zeros(n_items))
        self.session = nn.GRU(dimension, dimension, batch_first=True)
        self.user = nn.GRUCell(dimension, dimension)
        self.start = nn.Linear(dimension, dimension)

    def forward(self, sequences: Sequences, states: Tensor, dropout: Dropout) -> tuple[Tensor, Tensor]:
        """Read sequences session by session.

        Args:
            states: (n_sequences, d), the user-level state before each sequence.

        Returns:
            (n_events, d), the session-level state after each event, and (n_sequences, d), the user-level state after
            each sequence.
        """
        # Longest first: the sequences that have an m-th session are then the first ones.
        order = np.argsort(-sequences.lengths, kind="stable")
        sorted_sequences = sequences.take(order)
        device, lengths = states.device, sorted_sequences.lengths
        table = torch.from_numpy(sorted_sequences.pad(0)).to(device)
        states = states[torch.from_numpy(order)]
        starts = range(0, table.shape[1], self._session_length)
        read, offsets, widths, total = [], [], [], 0
        for start in starts:
            active = int((lengths > start).sum())
            items = table[:active, start : start + self._session_length]
            began = dropout(torch.tanh(self.start(states[:active])))
            hidden, _ = self.session(dropout(embedding(items, self.items)), began[None])
            last = np.minimum(lengths[:active] - start, items.shape[1]) - 1
            ended = hidden[torch.arange(active), torch.from_numpy(last)]
            states = torch.cat([self.user(ended, states[:active]), states[active:]])
            read.append(hidden.reshape(-1, hidden.shape[2]))
            offsets.append(total)
            widths.append(items.shape[1])
            total += active * items.shape[1]
        rank = np.argsort(order)
        session, offset = np.divmod(sequences.positions, self._session_length)
        rows = np.array(offsets)[session] + rank[sequences.owners] * np.array(widths)[session] + offset
        return torch.cat(read).index_select(0, torch.from_numpy(rows).to(device)), states[torch.from_numpy(rank)]

    def logits(self, hidden: Tensor) -> Tensor:
        """(n, d) session-level states -> (n, n_items) scores of what follows."""
        return torch.addmm(self.biases, hidden, self.outputs.T)


class HRNN(SequenceModel):
    """Hierarchical recurrent recommender."""

    config: HRNNConfig
    network: HRNNNetwork
    own_tensors: ClassVar[tuple[str, ...]] = ("user_states",)

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """Matrices after Glorot, biases 0."""
        network = self._build_network(data.n_items)
        draw_weights(network, rng)
        return network

    @override
    def loss(self, sequences: Sequences, dropout: Dropout) -> Tensor:
        inputs, targets = inputs_and_targets(sequences, self.device)
        hidden, _ = self.network(inputs, self._nothing(len(inputs)), dropout)
        return mean_cross_entropy(self.network.logits(dropout(hidden)), targets)

    def weights_changed(self) -> None:
        """Users' states are derived from the weights: drop them."""
        self._states: Tensor | None = None

    def user_states(self) -> Tensor:
        """(n_users, d) user-level states after each user's training sessions; zeros for users without any."""
        if self._states is None:
            self._states = self._nothing(self._data.n_users)
            for piece in self._sequences.batches(PIECE):
                with torch.no_grad():
                    after = self.network(piece, self._nothing(len(piece)), NO_DROPOUT)[1]
                    self._states[torch.from_numpy(piece.users).long()] = after
        return self._states

    @override
    def score_next(self, sequences: Sequences) -> Tensor:
        before = self.user_states()[torch.from_numpy(sequences.users).long()]
        with torch.no_grad():
            return self.network.logits(self.network(sequences, before, NO_DROPOUT)[0])

    def released(self) -> dict[str, Tensor]:
        """See `Model.released`: the network's tensors, and every user's state."""
        return self.network.state_dict() | {"user_states": self.user_states()}

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        weights = dict(tensors)
        self._states = weights.pop("user_states")
        network = self._build_network(len(weights["items"]))
        network.load_state_dict(weights)
        self.network = network.to(self.device)

    def _nothing(self, n: int) -> Tensor:
        return torch.zeros(n, self.config.dimension, device=self.device)

    def _build_network(self, n_items: int) -> HRNNNetwork:
        return HRNNNetwork(n_items, self.config.dimension, self.config.session_length)
