"""The clipping bound that DP-VAE calls optimal: it balances what clipping cuts off and what noise adds.

Source: Fang, Du and Wu (Knowledge-Based Systems 248, 2022), Eq. (20) and Algorithm 2, for one example per user:
H(S) = c S + mean_k |g_k|₁/‖g_k‖₂ · max(0, ‖g_k‖₂ - S), with c the expected L1 norm of the noise for S = 1.

H is convex and linear between neighbouring norms, with slope c - (1/n) Σ_{‖g_k‖ > S} |g_k|₁/‖g_k‖₂: the smallest norm
at which that slope is no longer negative is the minimum, found by bisection over the sorted norms.

The gradients are read as they are: whatever is clipped at this bound is private to no finite epsilon, by itself.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tasks.privacy.checks import check_budget, check_delta

Floats = NDArray[np.floating]


def sigma(epsilon: Floats | float, delta: float) -> NDArray[np.float64]:
    """σ_k/S = √(2 log(1.25/δ))/ε_k: standard deviation of a user's noise per unit of clipping bound, for one step."""
    check_delta(delta)
    budgets = np.asarray(epsilon, np.float64)
    check_budget(float(budgets.min()))
    return math.sqrt(2 * math.log(1.25 / delta)) / budgets


def sigma_of_rounds(epsilon: Floats | float, delta: float, share: float, rounds: int) -> NDArray[np.float64]:
    """σ_k/S = q √(JT log(1/δ))/ε_k of Theorem 4, whose constant c₂ the paper does not name: 1 here.

    Args:
        share: q, of the users in a step.
        rounds: JT, examples of a user in all steps.
    """
    return sigma(epsilon, delta) * share * math.sqrt(rounds * math.log(1 / delta) / (2 * math.log(1.25 / delta)))


def noise_cost(sigmas: Floats, n_parameters: int) -> float:
    """c: the mean over users of the expected L1 norm of their noise for S = 1, l √(2/π) σ_k/S.

    Args:
        sigmas: (n,) of the users in the step, see `sigma`.
        n_parameters: l, the number of values in a gradient.
    """
    return n_parameters * math.sqrt(2 / math.pi) * float(np.mean(sigmas))


def optimal_clip(norms: Floats, l1_norms: Floats, cost: float) -> float:
    """The norm among `norms` that minimises H; of several the smallest.

    Sorting aside, O(log n) steps.

    Args:
        norms, l1_norms: (n,) L2 and L1 norms of the users' gradients.
        cost: c, see `noise_cost`.
    """
    if not len(norms):
        raise ValueError("no gradient to choose a clipping bound from")
    if not (np.isfinite(norms).all() and np.isfinite(l1_norms).all()):
        raise ValueError("a gradient is not finite; lower the learning rate")
    order = np.argsort(norms)
    sorted_norms = np.asarray(norms, np.float64)[order]
    l1_sorted = np.asarray(l1_norms, np.float64)[order]
    ratios = np.divide(l1_sorted, sorted_norms, out=np.zeros(len(norms)), where=sorted_norms > 0)
    above = np.append(np.cumsum(ratios[::-1])[::-1], 0.0)  # above[i]: of the i-th smallest and all larger ones
    low, high = 0, len(norms) - 1  # the slope right of the largest norm is c, never negative
    while low < high:
        middle = (low + high) // 2
        if cost * len(norms) >= above[middle + 1]:
            high = middle
        else:
            low = middle + 1
    return float(sorted_norms[low])
