"""The two sums over users that a release is made of, and how far one user moves them (proofs: docs/release.md).

A user's weight is rounded down to a multiple of 2^-`BITS`, in integers. So the bounds hold exactly, and sums in double
precision are exact: they do not depend on the order of users, nor on how these are split into parts.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Rows: TypeAlias = csr_array
"""Users x items, 1 where a user has an item."""
BITS = 24
MOST_USERS = 2**28
"""Below, no sum loses a bit."""
BLOCK = 4096
"""Users whose rows are dense at a time."""


def rows_of(users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int) -> Rows:
    """Users x catalogue from (n,) pairs by number, repeated pairs once.

    A row depends on that user's interactions alone: no one is dropped for others' sake, and no item for being rare.
    """
    keys = users.astype(np.int64) * n_items
    keys += items
    keys.sort()  # np.unique takes ten times as long
    keys = keys[np.diff(keys, prepend=-1) > 0]
    starts = np.searchsorted(keys, np.arange(n_users + 1) * n_items)
    keys %= n_items
    return csr_array((np.ones(len(keys), np.int8), keys.astype(np.int32), starts), shape=(n_users, n_items))


def counts(rows: Rows, m: int) -> NDArray[np.float64]:
    """Σ_u v_u x_u with v_u = min(1, √(m/n_u)): (n_items,)."""
    return np.asarray(rows.T @ _weights(_lengths(rows), m), np.float64)


def counts_sensitivity(m: int) -> float:
    """√m: one user's row, added or removed, moves `counts` by no more in L2, and by √m from m items on."""
    return _root(m)


def pairs(rows: Rows, m: int) -> NDArray[np.float64]:
    """Σ_u w_u x_ui x_uj for i < j, row by row, with w_u = min(1, √(m (m - 1) / (n_u (n_u - 1)))).

    Args:
        rows: users' items of the head alone.
    """
    n = _lengths(rows)
    weights, total = _weights(n * (n - 1), m * (m - 1)), np.zeros((rows.shape[1],) * 2)
    used = np.flatnonzero(n > 1)
    for start in range(0, len(used), BLOCK):
        block = used[start : start + BLOCK]
        dense = rows[block].toarray().astype(np.float64)
        total += (dense * weights[block, None]).T @ dense
    return total[np.triu_indices(len(total), 1)]


def pairs_sensitivity(m: int) -> float:
    """√(m (m - 1) / 2): one user's row moves `pairs` by no more in L2, and by as much from m items of the head on."""
    return _root(m * (m - 1) / 2)


def squared(upper: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Pairs as a symmetric matrix (size, size) with nothing on its diagonal."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = upper
    return matrix + matrix.T


def _lengths(rows: Rows) -> NDArray[np.int64]:
    if rows.shape[0] > MOST_USERS:
        raise ValueError(f"at most {MOST_USERS:,} users (are {rows.shape[0]:,})")
    if rows.nnz and not (rows.data == 1).all():
        raise ValueError("interactions are 0 or 1; a pair that is repeated counts once")
    return np.diff(rows.indptr).astype(np.int64)


def _weights(sizes: NDArray[np.int64], most: int) -> NDArray[np.float64]:
    """min(1, √(most / size)), rounded down: weight² x size <= most holds exactly."""
    distinct, where = np.unique(sizes, return_inverse=True)
    scaled = [math.isqrt((most << 2 * BITS) // size) if size > most else 1 << BITS for size in distinct.tolist()]
    return np.array(scaled, np.float64)[where] / 2.0**BITS


def _root(value: float) -> float:
    """A square root, rounded up where it is no double."""
    root = math.sqrt(value)
    return root if root * root == value and root.is_integer() else math.nextafter(root, math.inf)
