"""Optimised unary encoding: a one-hot block under local differential privacy.

Source: Wang et al., "Locally differentially private protocols for frequency estimation" (USENIX Security 2017);
Algorithm 2 of GERAI (which prints "0.5 if c' = 1" and means c = 1); docs/methods.md §1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.checks import check_epsilon, check_one_hot

TRUE_BIT = 0.5
"""P[output bit = 1 | input bit = 1], at any budget."""


def false_bit(epsilon: float) -> float:
    """P[output bit = 1 | input bit = 0] = 1/(e^ε + 1)."""
    check_epsilon(epsilon)
    inverse = math.exp(-epsilon)
    return inverse / (1 + inverse)


def perturb(onehot: NDArray[np.floating], epsilon: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """Perturb every bit independently; each row's output is ε-locally differentially private.

    Two inputs differ in two bits, and the two ratios multiply to at most (1 - q)/q = e^ε with q = 1/(e^ε + 1).

    Args:
        onehot: (n_rows, n_categories), one 1 per row, all else 0.
        epsilon: budget of each row.

    Returns:
        (n_rows, n_categories) float32 of 0 and 1, any number of 1s per row.

    Raises:
        ValueError: epsilon is not a positive finite number, or rows are not one-hot (names the row count).
    """
    check_epsilon(epsilon)
    block = np.asarray(onehot)
    check_one_hot(block, "block")
    epsilon = noise.budget(rng, epsilon)
    ones = np.where(block == 1, TRUE_BIT, false_bit(epsilon))
    return (noise.uniform(rng, "bits", block.shape) < ones).astype(np.float32)


def log_probability(outputs: NDArray[np.floating], category: int, epsilon: float) -> NDArray[np.float64]:
    """Log probability of each output row when the input's 1 is at `category`: (n_rows,)."""
    check_epsilon(epsilon)
    log_one_minus_q = -math.log1p(math.exp(-epsilon))
    ones = outputs.sum(axis=1, dtype=np.float64) - outputs[:, category]
    zeros = outputs.shape[1] - 1 - ones
    return math.log(TRUE_BIT) + ones * (log_one_minus_q - epsilon) + zeros * log_one_minus_q  # type: ignore[no-any-return]  # numpy's types say Any here
