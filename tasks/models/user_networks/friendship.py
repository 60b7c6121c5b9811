"""Friendships as a graph, as random walks (Perozzi et al., KDD 2014), and as training examples (DP-CroSUE, Eq. 9).

Also which users or words occur near each other in walks or texts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from torch import Tensor
from torch.nn.functional import softplus

from tasks.graph import ops


def neighbourhoods(links: NDArray[np.int32], n_users: int) -> ops.Neighbourhoods:
    """The in-neighbours of every user are all friends, in the order of their ids."""
    sources, centres = np.concatenate([links, links[:, ::-1]]).T
    return ops.Neighbourhoods.from_edges(sources, centres, n_users)


def mean_of_friends(links: NDArray[np.int32], n_users: int) -> ops.ConstantSum:
    """Multiplication by the row-normalised adjacency: (n_users, d) -> means over friends, 0 for users without any."""
    block = neighbourhoods(links, n_users).all()
    degrees = block.indptr.diff()
    return ops.ConstantSum(block, torch.repeat_interleave(1.0 / degrees.float(), degrees))


def batches(
    links: NDArray[np.int32], n_users: int, n_negatives: int, n_batches: int, rng: np.random.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Every friendship in both directions once, in random order, in batches of about the same size.

    Negatives are users drawn uniformly from all, friends and the user itself among them, as Pₙ of Eq. 9 is the same
    for every user. Yields (batch, 2) and (batch, n_negatives) int64; batches are empty where there are too few links.
    """
    directed = np.concatenate([links, links[:, ::-1]])
    for part in np.array_split(rng.permutation(len(directed)), n_batches):
        negatives = rng.integers(0, n_users, (len(part), n_negatives))
        yield torch.from_numpy(directed[part].astype(np.int64)), torch.from_numpy(negatives)


def friendship_loss(of_users: Tensor, of_others: Tensor, pairs: Tensor, negatives: Tensor) -> Tensor:
    """Mean over pairs (u, v) of −log σ(z_uᵀy_v) − Σ_n log σ(−z_uᵀy_n) (Eq. 9, whose negative term lost its minus).

    of_users, of_others: (n_users, d), z and y; the same for Eq. 9.
    pairs: (batch, 2) int64; negatives: (batch, Q) int64. The sum over Q draws estimates Q·E.
    Returns 0 where there are no pairs, still attached to the graph.
    """
    if not len(pairs):
        return of_users.sum() * 0.0
    users = of_users[pairs[:, 0]]
    negative = torch.einsum("bd,bqd->bq", users, of_others[negatives])
    positive = (users * of_others[pairs[:, 1]]).sum(1)
    return (softplus(-positive) + softplus(negative).sum(1)).mean()


STEPS_AT_ONCE = 1 << 22
"""Nodes of walks made at a time."""


def random_walks(
    graph: ops.Neighbourhoods, starts: NDArray[np.int64], length: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A walk of `length` nodes from each start, every step to a neighbour drawn uniformly: (n_starts, length).

    All walks take a step together. A walk that cannot leave its node goes on with -1.
    """
    indptr, neighbours = graph.indptr.numpy(), graph.sources.numpy()
    walks = np.full((len(starts), length), -1, np.int64)
    walks[:, 0] = starts
    moving = np.flatnonzero(np.diff(indptr)[starts] > 0)  # friendship is mutual: who left a node can leave the next
    for step in range(1, length):
        current = walks[moving, step - 1]
        walks[moving, step] = neighbours[rng.integers(indptr[current], indptr[current + 1])]
    return walks


def walks_of(
    links: NDArray[np.int32], n_users: int, walks: int, length: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int32]]:
    """So many walks from each user with friends, a block of starts at a time: (n_starts, length) each.

    Users start in random order, all of them once before any starts again.
    """
    graph = neighbourhoods(links, n_users)
    befriended = np.flatnonzero(np.diff(graph.indptr.numpy()))
    starts = np.concatenate([rng.permutation(befriended) for _ in range(walks)])
    at_once = max(STEPS_AT_ONCE // length, 1)
    for begin in range(0, len(starts), at_once):
        yield random_walks(graph, starts[begin : begin + at_once], length, rng).astype(np.int32)


def nearby_pairs(rows: NDArray[np.integer], window: int) -> NDArray[np.int64]:
    """Pairs of tokens at most `window` apart in one row: (n_pairs, 2), each in both orders; -1 is no token."""
    parts = []
    for distance in range(1, min(window, rows.shape[1] - 1) + 1):
        pairs = np.stack([rows[:, :-distance].ravel(), rows[:, distance:].ravel()], axis=1)
        pairs = pairs[(pairs >= 0).all(1)].astype(np.int64)
        parts += [pairs, pairs[:, ::-1]]
    return np.concatenate(parts) if parts else np.empty((0, 2), np.int64)


def cooccurrences(tokens: NDArray[np.integer], sequences: NDArray[np.int64], n: int, window: int) -> csr_array:
    """How often two tokens are near each other in one sequence: (n, n), symmetric, float64.

    tokens, sequences: (n_tokens,) a token, -1 for none, and the sequence that it is in; those of one lie together.
    A pair at distance t counts (window + 1 − t) / window: what skip-gram, which draws the width of each window
    uniformly up to `window`, sees on average.
    """
    total = csr_array((n, n))
    for distance in range(1, window + 1):
        together = sequences[distance:] == sequences[:-distance]
        left, right = tokens[:-distance][together], tokens[distance:][together]
        valid = (left >= 0) & (right >= 0)
        weights = np.full(valid.sum(), (window + 1 - distance) / window)
        total = total + coo_array((weights, (left[valid], right[valid])), shape=(n, n)).tocsr()
    return (total + total.T).tocsr()
