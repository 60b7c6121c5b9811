"""Sums over ratings in one pass each: nothing of size (n_ratings, K) is made on the way.

users, items: (n,) of each rating; values: (n,) what is rated, or expected; vectors: (n_users, K) u; shared:
(n_items, K) v. What is filled or added to comes last. All numbers are float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tasks.core.compiled import compiled

ROUNDING = np.float32(1e-3)
"""Variance that is added to that of noise: what is expanded and rounded is never exact."""
_HALF, _TWO, _FOUR = np.float32(0.5), np.float32(2), np.float32(4)


@compiled
def errors(users: Any, items: Any, values: Any, vectors: Any, shared: Any, out: Any) -> None:
    """uᵀv - r."""
    for n in range(len(users)):
        u, v, error = vectors[users[n]], shared[items[n]], -values[n]
        for k in range(len(u)):
            error += u[k] * v[k]
        out[n] = error


@compiled
def descent(users: Any, items: Any, values: Any, vectors: Any, shared: Any, gradient: Any) -> float:
    """Add Σ 2 (uᵀv - r) v to the gradient of each user, (n_users, K); the sum of squared errors."""
    squares = 0.0
    for n in range(len(users)):
        u, v, total, error = vectors[users[n]], shared[items[n]], gradient[users[n]], -values[n]
        for k in range(len(u)):
            error += u[k] * v[k]
        squares += error * error
        for k in range(len(u)):
            total[k] += _TWO * error * v[k]
    return squares


@compiled
def submissions(
    users: Any, items: Any, values: Any, vectors: Any, shared: Any, positions: Any, watched: Any, sums: Any
) -> None:
    """Add 2 (uᵀv - r) u to (n_items, K) sums, and to (n_watched, K) those at the ascending positions that are watched.

    What `watched` has already, its noise, is added to the sums, too.
    """
    row = 0
    for n in range(len(users)):
        u, v, total, error = vectors[users[n]], shared[items[n]], sums[items[n]], -values[n]
        for k in range(len(u)):
            error += u[k] * v[k]
        for k in range(len(u)):
            total[k] += _TWO * error * u[k]
        if row < len(positions) and positions[row] == n:
            single = watched[row]
            for k in range(len(u)):
                total[k] += single[k]
                single[k] += _TWO * error * u[k]
            row += 1


@compiled
def information_gradient(
    users: Any,
    items: Any,
    values: Any,
    vectors: Any,
    shared: Any,
    sent: Any,
    variance: Any,
    mixing: Any,
    precisions: Any,
    by_user: Any,
    by_rating: Any,
) -> None:
    """Add one iteration's W to `precisions` and JᵀW (s - 2eu) but for A to `by_user`; fill its other part, `by_rating`.

    sent: (n, K) submissions s; variance: (n,) of their noise over h; mixing: h (n_items, K), or None.
    """
    weighted = np.empty(vectors.shape[1], np.float32)
    for n in range(len(users)):
        u, v, total, error = vectors[users[n]], shared[items[n]], by_user[users[n]], -values[n]
        for k in range(len(u)):
            error += u[k] * v[k]
        along = np.float32(0)
        for k in range(len(u)):
            law = variance[n] if mixing is None else variance[n] * mixing[items[n], k]
            precision = np.float32(1) / (law + ROUNDING)
            precisions[n, k] += precision
            weighted[k] = precision * (sent[n, k] - _TWO * error * u[k])
            along += u[k] * weighted[k]
        for k in range(len(u)):
            total[k] += _TWO * (error * weighted[k] + along * v[k])
        by_rating[n] = -_TWO * along


@compiled
def information_matrices(
    users: Any, items: Any, values: Any, vectors: Any, shared: Any, precisions: Any, total: Any, mixed: Any, square: Any
) -> None:
    """Add M to (n_users, K, K) `total`; fill each rating's part of J apart from A: mixed (n, K) and its square (n,)."""
    size = vectors.shape[1]
    half = np.empty(size, np.float32)
    for n in range(len(users)):
        u, v, matrix, error = vectors[users[n]], shared[items[n]], total[users[n]], -values[n]
        for k in range(size):
            error += u[k] * v[k]
        along = np.float32(0)
        for k in range(size):
            along += u[k] * u[k] * precisions[n, k]
        for k in range(size):
            weighted = error * precisions[n, k] * u[k]
            half[k] = _FOUR * (weighted + _HALF * along * v[k])
            mixed[n, k] = -_FOUR * (weighted + along * v[k])
            matrix[k, k] += _FOUR * error * error * precisions[n, k]
        square[n] = _FOUR * along
        for k in range(size):
            for j in range(size):
                matrix[k, j] += half[k] * v[j] + half[j] * v[k]


@compiled
def squares(users: Any, items: Any, shared: Any, total: Any) -> None:
    """Add Σ vvᵀ to (n_users, K, K) `total`."""
    for n in range(len(users)):
        v, matrix = shared[items[n]], total[users[n]]
        for k in range(len(v)):
            for j in range(len(v)):
                matrix[k, j] += v[k] * v[j]


@compiled
def derivative_step(
    users: Any, items: Any, shared: Any, curvature: Any, regularization: Any, rate: Any, derivative: Any
) -> None:
    """A - γ (2λA + 2 A Σ vvᵀ - 2v) in place of A, (n, K); curvature: (n_users, K, K) Σ vvᵀ."""
    change = np.empty(shared.shape[1], np.float32)
    for n in range(len(users)):
        row, v, matrix = derivative[n], shared[items[n]], curvature[users[n]]
        for j in range(len(v)):
            change[j] = regularization * row[j] - v[j]
        for k in range(len(v)):
            for j in range(len(v)):
                change[j] += row[k] * matrix[k, j]
        for j in range(len(v)):
            row[j] -= _TWO * rate * change[j]


@compiled
def derivative_projection(users: Any, vectors: Any, derivative: Any) -> None:
    """A (I - uuᵀ/‖u‖²)/‖u‖ in place of A, (n, K), where u is longer than 1."""
    for n in range(len(users)):
        u, row, along, norm = vectors[users[n]], derivative[n], np.float32(0), np.float32(0)
        for k in range(len(u)):
            along += row[k] * u[k]
            norm += u[k] * u[k]
        if norm > 1:
            for k in range(len(u)):
                row[k] = (row[k] - along / norm * u[k]) / np.sqrt(norm)


@compiled
def pair_products(lefts: Any, rights: Any, left: Any, derivative: Any, mixed: Any, square: Any, out: Any) -> None:
    """Add to H of pairs of ratings, in double precision; left: (n, K) A M and the mixed term."""
    for n in range(len(lefts)):
        i, j, total = lefts[n], rights[n], np.float32(0)
        for k in range(left.shape[1]):
            total += left[i, k] * derivative[j, k] + derivative[i, k] * mixed[j, k]
        out[n] += total + square[i] if i == j else total
