"""Additive attention on CPU tensors as one compiled pass over the edges: scores, softmax and weighted sum together.

`attend` is what `ops.additive_scores`, `ops.softmax` (or counts) and `ops.weighted_sum` say one after another, and is
that on every other device. Nothing of size (n_edges, d) exists, forth or back, and no edge needs an exponential per
number: sigmoid(a + b) is 1 / (1 + exp(-a) exp(-b)), whose exponentials are of nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tasks.core.compiled import compiled
from tasks.graph import ops
from tasks.graph.ops import Block

LARGEST = 40.0  # exp(2 * 40) is a float32


def attend(
    block: Block, sources: Tensor, centres: Tensor, weight: Tensor, messages: Tensor, counts: Tensor | None = None
) -> Tensor:
    """For each centre the sum of its sources' messages, weighted by additive attention: (n_centres, k).

    Args:
        sources: (n_sources, d); centres: (n_centres, d); weight: (d,): an edge's score is weightᵀ sigmoid(its
            source's row + its centre's row), and its weight the softmax of that over the edges of its centre;
            with counts, (n_edges,) constants, it is the score times its count.
        messages: (n_sources, k). A centre without edges gets zeros.

    Raises:
        ValueError: where shapes or types differ, or an edge leads out of the block. The compiled pass would read there.
    """
    tensors = sources, centres, weight, messages
    _check(block, *tensors)
    if counts is not None and counts.shape != block.sources.shape:
        raise ValueError(f"attention over a block of {len(block.sources)} edges got counts {tuple(counts.shape)}")
    # exponentials of two bounded entries can be multiplied; an entry that is not a number is not bounded
    if any(t.device.type != "cpu" for t in tensors) or not all(
        t.numel() == 0 or bool(t.detach().abs().amax() <= LARGEST) for t in (sources, centres)
    ):
        scores = ops.additive_scores(block, sources, centres, weight)
        attention = ops.softmax(block, scores) if counts is None else scores * counts
        return ops.weighted_sum(block, attention, messages)
    first, end = int(block.indptr[0]), int(block.indptr[-1])
    sorted_by_centre = first == 0 and end == len(block.sources) and bool((block.indptr.diff() >= 0).all())
    if not sorted_by_centre or (
        end and not 0 <= int(block.sources.min()) <= int(block.sources.max()) < block.n_sources
    ):
        raise ValueError(f"attention over a block whose edges lead out of its {block.n_sources} sources")
    return _Attend.apply(*tensors, block, counts)


def _check(block: Block, sources: Tensor, centres: Tensor, weight: Tensor, messages: Tensor) -> None:
    d, k = len(weight), messages.shape[-1]
    expected = (block.n_sources, d), (len(block.indptr) - 1, d), (d,), (block.n_sources, k)
    tensors = sources, centres, weight, messages
    if tuple(tuple(t.shape) for t in tensors) != expected or len({t.dtype for t in tensors}) > 1:
        names = ", ".join(f"{tuple(t.shape)} of {t.dtype}" for t in tensors)
        raise ValueError(f"attention over a block of {expected[0][0]} sources and {expected[1][0]} centres got {names}")


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        sources: Tensor,
        centres: Tensor,
        weight: Tensor,
        messages: Tensor,
        block: Block,
        counts: Tensor | None,
    ) -> Tensor:
        grown = [torch.exp(-t).contiguous() for t in (sources, centres)]
        out = messages.new_zeros(len(block.indptr) - 1, messages.shape[1])
        attention = messages.new_empty(len(block.sources))
        saved = (*grown, weight.contiguous(), messages.contiguous(), attention)
        ctx.save_for_backward(*saved)
        ctx.block, ctx.counts = block, None if counts is None else counts.numpy()
        arrays = (t.detach().numpy() for t in (*saved, out))
        _forward(block.indptr.numpy(), block.sources.numpy(), ctx.counts, *arrays)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        sources, centres, weight, messages, _ = saved = ctx.saved_tensors
        totals = [torch.zeros_like(t) for t in (sources, centres, weight, messages)]
        arrays = (t.detach().numpy() for t in (*saved, gradients[0].contiguous(), *totals))
        _backward(ctx.block.indptr.numpy(), ctx.block.sources.numpy(), ctx.counts, *arrays)
        return totals[0] * weight, totals[1] * weight, totals[2], totals[3], None, None


@compiled
def _forward(
    indptr: Any,
    edges: Any,
    counts: Any,
    sources: Any,
    centres: Any,
    weight: Any,
    messages: Any,
    attention: Any,
    out: Any,
) -> None:
    """Fill `attention` (n_edges,) and `out` (n_centres, k). sources, centres: exponentials of minus the rows."""
    unit = weight.dtype.type(1)
    for c in range(len(indptr) - 1):
        first, end = indptr[c], indptr[c + 1]
        centre = centres[c]
        highest = weight.dtype.type(-np.inf)
        for e in range(first, end):
            source = sources[edges[e]]
            score = weight.dtype.type(0)
            for j in range(len(weight)):
                score += weight[j] / (unit + source[j] * centre[j])
            attention[e] = score
            highest = max(highest, score)
        total = weight.dtype.type(0)
        if counts is None:
            for e in range(first, end):
                attention[e] = np.exp(attention[e] - highest)
                total += attention[e]
        for e in range(first, end):
            if counts is None:
                attention[e] /= total
            else:
                attention[e] *= counts[e]
            message = messages[edges[e]]
            for j in range(out.shape[1]):
                out[c, j] += attention[e] * message[j]


@compiled
def _backward(
    indptr: Any,
    edges: Any,
    counts: Any,
    sources: Any,
    centres: Any,
    weight: Any,
    messages: Any,
    attention: Any,
    outer: Any,
    of_sources: Any,
    of_centres: Any,
    of_weight: Any,
    of_messages: Any,
) -> None:
    """Add up gradients from `outer` (n_centres, k). Those of sources and centres still lack the factor `weight`."""
    unit = weight.dtype.type(1)
    widest = 0
    for c in range(len(indptr) - 1):
        widest = max(widest, indptr[c + 1] - indptr[c])
    slopes = np.empty(widest, weight.dtype)
    for c in range(len(indptr) - 1):
        first, end = indptr[c], indptr[c + 1]
        centre, received = centres[c], outer[c]
        mean = weight.dtype.type(0)
        for e in range(first, end):
            s = edges[e]
            slope = weight.dtype.type(0)
            for j in range(len(received)):
                slope += received[j] * messages[s, j]
                of_messages[s, j] += attention[e] * received[j]
            slopes[e - first] = slope
            mean += attention[e] * slope
        for e in range(first, end):
            s = edges[e]
            slope = slopes[e - first]
            slope = attention[e] * (slope - mean) if counts is None else counts[e] * slope
            for j in range(len(weight)):
                hidden = unit / (unit + sources[s, j] * centre[j])
                of_weight[j] += slope * hidden
                change = slope * hidden * (unit - hidden)
                of_sources[s, j] += change
                of_centres[c, j] += change
