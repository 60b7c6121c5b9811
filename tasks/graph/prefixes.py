"""The graphs of all prefixes of a sequence at once, sharing every node state that prefixes have in common.

The graph of a prefix (SR-GNN, Wu et al., AAAI 2019; DIPSGNN, Section 4.2) has a node for each distinct item and an edge
from an item to the one that followed it, as often as it did. When a prefix grows by one event, only few node states
change: after one propagation step those of the last two items, after k steps those within k - 1 edges of them. So for
each step this module lists the *versions* of node states, each valid from one prefix to the next version of its node,
and the edges between them. A sequence of n distinct items has O(n) versions instead of the O(n²) states of its n
prefixes, and each version is exactly the state that the prefix's own graph gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.core.sequences import Sequences
from tasks.graph.ops import Block

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One propagation step: its versions, and where their messages come from.

    owners: (n_versions,) sequence of each version.
    previous: (n_versions,) version of the same node one step before (a node, at the first step).
    successors: for each version the versions, one step before, of the items that followed the node's visits (A_out).
    predecessors: the same of the items that came before its visits (A_in).
    visits: for each version the events at which its node was visited so far.
    ends: (n_visits,) whether that visit is the prefix's last event, which nothing follows yet.
    """

    owners: Tensor
    previous: Tensor
    successors: Block
    predecessors: Block
    visits: Block
    ends: Tensor

    def to(self, device: torch.device) -> Step:
        """The same on another device."""
        return Step(**{name: part.to(device) for name, part in vars(self).items()})


@dataclass(frozen=True)
class PrefixGraphs:
    """The graphs of all prefixes of some sequences; every event ends one prefix.

    node_items: (n_nodes,) int64, item of each node; the nodes of a sequence are its distinct items, in order of their
        first visit.
    node_owners: (n_nodes,) int64, the sequence of each node.
    steps: the propagation steps; without any, versions are the nodes.
    last: (n_events,) final version of the last item of each prefix.
    members: for each prefix the final versions of all its nodes, in order of first visit.
    visits: (n_members,) float32, how often each of them was visited so far.
    event_owners: (n_events,) int64, the sequence of each prefix.
    """

    node_items: Tensor
    node_owners: Tensor
    steps: tuple[Step, ...]
    last: Tensor
    members: Block
    visits: Tensor
    event_owners: Tensor

    def to(self, device: torch.device) -> PrefixGraphs:
        """The same on another device."""
        parts = {name: part.to(device) for name, part in vars(self).items() if name != "steps"}
        return PrefixGraphs(steps=tuple(step.to(device) for step in self.steps), **parts)


def prefix_graphs(sequences: Sequences, n_steps: int, *, share: bool = True) -> PrefixGraphs:
    """Build the graphs of all prefixes for `n_steps` propagation steps.

    Args:
        share: with False, every prefix has a version of each of its nodes, changed or not: for models whose states
            depend on all nodes of the prefix.
    """
    visits = _Visits.from_sequences(sequences)
    start = sequences.indptr[sequences.owners]
    member_prefix, member_node = visits.members(start)
    versions: _Versions | None = None
    steps = []
    for number in range(n_steps):
        if not share:
            changed = (member_node, member_prefix)
        elif not number:
            changed = visits.touched_nodes(start)
        else:
            assert versions is not None
            changed = visits.with_neighbours(versions.nodes, versions.since, start)
        current = _Versions.from_nodes(*changed, visits.n_events)
        steps.append(_step(current, versions, visits, start))
        versions = current
    last, member_version = visits.node, member_node
    if versions is not None:
        last = versions.find(visits.node, np.arange(visits.n_events))
        member_version = versions.find(member_node, member_prefix)
    n_final = visits.n_nodes if versions is None else len(versions.nodes)
    return PrefixGraphs(
        node_items=torch.from_numpy(visits.node_items.astype(np.int64)),
        node_owners=torch.from_numpy(visits.node_owners),
        steps=tuple(steps),
        last=torch.from_numpy(last),
        members=_block(member_prefix, member_version, visits.n_events, n_final),
        visits=torch.from_numpy(visits.count(member_node, member_prefix).astype(np.float32)),
        event_owners=torch.from_numpy(sequences.owners),
    )


