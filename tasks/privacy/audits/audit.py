"""Auditing by attack: a lower bound on epsilon, with a stated confidence, from samples of a mechanism's output.

A mechanism that is (ε, δ)-DP satisfies P[S | a] <= e^ε P[S | b] + δ for every event S and all neighbouring inputs a, b.
So any event whose two probabilities are estimated gives a lower bound on ε. The event is chosen on one half of the
samples and judged on the other with Clopper-Pearson intervals, so that choosing does not spoil the confidence.
Sources: Ding et al., "Detecting violations of differential privacy" (CCS 2018); Jagielski et al., "Auditing
differentially private machine learning" (NeurIPS 2020); docs/methods.md §9.

Of Gaussian noise the same two probabilities bound μ, its sensitivity over its deviation, by Φ⁻¹(P[S | a]) less
Φ⁻¹(P[S | b]): likely events show it, whose ratio is far below e^ε (Nasr et al., "Tight auditing of differentially
private machine learning", USENIX Security 2023).

A low bound does not show privacy: with n samples nothing above `Audit.provable` can be proved at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 32
"""Most bins into which the statistic is cut before an event is chosen as a union of them: with many more, the choice is
one of chance."""
OFTEN = 10
"""A value that is seen so often has a bin of its own, up to as many values as there are bins."""

ROUNDED = 1e-6
"""By how much of itself an accounted ε may be above what is claimed."""
Verdict = Literal["consistent", "refuted", "inconclusive"]


class Audit(NamedTuple):
    """What samples show about epsilon."""

    epsilon: float
    """The mechanism's epsilon is at least this, at the stated confidence; 0 where nothing was found."""
    provable: float
    """The largest bound that this many samples could have shown, against a mechanism that hides nothing."""
    confidence: float
    samples: int
    """Of each input; half of them chose the event, half judged it."""
    hits: tuple[int, int] = (0, 0)
    """How often the event was seen by the judging halves: for the input that makes it likelier, and for the other."""


def audit(
    samples_a: NDArray[np.number],
    samples_b: NDArray[np.number],
    confidence: float,
    delta: float = 0.0,
    *,
    gaussian: bool = False,
) -> Audit:
    """Lower bound on the epsilon of a mechanism from independent outputs for two neighbouring inputs.

    Any statistic of the outputs may be passed in place of the outputs (a bound for it holds for the mechanism, by
    post-processing); the log-likelihood ratio loses nothing.

    Args:
        samples_a, samples_b: (n,) outputs, or a statistic of them, for input a and for input b.
        confidence: probability, over the samples, with which the bound holds.
        delta: the delta at which epsilon is bounded.
        gaussian: bound the epsilon of the Gaussian mechanism that hides least of what the samples allow. A larger one
            than claimed refutes that the claim is met by Gaussian noise.

    Raises:
        ValueError: fewer than 4 samples, arrays that are not 1-D of equal length, NaN among them, or a confidence or
            delta outside (0, 1) and [0, 1).
    """
    a, b = np.asarray(samples_a, dtype=np.float64), np.asarray(samples_b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 4:
        raise ValueError(f"audit needs two 1-D arrays of equal length, 4 or more (have {a.shape} and {b.shape})")
    if np.isnan(a).any() or np.isnan(b).any():
        raise ValueError(f"audit: {int(np.isnan(a).sum() + np.isnan(b).sum())} of {2 * len(a)} samples are NaN")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1) (is {confidence})")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1) (is {delta})")
    half = len(a) // 2
    bins_a, bins_b = _bin(a, b, half)
    n_bins = int(max(bins_a.max(), bins_b.max())) + 1
    chosen, judged = [
        (np.bincount(bins_a[part], minlength=n_bins), np.bincount(bins_b[part], minlength=n_bins))
        for part in (slice(0, half), slice(half, 2 * half))
    ]

    def bound(more: NDArray[np.integer], less: NDArray[np.integer]) -> NDArray[np.float64]:
        if gaussian:
            return lower_bound_of_mu(more, less, half, confidence)
        return lower_bound(more, less, half, confidence, delta)

    event, swapped = _choose(*chosen, bound)
    hits = [int(counts[event].sum()) for counts in judged]
    more, less = reversed(hits) if swapped else hits
    epsilon, provable = (max(0.0, float(value)) for value in bound(np.array([more, half]), np.array([less, 0])))
    if gaussian:
        from tasks.privacy.audits.gaussian_runs import epsilon_of

        epsilon, provable = epsilon_of(epsilon, delta), epsilon_of(provable, delta)
    return Audit(epsilon, provable, confidence, len(a), (more, less))


