"""Message passing over neighbourhoods: DGL kernels on CPU tensors, torch segment operations on CUDA tensors.

Both paths compute the same three primitives on a `Block` (edges sorted by their centre), are differentiable, and are
tested to agree. No other module calls DGL.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

os.environ.setdefault("DGLBACKEND", "pytorch")


@dataclass(frozen=True)
class Block:
    """The edges that end in some centre nodes, sorted by centre.

    indptr: (n_centres + 1,) int64; the edges of centre c are indptr[c]:indptr[c + 1].
    sources: (n_edges,) int64, the node each edge comes from.
    n_sources: how many nodes there are to come from.
    """

    indptr: Tensor
    sources: Tensor
    n_sources: int

    @cached_property
    def centres(self) -> Tensor:
        """(n_edges,) int64: position of each edge's centre in the block."""
        degrees = self.indptr.diff()
        return torch.repeat_interleave(torch.arange(len(degrees), device=degrees.device), degrees)

    @cached_property
    def _dgl(self):  # type: ignore[no-untyped-def]
        import dgl

        # Explicit edge ids: DGL 1.1's blocked SpMM refuses blocks without them.
        edge_ids = torch.arange(len(self.sources))
        return dgl.create_block(("csc", (self.indptr, self.sources, edge_ids)), self.n_sources, len(self.indptr) - 1)


@dataclass(frozen=True)
class Neighbourhoods:
    """For every node the nodes it hears from, itself included: compressed rows (indptr, sources), both int64."""

    indptr: Tensor
    sources: Tensor

    @classmethod
    def bipartite(
        cls, users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int
    ) -> Neighbourhoods:
        """Nodes are users, then items; edges run both ways, and every node hears itself (GERAI, Eq. 3)."""
        n_nodes = n_users + n_items
        item_nodes = items.astype(np.int64) + n_users
        loops = np.arange(n_nodes)
        sources = np.concatenate([item_nodes, users, loops])
        centres = np.concatenate([users, item_nodes, loops])
        order = np.lexsort((sources, centres))
        indptr = np.zeros(n_nodes + 1, np.int64)
        np.cumsum(np.bincount(centres, minlength=n_nodes), out=indptr[1:])
        return cls(torch.from_numpy(indptr), torch.from_numpy(sources[order]))

    def to(self, device: torch.device | str) -> Neighbourhoods:
        """The same neighbourhoods on another device."""
        return Neighbourhoods(self.indptr.to(device), self.sources.to(device))

    def block(self, centres: Tensor) -> Block:
        """The edges that end in `centres`: (n_centres,) int64 node ids."""
        starts = self.indptr[centres]
        degrees = self.indptr[centres + 1] - starts
        indptr = torch.zeros(len(centres) + 1, dtype=torch.int64, device=centres.device)
        torch.cumsum(degrees, 0, out=indptr[1:])
        edge_starts = torch.repeat_interleave(starts - indptr[:-1], degrees)
        edges = torch.arange(len(edge_starts), device=centres.device) + edge_starts
        return Block(indptr, self.sources[edges], len(self.indptr) - 1)

    def all(self) -> Block:
        """The edges of every node."""
        return Block(self.indptr, self.sources, len(self.indptr) - 1)


def _on_cpu(tensor: Tensor) -> bool:
    """Whether DGL's CPU kernels serve this tensor (its wheel has no CUDA kernels)."""
    return tensor.device.type == "cpu"


def source_plus_centre(block: Block, sources: Tensor, centres: Tensor) -> Tensor:
    """For each edge, its source's row plus its centre's row.

    sources: (n_sources, d); centres: (n_centres, d). Returns (n_edges, d).
    """
    if not _on_cpu(sources):
        return sources[block.sources] + centres[block.centres]
    import dgl.ops

    return dgl.ops.u_add_v(block._dgl, sources, centres)


def softmax(block: Block, scores: Tensor) -> Tensor:
    """Softmax of edge scores (n_edges,) over the edges of each centre. Returns (n_edges,)."""
    if not _on_cpu(scores):
        n_centres = len(block.indptr) - 1
        highest = scores.new_full((n_centres,), -torch.inf)
        highest.scatter_reduce_(0, block.centres, scores.detach(), "amax")
        exponents = torch.exp(scores - highest[block.centres])
        totals = scores.new_zeros(n_centres).index_add(0, block.centres, exponents)
        return exponents / totals[block.centres]
    import dgl.ops

    return dgl.ops.edge_softmax(block._dgl, scores.unsqueeze(1)).squeeze(1)


def weighted_sum(block: Block, weights: Tensor, messages: Tensor) -> Tensor:
    """For each centre the sum of its sources' messages (n_sources, d) times the edges' weights (n_edges,).

    Returns (n_centres, d); a centre without edges gets zeros.
    """
    if not _on_cpu(messages):
        out = messages.new_zeros(len(block.indptr) - 1, messages.shape[1])
        return out.index_add(0, block.centres, messages[block.sources] * weights.unsqueeze(1))
    import dgl.ops

    return dgl.ops.u_mul_e_sum(block._dgl, messages, weights.unsqueeze(1))
