"""EdgeRand, DIPSGNN's strongest private baseline: Gaussian noise on the adjacency matrices themselves (Section 5.1).

Every user's matrices A_out and A_in, over the user's own distinct items, get noise once, before training, and all that
follows reads the noisy ones: an entry for every pair of items of a prefix, edge or not. So a node's state depends on
all nodes of its prefix, and prefixes have no state in common. Recommendations are computed from noisy matrices too.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor, nn
from typing_extensions import override

from tasks.graph.prefixes import PrefixGraphs, Step, prefix_graphs
from tasks.hashing import mix
from tasks.models.sessions.dipsgnn import DIPSGNN, DIPSGNNConfig, prefixes
from tasks.models.sessions.gated import GatedSessions, Queries
from tasks.models.sessions.ledgers import LABELS, graph_entry, lists_entry
from tasks.privacy import noise
from tasks.privacy.accounting.gaps import GIVEN_EPOCH
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import aggregation
from tasks.privacy.terms import because, gap
from tasks.sequences import Sequences
from tasks.training_data import TrainingData


class EdgeRandConfig(DIPSGNNConfig):
    """Configuration of `EdgeRand`; σ follows from ε2 as for one release of sensitivity 1."""

    accounting: Literal["published"] = "published"

    @model_validator(mode="after")
    def _one_step(self) -> Self:
        return self


class EdgeRand(DIPSGNN):
    """DIPSGNN's network on noisy matrices, with noiseless aggregation."""

    noise_key = "EdgeRand"
    config: EdgeRandConfig

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The network, and whether any item is repeated, which the ledger says."""
        network = super().build(data, rng)
        events = self._sequences
        n_nodes = len(np.unique(events.owners * data.n_items + events.items))
        network.register_buffer("repeats", torch.tensor(n_nodes < events.n_events))
        return network

    def graphs(self, sequences: Sequences) -> PrefixGraphs:
        """Every prefix with states of its own."""
        return prefix_graphs(sequences, self.config.steps, share=False).to(self.device)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every entry of a matrix."""
        config = self.config
        return 0.0 if config.epsilon is None else aggregation.sigma(1, 1.0, config.epsilon, config.delta)

    def receive(self, step: Step, joint: Tensor, through: tuple[Tensor, Tensor], queries: Queries) -> Tensor:
        """What the public network receives, and the states of all nodes of the prefix, weighted by noise."""
        received = GatedSessions.receive(self, step, joint, through, queries)
        if not self.sigma:
            return received
        graphs = queries.graphs
        propagate = propagate_first if step is graphs.steps[0] else propagate_later
        matrices = tuple(self.matrices(queries, direction) for direction in range(2))
        return received + propagate(matrices, tuple(joint @ matrix.T for matrix in through), graphs)

    def matrices(self, queries: Queries, direction: int) -> Tensor:
        """The noise on the matrices of successors (0) or predecessors (1): (n_nodes, most nodes of a sequence).

        Row i holds, for the node i, an entry for each node of its sequence, in order of first visit. An entry is named
        by the prefix with which the later of its two nodes came, and by the place of the other.
        """
        sequences, owners = queries.sequences, queries.graphs.node_owners.cpu().numpy()
        n_items = int(sequences.items.max()) + 1
        _, came = np.unique(sequences.owners * n_items + sequences.items, return_index=True)
        newest = prefixes(queries)[np.sort(came)]
        first = np.searchsorted(owners, owners)
        position = (np.arange(len(owners)) - first)[:, None]
        column = np.arange(int(position.max()) + 1)
        other = np.minimum(first[:, None] + column, len(owners) - 1)  # beyond the last node nothing is read
        later = position >= column
        ids = mix(np.where(later, newest[:, None], newest[other]), np.where(later, 2 * column, 2 * position + 1))
        noises = noise.gaussian_by_key((self.secret, direction), "matrices", self.sigma, ids.ravel(), 1)
        return noises.view(ids.shape).to(self.device)

    @override
    def aggregated_states(self, user: int) -> Tensor:
        """Matrices are released themselves, an entry for each item: the identity, (n_items, n_items)."""
        return torch.eye(self.network.items.num_embeddings, device=self.device)

    @property
    def noisy_inference(self) -> bool:
        """The matrices that recommendations are computed from are noisy too."""
        return bool(self.sigma)

    @property
    def releases(self) -> int:
        """The matrices are released once."""
        return 1

    def ledger(self) -> list[LedgerEntry]:
        """Lists, for which nothing finite follows; what does of the matrices alone; and labels."""
        config = self.config
        if config.epsilon is None:
            return []
        claimed, covered = (config.epsilon, config.delta), (gap("covers-matrices"),)
        lists = lists_entry(
            "noiseless-lists", because("lists-of-prefixes"), accounting="published", claimed=claimed, covered=covered
        )
        # One visit's transitions are three entries of each of two matrices.
        event = Event(kind="gaussian", parameters={"noise_multiplier": self.sigma / math.sqrt(6)})
        graph = graph_entry(
            "matrices-once", because("matrices-alone"), event, claimed,
            gaps=(gap("claim-for-one-entry"), *covered), given=("no-repeats",), accounting="published",
        )  # fmt: skip
        if self._buffer("repeats"):
            fixed = {"accounted_epsilon": None, "given": GIVEN_EPOCH, "reasons": (because("repeated-items"),)}
            graph = graph.model_copy(update=fixed)
        return [lists, graph, LABELS]


