"""Piecewise mechanism: one number in [-1, 1] under local differential privacy.

Source: Wang et al., "Collecting and analyzing multidimensional data with local differential privacy" (ICDE 2019);
Algorithm 1 and equations 12-14 of GERAI; docs/methods.md §1. In every formula t = e^(ε/2); all of them are written in
1/t, so that nothing overflows for large budgets and nothing cancels for small ones.

The proof is one for real numbers. Above ε = 73 or so the outer pieces have less probability than a double's 2^-53 and
are never drawn: a budget that large protects nothing, and the output is the input to all digits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.checks import check_epsilon, check_unit_interval


def bound(epsilon: float) -> float:
    """C = (t + 1)/(t - 1), the largest output (equation 12)."""
    check_epsilon(epsilon)
    return 1 / math.tanh(epsilon / 4)


def perturb(values: NDArray[np.floating], epsilon: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Perturb each value independently; unbiased, and each output is ε-locally differentially private.

    Args:
        values: any shape, in [-1, 1].
        epsilon: budget of each single value.

    Returns:
        float64 of the same shape, in [-C, C].

    Raises:
        ValueError: epsilon is not a positive finite number, or values are out of range (names column and row count).
    """
    check_epsilon(epsilon)
    epsilon = noise.budget(rng, epsilon)
    array = np.asarray(values, dtype=np.float64)
    n_rows, n_columns = (array.shape or (1,))[0], math.prod(array.shape[1:])
    check_unit_interval(array.reshape(n_rows, n_columns), [str(column) for column in range(n_columns)])
    limit, width = bound(epsilon), _inner_width(epsilon)
    half = (limit + 1) / 2
    inner = noise.uniform(rng, "which piece", array.shape) < _inner_probability(epsilon)
    position = noise.uniform(rng, "place-within-the-piece", array.shape)
    # The outer pieces, laid end to end, are C + 1 long; what lies beyond the left one skips the inner piece.
    outer = position * (limit + 1)
    outer += np.where(outer < half * (1 + array), 0.0, width) - limit
    result = np.where(inner, half * array - width / 2 + position * width, outer)
    result = noise.on_grid(rng, result, limit)
    return np.clip(result, -limit, limit)  # rounding may step over C by one unit in the last place


def log_density(outputs: NDArray[np.floating], x: float, epsilon: float, tolerance: float = 0.0) -> NDArray[np.float64]:
    """Log density of the mechanism's outputs for input x (equation 13); -inf outside [-C, C].

    Args:
        outputs: any shape.
        x: the input, in [-1, 1].
        tolerance: an output this close to a piece, as a share of C, counts as inside it: for outputs that were rounded.
    """
    check_epsilon(epsilon)
    outputs = np.asarray(outputs, dtype=np.float64)
    limit, width = bound(epsilon), _inner_width(epsilon)
    left = (limit + 1) / 2 * x - width / 2
    # p = (t² - t)/(2 (t + 1)) = t/2 · tanh(ε/4)
    log_p = epsilon / 2 - math.log(2) + math.log(math.tanh(epsilon / 4))
    slack = tolerance * limit
    inner = (outputs >= left - slack) & (outputs <= left + width + slack)
    return np.where(np.abs(outputs) > limit + slack, -np.inf, np.where(inner, log_p, log_p - epsilon))


def _inner_width(epsilon: float) -> float:
    """C - 1 = 2/(t - 1), the length of [l(x), r(x)]."""
    return 2 * math.exp(-epsilon / 2) / -math.expm1(-epsilon / 2)


def _inner_probability(epsilon: float) -> float:
    """t/(t + 1), the probability of [l(x), r(x)]."""
    return 1 / (1 + math.exp(-epsilon / 2))
