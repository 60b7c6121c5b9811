"""Friendships as training examples and as a graph: the loss that brings friends together (DP-CroSUE, Eq. 9)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from tasks.graph import ops


def neighbourhoods(links: NDArray[np.int32], n_users: int) -> ops.Neighbourhoods:
    """The in-neighbours of every user are all friends, in the order of their ids."""
    sources, centres = np.concatenate([links, links[:, ::-1]]).T
    order = np.lexsort((sources, centres))
    indptr = np.zeros(n_users + 1, np.int64)
    np.cumsum(np.bincount(centres, minlength=n_users), out=indptr[1:])
    return ops.Neighbourhoods(torch.from_numpy(indptr), torch.from_numpy(sources[order].astype(np.int64)))


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
