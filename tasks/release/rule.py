"""The rule that sets a release's parameters from the noisy counts and public numbers alone (docs/release.md).

`n`: users, as released or public. `sigma`: σ, the standard deviation of noise that spends the whole budget on one sum
with sensitivity 1. `rho`: ρ, shares of the budget, of counts and of pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

COUNTED = 10
"""Items of a user whose counts are not scaled down (m_c)."""
PAIRED = 2
"""The same of pairs (m)."""
FEWEST, MOST = 100, 1200
"""Items of a head."""
RANK = 32
"""Dimensions of models, at most."""
COUNTS_ALONE = 1.6
"""With less signal in the smallest head, where chance alone gives 1.1 to 1.6, the whole budget goes to counts."""
SIGNAL = 5.0
"""Of the pairs' largest eigenvalue, in units of the noise's, what a head is reduced for."""
SHARE, HEAD, GROWTH = 8.0, 250, 0.3
"""Of counts, times the root of n/σ; items of a head at n/σ = 1650, and the power of n/σ by which these grow."""
BLEND = 0.1
"""Share of counts in a score by principal directions, five times that where the second of them is weak."""


def share_of_counts(n: float, sigma: float) -> float:
    """ρ_c of the budget that counts and pairs share."""
    return float(np.clip(SHARE / math.sqrt(max(n / sigma, 1e-9)), 0.1, 0.3))


def signal(counts: NDArray[np.float64], n: float, sigma: float, size: int, rho: tuple[float, float]) -> float:
    """The predicted largest eigenvalue of the pairs of the `size` largest noisy counts, in units of its noise.

    counts: (n_items,) noisy.
    """
    head = np.sort(counts)[::-1][:size]
    total, (rho_counts, rho_pairs) = float(head.sum()), rho
    if total <= 0:
        return 0.0
    mean = total / n
    concentration = max(0.0, float((head**2).sum()) - COUNTED * size * sigma**2 / rho_counts) / total**2
    return math.sqrt(2) * n * mean**2 / (mean + 1.5) * concentration * math.sqrt(rho_pairs / size) / sigma


def head_size(counts: NDArray[np.float64], n: float, sigma: float, rho: tuple[float, float]) -> int:
    """How many of the items with the largest noisy counts, (n_items,), have pairs; 0 for counts alone.

    Fewer where their pairs would drown in noise.
    """
    size = int(np.clip(HEAD * (n / sigma / 1650) ** GROWTH, FEWEST, MOST))
    while size > FEWEST and signal(counts, n, sigma, min(size, len(counts)), rho) < SIGNAL:
        size = max(FEWEST, int(size * 0.95))
    size = min(size, len(counts))
    return size if size > 1 and signal(counts, n, sigma, size, rho) >= COUNTS_ALONE else 0
