"""DPSGD, a private baseline of DIPSGNN's: its network, trained by differentially private SGD (Section 5.1).

No aggregate is noisy; instead every user's gradient is clipped and gets noise (`tasks.models.sessions.private`). The
paper says "the same level" of privacy as DIPSGNN's, which is that of an edge, and not what a record of DP-SGD is.
Records of single examples would leave a user's events in as many records as there are prefixes with them.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from tasks.core.sequences import Sequences
from tasks.graph.ops import weighted_sum
from tasks.graph.prefixes import PrefixGraphs, Step
from tasks.models.sessions.gated import ScaledConfig, ScaledSessions, gru_update
from tasks.models.sessions.private import GAPS, PrivateConfig, PrivateSequences, UserDropout
from tasks.privacy.accounting.per_record import Owned, product
from tasks.privacy.remarks import gap


class DPSGDConfig(PrivateConfig, ScaledConfig):
    """Configuration of `DPSGD`."""


class DPSGD(PrivateSequences, ScaledSessions):
    """DIPSGNN's network without noise on aggregates, with user-level differential privacy."""

    noise_key = "DPSGD"
    config: DPSGDConfig
    uses_features: ClassVar[bool] = True
    gaps = (*GAPS, gap("features-apart"))

    @override
    def own_logits(self, parameters: dict[str, Tensor], sequences: Sequences, dropout: UserDropout) -> Tensor:
        return _Pass(self, parameters, sequences).logits(dropout)

    @override
    def n_records(self) -> int:
        return len(self.network.get_buffer("profiles"))


class _Pass:
    """`GatedSessions.logits`, every map of which is applied with a record's own copy of its parameters."""

    def __init__(self, model: DPSGD, parameters: dict[str, Tensor], sequences: Sequences) -> None:
        """parameters: `copies` of the network's, for each of `sequences`."""
        self._model, self._parameters, self._sequences = model, parameters, sequences
        self._graphs = model.graphs(sequences)
        self._events = self._owned(self._graphs.event_owners)

    def logits(self, dropout: UserDropout) -> Tensor:
        graphs, items = self._graphs, self._parameters["items.weight"]
        each = torch.arange(len(self._sequences), device=self._model.device)
        profiles = self._model.network.get_buffer("profiles")[torch.from_numpy(self._sequences.users).long()]
        users = self._linear("user", profiles, self._owned(each))
        owned = self._owned(graphs.node_owners)
        states = dropout(items[graphs.node_owners, graphs.node_items], self._sequences.users, graphs.node_owners)
        for step in graphs.steps:
            states, owned = self._propagate(step, states, owned, users)
        return product(self._read(graphs, states, owned, users), items, self._events)

    def _propagate(self, step: Step, states: Tensor, owned: Owned, users: Tensor) -> tuple[Tensor, Owned]:
        d, after = states.shape[1], self._owned(step.owners)
        joint = self._model.scale_states(torch.cat([states, users[owned.owners]], dim=1))
        aggregates = [
            weighted_sum(block, self._model.edge_weights(block), self._times(f"{name}.weight", joint, owned))
            + self._parameters[f"{name}.bias"][after.owners]
            for name, block in (("successors", step.successors), ("predecessors", step.predecessors))
        ]
        received = self._times("gates.weight_ih", torch.cat(aggregates, dim=1), after)
        received = received + self._parameters["gates.bias_ih"][after.owners]
        kept = joint[:, :d]
        recurrent = self._times("gates.weight_hh", kept, owned) + self._parameters["gates.bias_hh"][owned.owners]
        return gru_update(received, recurrent[step.previous], kept[step.previous]), after

    def _read(self, graphs: PrefixGraphs, states: Tensor, owned: Owned, users: Tensor) -> Tensor:
        last, members = states[graphs.last], graphs.members
        nodes, lasts = (
            self._linear("attend_node", states, owned),
            self._linear("attend_last", last, self._events),
        )
        hidden = torch.sigmoid(nodes[members.sources] + lasts[members.centres])
        edges = self._owned(self._events.owners[members.centres])
        weights = self._linear("attention", hidden, edges).squeeze(1)
        parts = [weighted_sum(members, weights * graphs.visits, states), last, users[self._events.owners]]
        return self._linear("readout", torch.cat(parts, dim=1), self._events)

    def _linear(self, name: str, rows: Tensor, owned: Owned) -> Tensor:
        bias = self._parameters.get(f"{name}.bias")
        out = self._times(f"{name}.weight", rows, owned)
        return out if bias is None else out + bias[owned.owners]

    def _times(self, name: str, rows: Tensor, owned: Owned) -> Tensor:
        return product(rows, self._parameters[name], owned)

    def _owned(self, owners: Tensor) -> Owned:
        return Owned(owners, len(self._sequences))
