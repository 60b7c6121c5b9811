"""Gaussian noise on sums over neighbours in a user's behaviour graph: what a paper claims for it, and what follows.

Source: Hu and Fang, DIPSGNN, theorem 4.2 and its appendix B, after Sajadmanesh et al., "GAP: differentially private
graph neural networks with aggregation perturbation" (USENIX Security 2023); docs/methods.md §3 and §9.

A release is the pair A_out H + noise, A_in H + noise for one sequence: A_out[i, j] is how often item i is followed at
once by item j, A_in its transpose, every row of H has norm `clip`, and noise is independent N(0, σ²) in every entry.

The theorem takes sensitivity `clip` and T releases, one per propagation step: one entry of one of the matrices changes
by one. Removing a visit changes more. Let j be visited between i and k. Its transitions i -> j and j -> k go and
i -> k comes, so A_out H changes by h_k - h_j in row i and by -h_k in row j, at most √(4 + 1) `clip` in norm. A_in H
changes by h_i - h_j in row k and by -h_i in row j, as much again: together √10 `clip`, reached where h_i = h_k = -h_j.
Where items are equal, changes cancel: j equal to i or to k leaves one self-loop less, √2 `clip`, and so does a visit at
either end, which is in one transition. The same holds with one row per visit (each transition in one row of either
matrix), where the removed visit keeps its row, now zero.

It does not hold for sums that grow along a sequence with fresh noise in each: a transition then is in many rows. And H
is held constant: where it was trained on the same interactions, that is for another entry of the ledger to say.
"""

from __future__ import annotations

import math

from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.checks import check_delta, check_epsilon, check_finite

VISIT_SENSITIVITY = math.sqrt(10)
"""L2 sensitivity of one release, in units of the norm of H's rows, when a visit's transitions are removed or added and
the visit stays as a node without them."""


def epsilon(steps: int, clip: float, sigma: float, delta: float) -> float:
    """ε by theorem 4.2 of DIPSGNN: T C²/(2σ²) + C √(2T ln(1/δ))/σ, for one aggregation of T = `steps` steps.

    Args:
        steps: T; without any nothing is released.
        clip: C, the norm of every row; 0 releases noise alone.
        sigma: standard deviation of the noise.
        delta: failure probability of the same guarantee.

    Returns:
        0 where steps or clip is 0; otherwise infinity for sigma = 0.

    Raises:
        ValueError: a value is negative or not a finite number, or delta is not in (0, 1).
    """
    check_finite(steps=steps, clip=clip, sigma=sigma)
    check_delta(delta)
    if not steps or not clip:
        return 0.0
    if not sigma:
        return math.inf
    ratio = clip * math.sqrt(steps) / sigma
    return ratio * (ratio / 2 + math.sqrt(-2 * math.log(delta)))


def sigma(steps: int, clip: float, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise for which theorem 4.2 claims `epsilon`: the inverse of the function `epsilon`.

    Returns:
        0 where steps or clip is 0, since nothing is released.

    Raises:
        ValueError: epsilon is not a positive finite number, steps or clip is negative or not a finite number, or delta
            is not in (0, 1).
    """
    check_finite(steps=steps, clip=clip)
    check_delta(delta)
    check_epsilon(epsilon)
    # With x = C √T/σ the theorem reads x²/2 + x √(2L) = ε, L = ln(1/δ). Its positive root √(2L + 2ε) - √(2L), written
    # without the difference, which cancels for small ε:
    double = -2 * math.log(delta)
    return clip * math.sqrt(steps) * (math.sqrt(double) + math.sqrt(double + 2 * epsilon)) / (2 * epsilon)


def released_sigma(steps: int, clip: float, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise in the code that DIPSGNN's authors released: the square of `sigma`.

    That code multiplies N(0, 1) by σ² where the paper adds N(0, σ²). σ / C is the same for every C, so σ² / C grows
    with C: the smaller C, the less noise for its size, and the larger the ε of the theorem.
    """
    return sigma(steps, clip, epsilon, delta) ** 2


def rigorous_sigma(releases: int, clip: float, epsilon: float, delta: float) -> float:
    """Standard deviation of the noise with which `releases` releases are accounted at no more than `epsilon`.

    Neighbours are sequences of which one visit's transitions are removed; releases compose adaptively. R Gaussian
    releases are exactly one with a noise multiplier smaller by √R, whose (ε, δ) is known exactly (Balle and Wang,
    ICML 2018).

    Args:
        releases: pairs of matrices about the same sequence: propagation steps x (training epochs + inferences).
        clip: norm of every row.
        epsilon: total budget, all releases together.
        delta: failure probability of the same guarantee.

    Returns:
        0 where releases or clip is 0, since nothing is released.
    """
    from dp_accounting import get_sigma_gaussian

    check_finite(releases=releases, clip=clip)
    check_delta(delta)
    check_epsilon(epsilon)
    if not releases or not clip:
        return 0.0
    noise = VISIT_SENSITIVITY * clip * math.sqrt(releases) * float(get_sigma_gaussian(epsilon, delta))
    # The root is found within a tolerance, on either side; the accountant has the last word.
    more = 1e-12
    while (accounted := account([release_event(noise, clip, releases)], delta).epsilon) is None or accounted > epsilon:
        noise, more = noise * (1 + more), 2 * more
    return noise


def release_event(sigma: float, clip: float, releases: int) -> Event:
    """What `releases` releases with noise of standard deviation `sigma` are to ledger and accountant.

    The sensitivity is `VISIT_SENSITIVITY` x clip: neighbours are sequences of which one visit's transitions are
    removed. sigma = 0 is a release without protection, and recorded as that.
    """
    check_finite(sigma=sigma, clip=clip)
    if not clip or releases < 1:
        raise ValueError(f"clip must be positive and releases at least 1 (are {clip} and {releases})")
    if not sigma:
        return Event(kind="non-private", count=releases)
    return Event(kind="gaussian", parameters={"noise_multiplier": sigma / (VISIT_SENSITIVITY * clip)}, count=releases)
