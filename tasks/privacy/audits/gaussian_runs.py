"""What one run with many canaries shows of a mechanism that is Gaussian: two lower bounds on μ, and so on ε.

`f_dp` holds for every mechanism with the trade-off function of a Gaussian one, whatever the law of scores (Mahloujifar,
Melis and Chaudhuri, "Auditing f-differential privacy in one run", arXiv 2410.22235). `separation` takes scores as
Gaussian with one deviation, so it is an estimate at a confidence, and no proof. μ: sensitivity over standard deviation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event

STEPS = 20
"""Of bisection."""
LARGEST = 100.0
"""μ up to which is searched."""


def refuted(m: int, r: int, correct: int, mu: float, alpha: float) -> bool:
    """Whether so many right guesses of r among m canaries have a probability of at most alpha under μ-GDP."""
    if correct <= 0:
        return False
    right, wrong = alpha * correct / m, alpha * (r - correct) / m
    for i in range(correct - 1, -1, -1):
        wider = max(wrong, float(ndtr(ndtri(right) - mu)))
        if wider == wrong:
            break
        right = min(1.0, right + (i / (r - i)) * (wider - wrong))
        wrong = wider
        if right + wrong > r / m:
            return True
    return right + wrong > r / m


def f_dp(m: int, r: int, correct: int, confidence: float) -> float:
    """The largest μ that so many right guesses refute; 0 where they refute none."""
    alpha = 1 - confidence
    low, high = 0.0, LARGEST
    if not refuted(m, r, correct, low, alpha):
        return 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(m, r, correct, middle, alpha) else (low, middle)
    return low


def separation(scores: NDArray[np.float64], included: NDArray[np.bool_], confidence: float) -> float:
    """Distance of the means of scores, in and out, in units of their deviation: a lower estimate, inf without noise.

    Half of the error is for the deviation, of which the upper end of its interval is taken, and half for the means.
    """
    inside, outside = scores[included], scores[~included]
    if min(len(inside), len(outside)) < 2:
        return 0.0
    degrees, error = len(scores) - 2, (1 - confidence) / 2
    squares = float(((inside - inside.mean()) ** 2).sum() + ((outside - outside.mean()) ** 2).sum())
    deviation = math.sqrt(squares / chi2.ppf(error, degrees))
    margin = -float(ndtri(error)) * deviation * math.sqrt(1 / len(inside) + 1 / len(outside))
    distance = float(inside.mean() - outside.mean()) - margin
    if distance <= 0:
        return 0.0
    return distance / deviation if deviation > 1e-9 * distance else math.inf


def epsilon_of(mu: float, delta: float) -> float:
    """The ε at δ of a Gaussian mechanism of that μ."""
    if mu <= 0 or math.isinf(mu):
        return max(0.0, mu)
    return float(account([Event(kind="gaussian", parameters={"noise_multiplier": 1 / mu})], delta).epsilon or 0.0)