def lower_bound(
    more: NDArray[np.integer], less: NDArray[np.integer], n: int, confidence: float, delta: float = 0.0
) -> NDArray[np.float64]:
    """log((p - δ)/q) with p the lower end of `more` of n and q the upper end of `less` of n; -inf where p <= δ.

    Each end is a one-sided Clopper-Pearson bound at half of the error, so both hold together at `confidence`.
    """
    low, high = _ends(more, less, n, confidence)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def lower_bound_of_mu(
    more: NDArray[np.integer], less: NDArray[np.integer], n: int, confidence: float
) -> NDArray[np.float64]:
    """Φ⁻¹(p) - Φ⁻¹(q) with p and q as in `lower_bound`: the μ of a mechanism with Gaussian noise, or less."""
    from scipy.special import ndtri

    low, high = _ends(more, less, n, confidence)
    return np.where((low > 0) & (high < 1), ndtri(low) - ndtri(high), -math.inf)


def _ends(
    more: NDArray[np.integer], less: NDArray[np.integer], n: int, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from scipy.special import betaincinv  # takes a quarter of a second, and pages compute no bound

    error = (1 - confidence) / 2
    low = np.where(more > 0, betaincinv(np.maximum(more, 1), n - more + 1, error), 0.0)
    # betaincinv needs a positive second argument; n of n has the upper end 1
    return low, np.where(less < n, betaincinv(less + 1, np.maximum(n - less, 1), 1 - error), 1.0)


def verdict(audited: float, claimed: float, accounted: float | None, controls: Sequence[float] = ()) -> Verdict:
    """What an audit says of a claim.

    `refuted`: the claim is false at the stated confidence. `consistent`: it is not refuted, no more is accounted than
    is claimed, and the same audit refutes the claim of each control. `inconclusive`: there is no control, or one that
    the audit does not refute, or more than the claim is accounted.

    Args:
        audited, claimed, accounted: the bound that is proved, and two budgets; None: no finite one is accounted.
        controls: bounds that the same audit proves of the same system with less noise, or with none.

    Raises:
        ValueError: a bound is NaN.
    """
    if np.isnan([audited, claimed, *controls]).any():
        raise ValueError(f"bounds must be numbers: {audited}, {claimed}, {controls}")
    if audited > claimed:
        return "refuted"
    met = accounted is not None and accounted <= claimed * (1 + ROUNDED)
    return "consistent" if met and controls and min(controls) > claimed else "inconclusive"


def _bin(a: NDArray[np.float64], b: NDArray[np.float64], half: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Bin numbers of all samples; edges come from the choosing half of both."""
    seen, times = np.unique(np.concatenate([a[:half], b[:half]]), return_counts=True)
    if len(seen) > BINS:
        # Quantiles of each input by itself: where one input has few samples the other may have its peak.
        levels = np.linspace(0, 1, BINS // 2)
        often = seen[np.argsort(-times, kind="stable")[:BINS]][-np.sort(-times)[:BINS] >= OFTEN]
        seen = np.unique(np.concatenate([often, *(np.quantile(part[:half], levels) for part in (a, b))]))

    # A value and the gap above it are different bins, so that a mechanism that repeats one value is found out.
    def bins(part: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.searchsorted(seen, part, "left") + np.searchsorted(seen, part, "right")

    return bins(a), bins(b)


def _choose(
    a: NDArray[np.intp],
    b: NDArray[np.intp],
    bound: Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.float64]],
) -> tuple[NDArray[np.intp], bool]:
    """The union of bins with the best bound, and whether it is one that b makes likelier than a."""
    best, event, swapped = -math.inf, np.arange(len(a)), False
    for swap, (first, second) in enumerate([(a, b), (b, a)]):
        # Neyman-Pearson: the best event of its size takes the bins in order of their likelihood ratio.
        order = np.argsort(-np.log((first + 0.5) / (second + 0.5)), kind="stable")
        bounds = bound(np.cumsum(first[order]), np.cumsum(second[order]))
        if bounds.max() > best:
            best, event, swapped = float(bounds.max()), order[: int(bounds.argmax()) + 1], bool(swap)
    return event, swapped
