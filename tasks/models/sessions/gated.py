"""Gated graph networks over the graphs of all prefixes: SR-GNN, APGNN, and what DIPSGNN has in common with them.

Each propagation step gives every node the aggregate of its successors' and of its predecessors' states, and updates the
node's state by a gated recurrent unit; a soft attention over the positions, led by the last item, reads out the prefix
(SR-GNN, Wu et al., AAAI 2019, Eq. 1-7; DIPSGNN, Eq. 5-14; docs/methods.md §3). Training takes whole sequences, so that
the prefixes of a user share what they have in common (`tasks.graph.prefixes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import linear
from typing_extensions import override

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.graph.attention import attend
from tasks.graph.ops import Block, weighted_sum
from tasks.graph.prefixes import PrefixGraphs, Step, prefix_graphs
from tasks.models.sessions.sequential import (
    NO_DROPOUT,
    Dropout,
    SequenceConfig,
    SequenceModel,
    inputs_and_targets,
    mean_cross_entropy,
)
from tasks.models.training import EpochConfig

Pair = tuple[Tensor, Tensor]
BATCH = 32
"""Sequences scored at a time; how many does not change a score."""


class GatedConfig(SequenceConfig):
    """Configuration of `GatedSessions`; `dropout` leaves out coordinates of item vectors."""

    steps: int = Field(ge=0)
    """Propagation steps, T of the papers. With 0 no edge is looked at: items are attended to as they are."""


class GatedNetwork(nn.Module):
    """The parameters.

    items: (n_items, d) item vectors, with which prefixes are scored too; user: maps a user's row to e_u, (n, d'), or is
    None; profiles: (n_users, n_columns) those rows, as a buffer.
    """

    def __init__(self, n_items: int, dimension: int, steps: int, user: nn.Module | None, profiles: Tensor) -> None:
        super().__init__()
        self.register_buffer("profiles", profiles)
        self.user = user
        width = getattr(user, "embedding_dim" if isinstance(user, nn.Embedding) else "out_features", 0)
        self.items = nn.Embedding(n_items, dimension)
        if steps:
            self.successors = nn.Linear(dimension + width, dimension)
            self.predecessors = nn.Linear(dimension + width, dimension)
            self.gates = nn.GRUCell(2 * dimension, dimension)
        self.attend_last = nn.Linear(dimension, dimension)
        self.attend_node = nn.Linear(dimension, dimension, bias=False)
        self.attention = nn.Linear(dimension, 1, bias=False)
        self.readout = nn.Linear(2 * dimension + width, dimension, bias=False)


@dataclass(frozen=True)
class Queries:
    """What scores are computed of.

    graphs: of all prefixes of the sequences. draws: (n_sequences,) int64, which of the independent draws of a user's
    noise each sequence gets, where there is any; 0 unless someone asks for others. tested: whether the sequences are
    asked about, which have noise of their own, and not trained on.
    """

    sequences: Sequences
    graphs: PrefixGraphs
    draws: NDArray[np.int64]
    tested: bool = False


class GatedSessions(SequenceModel):
    """Scores z_uᵀ e_v for every item v after every prefix; cross-entropy over all items.

    A subclass says what a version receives (`receive`, `edge_weights`) and what is known of a user (`user_module`).
    """

    Config: ClassVar[type[EpochConfig]] = GatedConfig
    config: Any
    network: GatedNetwork

    def user_module(self, data: TrainingData) -> nn.Module | None:
        """The map from a user's profile (or id) to the user vector; None for models without users.

        Of a profile it is E_U of DIPSGNN's Eq. 5: (d0, d'), no bias.
        """
        if not self.uses_features:
            return None
        assert data.features is not None
        return nn.Linear(data.features.shape[1], self.config.user_dimension, bias=False)

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """Every parameter uniform in ±1/√d, as in the authors' code of SR-GNN."""
        profiles = torch.from_numpy(np.ascontiguousarray(data.features)) if self.uses_features else torch.empty(0)
        config = self.config
        network = GatedNetwork(data.n_items, config.dimension, config.steps, self.user_module(data), profiles)
        bound = config.dimension**-0.5
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.copy_(torch.from_numpy(rng.uniform(-bound, bound, parameter.shape)).float())
        return network

    @override
    def loss(self, sequences: Sequences, dropout: Dropout) -> Tensor:
        prefixes, targets = inputs_and_targets(sequences, self.device)
        return mean_cross_entropy(self.logits(prefixes, dropout), targets)

    def logits(
        self,
        sequences: Sequences,
        dropout: Dropout = NO_DROPOUT,
        draws: NDArray[np.int64] | None = None,
        *,
        tested: bool = False,
    ) -> Tensor:
        """Scores of all items after every event: (n_events, n_items). draws, tested: see `Queries`."""
        graphs = self.graphs(sequences)
        queries = Queries(sequences, graphs, np.zeros(len(sequences), np.int64) if draws is None else draws, tested)
        users = self.user_vectors(torch.from_numpy(sequences.users).long().to(self.device))
        states = self.initial_states(graphs, sequences, dropout)
        owners = graphs.node_owners
        for step in graphs.steps:
            states = self.propagate(step, states, owners, users, queries)
            owners = step.owners
        return self.read(graphs, states, users) @ self.network.items.weight.T

    def graphs(self, sequences: Sequences) -> PrefixGraphs:
        """The graphs of all prefixes, with as many steps as are propagated."""
        return prefix_graphs(sequences, self.config.steps).to(self.device)

    def initial_states(self, graphs: PrefixGraphs, sequences: Sequences, dropout: Dropout) -> Tensor:  # noqa: ARG002
        """The states of nodes before the first step, (n_nodes, d)."""
        return dropout(self.network.items(graphs.node_items))

    def user_vectors(self, users: Tensor) -> Tensor | None:
        """e_u: (n_users, d'), or None for models without users."""
        module = self.network.user
        if module is None:
            return None
        return module(users) if isinstance(module, nn.Embedding) else module(self.network.get_buffer("profiles")[users])

    def propagate(self, step: Step, states: Tensor, owners: Tensor, users: Tensor | None, queries: Queries) -> Tensor:
        """The states after one step: (n_versions, d), from those before it and the sequence that each is of.

        Between the aggregate and the gates of the recurrent unit there are linear maps only, which are applied as one
        (`through`), and to the states before they are aggregated, of which there are fewer.
        """
        joint = self.scale_states(states if users is None else torch.cat([states, users[owners]], dim=1))
        network, d = self.network, self.config.dimension
        of_out, of_in = network.gates.weight_ih.split(d, dim=1)
        through = of_out @ network.successors.weight, of_in @ network.predecessors.weight
        constant = network.gates.bias_ih + of_out @ network.successors.bias + of_in @ network.predecessors.bias
        recurrent = linear(joint[:, :d], network.gates.weight_hh, network.gates.bias_hh)
        return self.update(step, joint, through, (constant, recurrent), queries)

    def update(self, step: Step, joint: Tensor, through: Pair, own: Pair, queries: Queries) -> Tensor:
        """States after the step: (n_versions, d). own: (3d,) and (n_sources, 3d), what gates get besides."""
        constant, recurrent = own
        received = self.receive(step, joint, through, queries) + constant
        kept = joint[:, : self.config.dimension]
        return gru_update(received, recurrent[step.previous], kept[step.previous])

    def scale_states(self, joint: Tensor) -> Tensor:
        """What is done to the states before they are aggregated: nothing here."""
        return joint

    def receive(self, step: Step, joint: Tensor, through: Pair, queries: Queries) -> Tensor:  # noqa: ARG002
        """What the gates of every version receive, (n_versions, 3d): aggregates of successors and of predecessors.

        Args:
            joint: (n_sources, d + d') states before the step.
            through: the linear maps, each (3d, d + d'), that follow the two aggregates.
        """
        return sum(
            weighted_sum(block, self.edge_weights(block), joint @ matrix.T)
            for block, matrix in zip((step.successors, step.predecessors), through, strict=True)
        )  # type: ignore[return-value]

    def edge_weights(self, block: Block) -> Tensor:
        """(n_edges,): the entries of the adjacency matrix; an edge that occurs twice is there twice."""
        return torch.ones(len(block.sources), device=self.device)

    def read(self, graphs: PrefixGraphs, states: Tensor, users: Tensor | None) -> Tensor:
        """z_u of every prefix, (n_events, d): attention over its positions (Eq. 10), the last item, the user."""
        network = self.network
        last = states[graphs.last]
        nodes, lasts = network.attend_node(states), network.attend_last(last)
        weight, visits = network.attention.weight[0], graphs.visits
        parts = [attend(graphs.members, nodes, lasts, weight, states, visits), last]
        if users is not None:
            parts.append(users[graphs.event_owners])
        return network.readout(torch.cat(parts, dim=1))

    @override
    def score_next(self, sequences: Sequences) -> Tensor:
        if not len(sequences):
            return torch.empty(0, self.network.items.num_embeddings)
        with torch.no_grad():
            return torch.cat([self.logits(batch, tested=True) for batch in sequences.batches(BATCH)])

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        n_items = len(tensors["items.weight"])
        user: nn.Module | None = None
        if "user.weight" in tensors:
            weight = tensors["user.weight"]
            by_profile = tensors["profiles"].numel() > 0
            user = nn.Linear(weight.shape[1], len(weight), bias=False) if by_profile else nn.Embedding(*weight.shape)
        network = GatedNetwork(n_items, self.config.dimension, self.config.steps, user, tensors["profiles"])
        network.load_state_dict(tensors)
        network.eval()
        self.network = network.to(self.device)