@dataclass(frozen=True)
class _Visits:
    """Nodes, and which events visit them. Events and nodes are numbered over all sequences.

    node: (n_events,) node of each event; order: events sorted by node, then time; indptr: (n_nodes + 1,) into order.
    """

    node: Ids
    node_items: NDArray[np.int32]
    node_owners: Ids
    first: Ids
    order: Ids
    indptr: Ids

    @classmethod
    def from_sequences(cls, sequences: Sequences) -> _Visits:
        items, owners = sequences.items, sequences.owners
        n_events = sequences.n_events
        by_item = np.lexsort((np.arange(n_events), items, owners))
        new = np.ones(n_events, bool)
        new[1:] = (owners[by_item][1:] != owners[by_item][:-1]) | (items[by_item][1:] != items[by_item][:-1])
        first = by_item[new]  # of the nodes, ordered by (owner, item)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first))  # owners ascend with events
        node = np.empty(n_events, np.int64)
        node[by_item] = rank[np.cumsum(new) - 1]
        first = np.sort(first)
        order = np.argsort(node, kind="stable")
        indptr = np.zeros(len(first) + 1, np.int64)
        np.cumsum(np.bincount(node, minlength=len(first)), out=indptr[1:])
        return cls(node, items[first], owners[first], first, order, indptr)

    @property
    def n_events(self) -> int:
        return len(self.node)

    @property
    def n_nodes(self) -> int:
        return len(self.first)

    def members(self, start: Ids) -> tuple[Ids, Ids]:
        """(prefix, node) of every node of every prefix, by prefix and first visit."""
        is_first = np.zeros(self.n_events, np.int64)
        is_first[self.first] = 1
        n_so_far = np.cumsum(is_first)  # nodes of all sequences so far
        first_node = self.node[start]  # a sequence's nodes are numbered from its first event's on
        counts = n_so_far - first_node
        prefix = np.repeat(np.arange(self.n_events), counts)
        return prefix, np.arange(len(prefix)) - np.repeat(np.cumsum(counts) - counts - first_node, counts)

    def touched_nodes(self, start: Ids) -> tuple[Ids, Ids]:
        """(node, event): the nodes whose edges change when the event arrives: its own, and that of the one before."""
        events = np.arange(self.n_events)
        after = events[events > start]
        return np.concatenate([self.node, self.node[after - 1]]), np.concatenate([events, after])

    def with_neighbours(self, nodes: Ids, since: Ids, start: Ids) -> tuple[Ids, Ids]:
        """(node, event): the given ones, and their neighbours in the graph of the prefix that the event ends."""
        row, event = self.so_far(nodes, since)
        time = since[row]
        preceding, following = event > start[event], event < time
        return (
            np.concatenate([nodes, self.node[event[preceding] - 1], self.node[event[following] + 1]]),
            np.concatenate([since, time[preceding], time[following]]),
        )

    def count(self, nodes: Ids, since: Ids) -> Ids:
        """How often each node is visited up to an event."""
        keys = self.node[self.order] * self.n_events + self.order
        return np.searchsorted(keys, nodes * self.n_events + since, side="right") - self.indptr[nodes]

    def so_far(self, nodes: Ids, since: Ids) -> tuple[Ids, Ids]:
        """The visits of each node up to an event: (row, event), by row and time."""
        counts = self.count(nodes, since)
        row = np.repeat(np.arange(len(nodes)), counts)
        position = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        return row, self.order[self.indptr[nodes][row] + position]


@dataclass(frozen=True)
class _Versions:
    """Versions of one step, sorted by node and the event from which they are valid."""

    nodes: Ids
    since: Ids
    keys: Ids
    n_events: int

    @classmethod
    def from_nodes(cls, nodes: Ids, since: Ids, n_events: int) -> _Versions:
        keys = np.unique(nodes * n_events + since)
        return cls(keys // n_events, keys % n_events, keys, n_events)

    def find(self, nodes: Ids, events: Ids) -> Ids:
        """The version of each node that is valid in the prefix that an event ends."""
        return np.searchsorted(self.keys, nodes * self.n_events + events, side="right") - 1


def _step(current: _Versions, before: _Versions | None, visits: _Visits, start: Ids) -> Step:
    def source(nodes: Ids, events: Ids) -> Ids:
        return nodes if before is None else before.find(nodes, events)

    n_sources = visits.n_nodes if before is None else len(before.nodes)
    row, event = visits.so_far(current.nodes, current.since)
    time = current.since[row]
    following, preceding = event < time, event > start[event]
    n_versions = len(current.nodes)
    return Step(
        owners=torch.from_numpy(visits.node_owners[current.nodes]),
        previous=torch.from_numpy(source(current.nodes, current.since)),
        successors=_block(
            row[following], source(visits.node[event[following] + 1], time[following]), n_versions, n_sources
        ),
        predecessors=_block(
            row[preceding], source(visits.node[event[preceding] - 1], time[preceding]), n_versions, n_sources
        ),
        visits=_block(row, event, n_versions, visits.n_events),
        ends=torch.from_numpy(~following),
    )


def _block(centres: Ids, sources: Ids, n_centres: int, n_sources: int) -> Block:
    """A block from edges that are sorted by centre."""
    indptr = np.zeros(n_centres + 1, np.int64)
    np.cumsum(np.bincount(centres, minlength=n_centres), out=indptr[1:])
    return Block(torch.from_numpy(indptr), torch.from_numpy(sources), n_sources)
