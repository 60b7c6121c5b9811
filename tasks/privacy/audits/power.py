"""The power of an audit: the smallest ε that it would have refuted, so that "consistent" means something.

If the noise were smaller by a factor c, what an audit saw would be clearer by c: where noise is Gaussian, the two
worlds would lie c times as far apart (of sampled steps the likelihood ratios are drawn); elsewhere the log-likelihood
ratio of the event that was chosen would be c times as large, the event staying as frequent where it is likelier. The
power is the ε that the accountant gives such noise, at the smallest c at which the bound exceeds the claim with
probability `SURE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.audits.audit import Audit, audit, lower_bound

SURE = 0.9
"""Probability with which an audit must refute what it is said to detect."""
RUNS, STEP = 20, 1.05
"""Audits of normal samples in which a factor is tried, and by how much it grows until `SURE` of them refute."""
MOST = 1e3
"""Largest c that is looked for."""
Samples = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Of either world, (n,) each."""
SCALED = {
    "gaussian": ("noise_multiplier", -1),
    "sampled-gaussian": ("noise_multiplier", -1),
    "laplace": ("noise_multiplier", -1),
    "discrete-laplace": ("noise_parameter", 1),
    "pure-local": ("epsilon", 1),
}
"""Kind of event -> the parameter that changes with c, and by which power of it."""


def power(
    result: Audit,
    samples: Samples,
    claimed: float,
    events: Sequence[Event],
    delta: float,
) -> float | None:
    """The smallest ε that the audit would have refuted, or None if it could refute nothing.

    Args:
        samples: what was judged, of either world.
        claimed: ε that the bound is held against.
        events: what was accounted, at delta. Where the accountant refuses them, ε is that of the event alone.
    """
    if result.provable <= claimed:
        return None
    known = account(events, delta).epsilon is not None
    gaussian = known and all(event.kind.endswith("gaussian") for event in events)
    n = result.samples // 2
    seen = _log_ratio(result, n, delta)
    if gaussian:
        apart = _mean_distance(*samples)
        factor = _smallest_refuted(lambda c: _of_normals(c * apart, n, result.confidence, delta) > claimed)
        drawn = partial(_normals, apart)
        if any(event.kind == "sampled-gaussian" for event in events):
            exact = _ratios(events, 1.0, 1.0, np.random.default_rng(0), result.samples)
            drawn, factor = partial(_ratios, events, apart / _mean_distance(*exact)), 1.0
        while factor is not None and not _refutes(partial(drawn, factor), result, claimed, delta):
            factor = factor * STEP if factor < MOST else None
    else:
        often = (result.hits[0] + 0.5) / (n + 1)
        factor = _smallest_refuted(lambda c: _of_event(often, c * seen, n, result.confidence, delta) > claimed)
    if factor is None:
        return None
    return account([_scale_noise(event, factor) for event in events], delta).epsilon if known else factor * seen


def _log_ratio(result: Audit, n: int, delta: float) -> float:
    """Log-likelihood ratio of the event, as it was counted."""
    more, less = ((count + 0.5) / (n + 1) for count in result.hits)
    return max(math.log(max(more - delta, 1e-300) / less), 1e-3)


def _mean_distance(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """How many standard deviations two normal laws would lie apart that are told apart as well as these."""
    better = stats.mannwhitneyu(left, right).statistic / len(left) / len(right)
    return max(math.sqrt(2) * abs(float(stats.norm.ppf(np.clip(better, 1e-6, 1 - 1e-6)))), 1e-3)


def _smallest_refuted(refuted: Callable[[float], bool]) -> float | None:
    """The smallest c of 0.1 to `MOST`, to 1 %."""
    low, high = 0.1, MOST
    if not refuted(high):
        return None
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return high


def _of_normals(apart: float, n: int, confidence: float, delta: float) -> float:
    """The bound that is exceeded with probability `SURE`, by the best threshold."""
    thresholds = np.linspace(-4, apart + 4, 200)
    return _bound(stats.norm.sf(thresholds - apart), stats.norm.sf(thresholds), n, confidence, delta)


def _refutes(drawn: Callable[[np.random.Generator, int], Samples], result: Audit, claimed: float, delta: float) -> bool:
    """Whether audits of such samples do that have to choose their event, as this one had to."""
    rng, refuted = np.random.default_rng(0), 0
    for run in range(RUNS):
        refuted += audit(*drawn(rng, result.samples), result.confidence, delta).epsilon > claimed
        if run - refuted >= RUNS - SURE * RUNS:
            return False
    return True


def _normals(apart: float, factor: float, rng: np.random.Generator, n: int) -> Samples:
    """Of two normal laws, `factor` × `apart` standard deviations apart."""
    left, right = rng.standard_normal((2, n))
    return left + factor * apart, right


def _ratios(events: Sequence[Event], seen: float, factor: float, rng: np.random.Generator, n: int) -> Samples:
    """Log-likelihood ratios of releases of Gaussian noise, sampled or not, whose auditor sees a share of the move."""
    totals = np.zeros((2, n))
    for event in events:
        move = seen * factor / event.parameters["noise_multiplier"]
        probability = event.parameters.get("sampling_probability", 1.0)
        for _ in range(event.count):
            moved = rng.standard_normal((2, n))
            moved[0] += move * (rng.random(n) < probability)
            totals += np.logaddexp(math.log(probability) + move * moved - move**2 / 2, _log(1 - probability))
    return totals[0], totals[1]


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf


def _of_event(often: float, ratio: float, n: int, confidence: float, delta: float) -> float:
    """The same, of one event: its probability where it is likelier, and its log-likelihood ratio."""
    return _bound(np.array([often]), np.array([(often - delta) * math.exp(-ratio)]), n, confidence, delta)


def _bound(more: NDArray[np.float64], less: NDArray[np.float64], n: int, confidence: float, delta: float) -> float:
    each = (1 - SURE) / 2
    counts = stats.binom.ppf(each, n, more), stats.binom.ppf(1 - each, n, np.clip(less, 0, 1))
    return float(lower_bound(counts[0].astype(np.int64), counts[1].astype(np.int64), n, confidence, delta).max())


def _scale_noise(event: Event, factor: float) -> Event:
    """The same release with noise smaller by a factor."""
    name, exponent = SCALED[event.kind]
    changed = event.parameters | {name: event.parameters[name] * factor**exponent}
    return event.model_copy(update={"parameters": changed})