class ScaledSessions(GatedSessions):
    """What DIPSGNN's network is with and without noise on aggregates: joint states have one length."""

    def scale_states(self, joint: Tensor) -> Tensor:
        """Every row scaled to length C (DIPSGNN, Eq. 6)."""
        return joint * (self.config.clip / joint.norm(dim=1, keepdim=True).clamp(min=1e-12))


def gru_update(received: Tensor, recurrent: Tensor, kept: Tensor) -> Tensor:
    """A gated recurrent unit whose linear maps are done: (n, 3d), (n, 3d) and the states to update, (n, d)."""
    reset, update, new = received.chunk(3, dim=1)
    old_reset, old_update, old_new = recurrent.chunk(3, dim=1)
    update = torch.sigmoid(update + old_update)
    candidate = torch.tanh(new + torch.sigmoid(reset + old_reset) * old_new)
    return candidate + update * (kept - candidate)


class SRGNN(GatedSessions):
    """SR-GNN: adjacency rows are divided by the number of their edges, and nothing is known of a user (Section 3.2)."""

    def edge_weights(self, block: Block) -> Tensor:
        """1 / number of the version's edges; an edge that occurs twice counts twice."""
        return (1.0 / block.indptr.diff().clamp(min=1)).float()[block.centres]


class APGNNConfig(GatedConfig):
    """Configuration of `APGNN`."""

    user_dimension: int = Field(ge=1)
    """Length of user vectors, d' of the papers."""


class ScaledConfig(APGNNConfig):
    """What DIPSGNN's network is configured by, with and without noise on aggregates."""

    clip: float = Field(gt=0, allow_inf_nan=False)
    """C, the length that joint states are scaled to: a part of the network."""


class APGNN(SRGNN):
    """APGNN (Zhang et al., TKDE 2020): SR-GNN with a user vector, in every node state and in the readout.

    The vector is made of the user's true features. DIPSGNN's authors compare with APGNN as a model of "user profiles".
    Its attention over a user's earlier sessions is left out: a user has one sequence here.
    """

    config: APGNNConfig
    uses_features: ClassVar[bool] = True
