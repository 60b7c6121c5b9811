"""Auditing training by one run of it: a lower bound on epsilon from guesses who of many canaries was in the data.

Source: Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run" (NeurIPS 2023), Theorem 5.2 and the
p-value of its appendix D. Each of m canaries is in the training data with probability 1/2, independently; an auditor
who sees what training released guesses for some of them whether they were, and abstains from the others. If training
is (ε, δ)-DP for one canary in or out, the number of right guesses among r is no larger than a binomial variable with
r trials of probability e^ε/(1 + e^ε), but for a correction of order m δ. So many right guesses refute small ε.

The bound holds for whatever auditor, however clever or lazy: one that guesses badly proves little. A low bound does
not show privacy; with r guesses nothing above `provable` can be proved at all. Of canaries with equal scores only some
are guessed: those about which the guess is wrong come first, so the order of canaries proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

PRECISION = 1e-6
"""Of the bound; it is on the safe side."""


class OneRun(NamedTuple):
    """What one training run shows about its epsilon."""

    epsilon: float
    """The run's epsilon is at least this, at the stated confidence; 0 where nothing was found."""
    provable: float
    """The bound if all guesses had been right."""
    confidence: float
    canaries: int
    guesses: int
    correct: int


def audit(
    scores: NDArray[np.floating], included: NDArray[np.bool_], n_guesses: int, delta: float, confidence: float
) -> OneRun:
    """The bound that guesses prove: in for the highest scores, out for as many of the lowest, or one less if odd.

    Args:
        scores: (m,) the auditor's belief that a canary was in the training data; they may depend on everything that
            was released, not on `included`.
        included: (m,) whether it was; booleans.
        n_guesses: how many guesses are made, chosen before `included` and the scores were looked at: the best of
            several numbers would need a correction.

    Raises:
        ValueError: see `count_correct` and `lower_bound`.
    """
    correct = count_correct(scores, included, (n_guesses + 1) // 2, n_guesses // 2)
    m = len(scores)
    return OneRun(
        epsilon=lower_bound(m, n_guesses, correct, delta, confidence),
        provable=lower_bound(m, n_guesses, n_guesses, delta, confidence),
        confidence=confidence,
        canaries=m,
        guesses=n_guesses,
        correct=correct,
    )


def count_correct(scores: NDArray[np.floating], included: NDArray[np.bool_], n_in: int, n_out: int) -> int:
    """Right guesses if the `n_in` highest scores are guessed in and the `n_out` lowest out, ties against the auditor.

    An auditor who would rather have ties broken at random adds noise to the scores that does not depend on `included`.

    Args:
        scores, included: as in `audit`.

    Raises:
        ValueError: scores are not 1-D or not finite, `included` is not as many booleans, or there are too few canaries.
    """
    values, member = np.asarray(scores, dtype=np.float64), np.asarray(included)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("scores of canaries must be one finite number each")
    if member.dtype != np.bool_ or member.shape != values.shape:
        raise ValueError(f"{values.shape} scores need as many booleans (have {member.shape} of {member.dtype})")
    if n_in < 0 or n_out < 0 or n_in + n_out > len(values):
        raise ValueError(f"the number of guesses must be in 0..{len(values)}, that of canaries (is {n_in + n_out})")
    high, low = np.lexsort((member, -values))[:n_in], np.lexsort((~member, values))[:n_out]
    return int(member[high].sum() + (~member[low]).sum())


def lower_bound(m: int, r: int, correct: int, delta: float, confidence: float) -> float:
    """The largest epsilon that so many right guesses refute: 0 where they refute none.

    Args:
        m: canaries, those without a guess too.
        r: guesses.
        correct: right ones among them.
        delta: the delta at which epsilon is bounded.
        confidence: probability, over which canaries were in, with which the bound holds; 1/2 or more.

    Raises:
        ValueError: not 0 <= correct <= r <= m; delta outside [0, 1); confidence outside [1/2, 1).
    """
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be in [1/2, 1) (is {confidence})")
    error = 1 - confidence

    # The p-value is a maximum over terms (1 - c) P[B >= v] + c P[B >= v - i]. With c <= 1 such a term grows with
    # epsilon; with c > 1 it may fall, but only where the mode of B has passed v - i, so that P[B >= v - i], and with
    # it the term, is 1/2 or more. So an error of 1/2 or less is crossed once.
    if p_value(m, r, correct, 0.0, delta) >= error:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(m, r, correct, high, delta) < error:
        low, high = high, 2 * high
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(m, r, correct, middle, delta) < error else (low, middle)
    return low


def p_value(m: int, r: int, correct: int, epsilon: float, delta: float) -> float:
    """Upper bound on the probability of `correct` or more right guesses if training is (epsilon, delta)-DP.

    P[B >= v] + 2 m δ max_i P[v > B >= v - i] / i with B binomial of r trials; arguments as in `lower_bound`.

    Raises:
        ValueError: see `lower_bound`; epsilon is negative or not finite.
    """
    if not 0 <= correct <= r <= m:
        raise ValueError(f"need 0 <= correct <= guesses <= canaries (are {correct}, {r} and {m})")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1) (is {delta})")
    if not (np.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon must be a finite number, 0 or more (is {epsilon})")
    right = 1 / (1 + np.exp(-epsilon))
    tail = float(stats.binom.sf(correct - 1, r, right))
    if delta == 0 or correct == 0:
        return min(tail, 1.0)
    more = np.arange(1, correct + 1)
    below = np.cumsum(stats.binom.pmf(correct - more, r, right))
    return min(tail + 2 * m * delta * float((below / more).max()), 1.0)
