"""Numbers that someone guesses, measured: values that are a known slope times the number, and noise.

For attackers who get messages about ratings (`reconstruction`, `replay`). Generalised least squares, and the precision
of a normal distribution: textbooks. Shapes: n numbers, K values of each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DRIFTS = (1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""Variances of what values are off besides their noise: what `likeliest` chooses from."""


def weigh(guess: Floats, doubt: Floats | float, precision: Floats, weighted: Floats) -> tuple[Floats, Floats]:
    """A guess and a measurement of each number, by precision; and the variance that is left: (n,) each.

    Without any precision that is the guess, bit for bit.

    Args:
        guess, doubt: its mean and variance.
        precision, weighted: of the measurement, and its precision times what was measured.
    """
    left = 1 + doubt * precision
    return guess + doubt * (weighted - precision * guess) / left, doubt / left


def log_likelihood(values: Floats, slopes: Floats, guess: Floats, doubt: Floats | float, variances: Floats) -> float:
    """Mean logarithm of the density of each number's values, but for a constant.

    Args:
        values, slopes: (n, K).
        guess, doubt: mean and variance of the numbers, normal.
        variances: (n, K) of the noise, normal and independent; values with infinite ones are left out.
    """
    logarithms = np.log(np.where(np.isfinite(variances), variances, 1)).sum(axis=1)
    off, precise = values - slopes * np.asarray(guess)[:, None], slopes / variances
    inflation = 1 + doubt * (slopes * precise).sum(axis=1)
    squares = (off**2 / variances).sum(axis=1) - doubt * (off * precise).sum(axis=1) ** 2 / inflation
    return float(-0.5 * np.mean(logarithms + np.log(inflation) + squares))


def likeliest(
    values: Floats, slopes: Floats, guess: Floats, doubt: Floats | float, variances: Floats, drifts: tuple[float, ...]
) -> float:
    """The drift that, added to the variances, makes the values likeliest; the arguments are `log_likelihood`'s.

    Raises:
        ValueError: a drift is not positive, or there is none.
    """
    if not drifts or not min(drifts) > 0:
        raise ValueError(f"drifts must be positive, not {drifts}")
    return max(drifts, key=lambda drift: log_likelihood(values, slopes, guess, doubt, variances + drift))