def propagate_first(noises: tuple[Tensor, ...], messages: tuple[Tensor, ...], graphs: PrefixGraphs) -> Tensor:
    """Σ_j noise[i, j] messages[j] over the nodes j of each prefix, for each of its nodes i: (n_versions, width).

    It is the sum over all pairs of a noise, (n_nodes, longest), and messages, (n_nodes, width). At the first step a
    node's message is the same in all prefixes, so the sums of a longer prefix go on from those of a shorter one.
    """
    return _RunningSums.apply(graphs, len(noises), *noises, *messages)


class _RunningSums(torch.autograd.Function):
    """Adds one node of every sequence at a time, and keeps what versions need: no (nodes, nodes, width) tensor."""

    @staticmethod
    def _turns(graphs: PrefixGraphs) -> tuple[Tensor, ...]:
        """Versions by the number of nodes of their prefix."""
        members = graphs.members
        sizes = torch.empty_like(members.sources)
        sizes[members.sources] = members.indptr.diff()[members.centres]
        order = sizes.argsort(stable=True)
        return order.split(torch.bincount(sizes)[1:].cpu().tolist())

    @staticmethod
    def forward(ctx: Any, graphs: PrefixGraphs, n_noises: int, *tensors: Tensor) -> Tensor:
        noises, messages = tensors[:n_noises], tensors[n_noises:]
        owners, node, turns = graphs.node_owners, graphs.steps[0].previous, _RunningSums._turns(graphs)
        position = torch.arange(len(owners), device=owners.device) - torch.searchsorted(owners, owners)
        width, longest = messages[0].shape[1], noises[0].shape[1]
        tables = messages[0].new_zeros(n_noises, longest, int(owners[-1]) + 1, width)
        for table, message in zip(tables, messages, strict=True):
            table[position, owners] = message
        out, running = messages[0].new_empty(len(node), width), torch.zeros_like(messages[0])
        for turn, versions in enumerate(turns):
            for weights, table in zip(noises, tables, strict=True):
                running.addcmul_(weights[:, turn, None], table[turn].index_select(0, owners))
            out.index_copy_(0, versions, running.index_select(0, node[versions]))
        ctx.save_for_backward(owners, position, node, *noises)
        ctx.turns = turns
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        owners, position, node, *noises = ctx.saved_tensors
        (gradient,) = gradients
        running = gradient.new_zeros(len(owners), gradient.shape[1])
        tables = gradient.new_zeros(len(noises), noises[0].shape[1], int(owners[-1]) + 1, gradient.shape[1])
        for turn in reversed(range(len(ctx.turns))):
            versions = ctx.turns[turn]
            running.index_add_(0, node[versions], gradient.index_select(0, versions))
            for weights, table in zip(noises, tables, strict=True):
                table[turn].index_add_(0, owners, running * weights[:, turn, None])
        return None, None, *(None for _ in noises), *(table[position, owners] for table in tables)


def propagate_later(noises: tuple[Tensor, ...], messages: tuple[Tensor, ...], graphs: PrefixGraphs) -> Tensor:
    """The same where a node's message differs from prefix to prefix: messages (n_versions, width)."""
    members, nodes = graphs.members, graphs.steps[0].previous
    position = torch.arange(len(members.sources), device=members.sources.device) - members.indptr[members.centres]
    n_prefixes, longest = len(members.indptr) - 1, noises[0].shape[1]
    total: Any = 0
    for weights, message in zip(noises, messages, strict=True):
        table = message.new_zeros(n_prefixes, longest, message.shape[1])
        table = table.index_put((members.centres, position), message[members.sources])
        rows = weights.new_zeros(n_prefixes, longest, longest)
        rows[members.centres, position] = weights[nodes[members.sources]]
        total = total + torch.bmm(rows, table)[members.centres, position]
    return torch.empty_like(total).index_copy(0, members.sources, total)
