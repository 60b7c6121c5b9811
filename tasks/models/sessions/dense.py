"""Propagation over the graphs of all prefixes where every pair of nodes has a weight: a compiled pass per sequence.

Such a state depends on all nodes of its prefix, so that prefixes share none: node m has a version at each event e from
its first visit on, number shift[m] + e (`tasks.graph.prefixes` with `share=False`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tasks.core.compiled import compiled
from tasks.graph.prefixes import Ids, PrefixGraphs


class Places(NamedTuple):
    """Where the nodes, events and versions of sequences are."""

    events: Ids
    """(n_sequences + 1,) first event of each sequence."""
    nodes: Ids
    """(n_sequences + 1,) first node of each sequence."""
    visited: Ids
    """(n_events,) node of each event."""
    first: Ids
    """(n_nodes,) event of each node's first visit."""
    shift: Ids
    """(n_nodes,) version of a node less the event that it is of."""

    @classmethod
    def from_graphs(cls, graphs: PrefixGraphs) -> Places:
        """graphs: of prefixes that share no version."""
        previous, owners = graphs.steps[0].previous.cpu().numpy(), graphs.node_owners.cpu().numpy()
        sequences = np.arange(int(owners[-1]) + 2)
        events = np.searchsorted(graphs.event_owners.cpu().numpy(), sequences)
        counts = np.bincount(previous, minlength=len(owners))
        first = events[owners + 1] - counts
        shift = np.cumsum(counts) - counts - first
        return cls(events, np.searchsorted(owners, sequences), previous[graphs.last.cpu().numpy()], first, shift)


class _FirstStates(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, places: Places, *tensors: Tensor) -> Tensor:
        kept = tensors[-1]
        n_versions, d = int(places.shift[-1] + places.events[-1]), kept.shape[1]
        states, gates = kept.new_empty(n_versions, d), kept.new_empty(n_versions, 3 * d)
        tensors = tuple(t.contiguous() for t in tensors)
        _forward(*places, *(t.numpy() for t in (*tensors, states, gates)))
        ctx.places = places
        ctx.save_for_backward(tensors[0], tensors[1], tensors[-2], tensors[-1], gates)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *_, recurrent, kept, _ = saved = ctx.saved_tensors
        shapes = (recurrent.shape, recurrent.shape, recurrent.shape[1:], recurrent.shape, kept.shape)
        totals = [kept.new_zeros(shape) for shape in shapes]
        _backward(*ctx.places, *(t.numpy() for t in (*saved, gradients[0].contiguous(), *totals)))
        return None, None, None, *totals


first_states = _FirstStates.apply
"""Places and tensors -> states of all versions after the first step, at which all prefixes share a node's message.

(n_versions, d). What gates receive is, of successors and of predecessors, Σ (number of edges + noise) message.

Args:
    out_noise, in_noise: (n_nodes, most nodes of a sequence), one entry for each node of the same sequence.
    out_messages, in_messages: (n_nodes, 3d).
    constant, recurrent: (3d,) and (n_nodes, 3d), what all gates get, and those of the node itself.
    kept: (n_nodes, d) states before.
"""


def noisy_sums(places: Places, noises: Tensor, messages: Tensor) -> Tensor:
    """Σ_j noises[i, j] messages[j] for each version i, over the versions j of its prefix: (n_versions, width).

    noises: (n_nodes, most nodes of a sequence); messages: (n_versions, width).
    """
    return _NoisySums.apply(places, noises, messages)


