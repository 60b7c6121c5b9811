"""EdgeRand, DIPSGNN's strongest private baseline: Gaussian noise on the adjacency matrices themselves (Section 5.1).

Every user's matrices A_out and A_in, over the user's own distinct items, get noise once, before training, and all that
follows reads the noisy ones: an entry for every pair of items of a prefix, edge or not. So a node's state depends on
all nodes of its prefix, and prefixes have no state in common. Recommendations are computed from noisy matrices too.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.hashing import mix
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.graph.prefixes import PrefixGraphs, Step, prefix_graphs
from tasks.models.sessions import dense
from tasks.models.sessions.dipsgnn import DIPSGNN, DIPSGNNConfig, prefixes
from tasks.models.sessions.gated import GatedSessions, Pair, Queries
from tasks.models.sessions.ledgers import LABELS, graph_entry, lists_entry
from tasks.privacy import noise
from tasks.privacy.accounting.gaps import GIVEN_EPOCH
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import aggregation
from tasks.privacy.remarks import because, gap


class EdgeRandConfig(DIPSGNNConfig):
    """Configuration of `EdgeRand`; σ follows from ε2 as for one release of sensitivity 1."""

    accounting: Literal["published"] = "published"


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

    @override
    def update(self, step: Step, joint: Tensor, through: Pair, own: Pair, queries: Queries) -> Tensor:
        """At the first step, whose messages all prefixes share, one pass; it is computed on the CPU."""
        if not self.sigma or step is not queries.graphs.steps[0]:
            return super().update(step, joint, through, own, queries)
        messages = (joint @ matrix.T for matrix in through)
        tensors = (*self.noises(queries), *messages, *own, joint[:, : self.config.dimension])
        return dense.first_states(dense.Places.from_graphs(queries.graphs), *(t.cpu() for t in tensors)).to(self.device)

    def receive(self, step: Step, joint: Tensor, through: Pair, queries: Queries) -> Tensor:
        """What the public network receives, and the states of all nodes of the prefix, weighted by noise."""
        received = GatedSessions.receive(self, step, joint, through, queries)
        if not self.sigma:
            return received
        places = dense.Places.from_graphs(queries.graphs)
        for noises, matrix in zip(self.noises(queries), through, strict=True):
            messages = joint @ matrix.T
            if step is queries.graphs.steps[0]:
                messages = messages[step.previous]  # of nodes, which all versions share
            received = received + dense.noisy_sums(places, noises, messages.cpu()).to(self.device)
        return received

    def noises(self, queries: Queries) -> tuple[Tensor, ...]:
        """`matrices` of successors and of predecessors, on the CPU."""
        return tuple(self.matrices(queries, direction).cpu() for direction in range(2))

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
        """Lists, for which nothing finite follows; what does of the matrices alone; and labels.

        Before training, as if no item were repeated.
        """
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
        if hasattr(self, "network") and self._buffer("repeats"):
            fixed = {"accounted_epsilon": None, "given": GIVEN_EPOCH, "reasons": (because("repeated-items"),)}
            graph = graph.model_copy(update=fixed)
        return [lists, graph, LABELS]