class _NoisySums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, places: Places, noises: Tensor, messages: Tensor) -> Tensor:
        ctx.places = places
        ctx.save_for_backward(noises)
        return _products(places, noises, messages, transposed=False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (noises,) = ctx.saved_tensors
        return None, None, _products(ctx.places, noises, gradients[0], transposed=True)


def _products(places: Places, noises: Tensor, messages: Tensor, *, transposed: bool) -> Tensor:
    """`noisy_sums`, or the same with transposed matrices."""
    out = torch.empty_like(messages)
    _fill_products(*places, noises.numpy(), messages.contiguous().numpy(), out.numpy(), transposed)
    return out


@compiled
def _forward(
    events: Ids,
    nodes: Ids,
    visited: Ids,
    first: Ids,
    shift: Ids,
    out_noise: Any,
    in_noise: Any,
    out_messages: Any,
    in_messages: Any,
    constant: Any,
    recurrent: Any,
    kept: Any,
    states: Any,
    gates: Any,
) -> None:
    """Fill states and gates, (n_versions, 3d). What nodes receive is kept up to date from event to event."""
    half, highest = np.float32(0.5), np.float32(7.905311)

    def tanh(x):  # type: ignore[no-untyped-def]  # a rational approximation (Eigen's), exact to float32
        x = highest if x > highest else (-highest if x < -highest else x)
        y = x * x
        p = np.float32(-2.76076847742355e-16) * y + np.float32(2.00018790482477e-13)
        p = (p * y + np.float32(-8.60467152213735e-11)) * y + np.float32(5.12229709037114e-08)
        p = (p * y + np.float32(1.48572235717979e-05)) * y + np.float32(6.37261928875436e-04)
        q = np.float32(1.19825839466702e-06) * y + np.float32(1.18534705686654e-04)
        q = (q * y + np.float32(2.26843463243900e-03)) * y + np.float32(4.89352518554385e-03)
        return x * (p * y + np.float32(4.89352455891786e-03)) / q

    d = kept.shape[1]
    for s in range(len(nodes) - 1):
        start, n = nodes[s], 0
        received = np.empty((nodes[s + 1] - start, 3 * d), kept.dtype)
        for e in range(events[s], events[s + 1]):
            node = visited[e]
            i = node - start
            if first[node] == e:
                n += 1
                received[i] = constant
                for m in range(n):
                    a, b = out_noise[node, m], in_noise[node, m]
                    for j in range(3 * d):
                        received[i, j] += a * out_messages[start + m, j] + b * in_messages[start + m, j]
                for m in range(n - 1):
                    a, b = out_noise[start + m, i], in_noise[start + m, i]
                    for j in range(3 * d):
                        received[m, j] += a * out_messages[node, j] + b * in_messages[node, j]
            if e > events[s]:
                before = visited[e - 1]
                received[before - start] += out_messages[node]
                received[i] += in_messages[before]
            for m in range(n):
                version, hidden, old = shift[start + m] + e, recurrent[start + m], kept[start + m]
                row, gate, state = received[m], gates[version], states[version]
                for j in range(d):
                    reset = half + half * tanh(half * (row[j] + hidden[j]))
                    update = half + half * tanh(half * (row[d + j] + hidden[d + j]))
                    candidate = tanh(row[2 * d + j] + reset * hidden[2 * d + j])
                    gate[j], gate[d + j], gate[2 * d + j] = reset, update, candidate
                    state[j] = candidate + update * (old[j] - candidate)


@compiled
def _backward(
    events: Ids,
    nodes: Ids,
    visited: Ids,
    first: Ids,
    shift: Ids,
    out_noise: Any,
    in_noise: Any,
    recurrent: Any,
    kept: Any,
    gates: Any,
    outer: Any,
    of_out: Any,
    of_in: Any,
    of_constant: Any,
    of_recurrent: Any,
    of_kept: Any,
) -> None:
    """Add up gradients from `outer` (n_versions, d), the last event of a sequence first."""
    unit, d = np.float32(1), kept.shape[1]
    for s in range(len(nodes) - 1):
        start, n = nodes[s], nodes[s + 1] - nodes[s]
        received = np.zeros((n, 3 * d), kept.dtype)
        for e in range(events[s + 1] - 1, events[s] - 1, -1):
            node = visited[e]
            i = node - start
            for m in range(n):
                version, hidden, old = shift[start + m] + e, recurrent[start + m], kept[start + m]
                row, gate, slope = received[m], gates[version], outer[version]
                of_hidden, of_old = of_recurrent[start + m], of_kept[start + m]
                for j in range(d):
                    reset, update, candidate = gate[j], gate[d + j], gate[2 * d + j]
                    of_candidate = slope[j] * (unit - update) * (unit - candidate * candidate)
                    of_update = slope[j] * (old[j] - candidate) * update * (unit - update)
                    of_reset = of_candidate * hidden[2 * d + j] * reset * (unit - reset)
                    of_old[j] += slope[j] * update
                    row[j] += of_reset
                    row[d + j] += of_update
                    row[2 * d + j] += of_candidate
                    of_hidden[j] += of_reset
                    of_hidden[d + j] += of_update
                    of_hidden[2 * d + j] += of_candidate * reset
            if e > events[s]:
                before = visited[e - 1]
                of_out[node] += received[before - start]
                of_in[before] += received[i]
            if first[node] == e:
                n -= 1
                for m in range(n):
                    a, b = out_noise[start + m, i], in_noise[start + m, i]
                    for j in range(3 * d):
                        of_out[node, j] += a * received[m, j]
                        of_in[node, j] += b * received[m, j]
                for m in range(n + 1):
                    a, b = out_noise[node, m], in_noise[node, m]
                    for j in range(3 * d):
                        of_out[start + m, j] += a * received[i, j]
                        of_in[start + m, j] += b * received[i, j]
                of_constant += received[i]


@compiled
def _fill_products(
    events: Ids,
    nodes: Ids,
    visited: Ids,  # noqa: ARG001
    first: Ids,
    shift: Ids,
    noises: Any,
    messages: Any,
    out: Any,
    transposed: bool,
) -> None:
    """Fill `out` with a product of matrices for each prefix."""
    for s in range(len(nodes) - 1):
        start, n = nodes[s], 0
        weights = np.empty((0, 0), noises.dtype)
        for e in range(events[s], events[s + 1]):
            if start + n < nodes[s + 1] and first[start + n] == e:
                n += 1
                corner = noises[start : start + n, :n]
                weights = corner.T.copy() if transposed else corner.copy()
            table = np.empty((n, messages.shape[1]), messages.dtype)
            for m in range(n):
                table[m] = messages[shift[start + m] + e]
            product = np.dot(weights, table)
            for m in range(n):
                out[shift[start + m] + e] = product[m]
