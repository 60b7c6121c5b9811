"""From events to (epsilon, delta): what follows under composition from everything a run did.

Composition is adaptive and on the same data. The smallest of three upper bounds is returned, of which a single ε of at
least `LARGE` knows the first alone: basic composition (budgets add up), Rényi differential privacy (Mironov, Talwar
and Zhang, arXiv 1908.10530), and privacy loss distributions by Google's dp_accounting, discretised pessimistically
(Koskela et al. 2020; Doroshenko et al., "Connect the dots", PoPETs 2022). Time and memory are bounded: the more there
is to compose, the coarser the discretisation. An event that is unknown, or for which no finite guarantee exists, is
refused with its reason; nothing is ever approximated from below, but for rounding: 2e-13 of the ε of a Gaussian
release.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from tasks.privacy.accounting.kinds import distinct, merged
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.accounting.refusals import UnaccountableError, require_accountable
from tasks.privacy.remarks import Explanation, because

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

LARGE = 50.0
"""A single event with at least this epsilon gains nothing from a privacy loss distribution and is added as it is."""
FINEST = 1e-4
"""Distance of discretised losses, where that is affordable: it is doubled until there are at most `POINTS`."""
POINTS = 2**18
"""Losses before composition."""
ROUGH = 2**14
"""The same for an estimate, hardly larger and ten times as fast."""
COMPOSED = 32
"""Times as many losses after composition; fewer where more than eight kinds of events are composed."""
MOST_COMPOSED = 10**7
"""Releases, beyond which rounding and time speak against privacy loss distributions."""
MOST_KINDS = 100
"""Kinds of events whose privacy loss distributions are composed. More are bounded in other ways, so that one kind more
may be accounted at slightly less; each bound holds by itself."""
FEW_KINDS = 32
"""Of more, so many are made, since each takes its own: discretisation is finer, the fewer there are."""
DISTINCT = 500
"""Kinds of events whose Rényi divergences are composed."""
LARGEST_SENSITIVITY = 2**20
"""Of discrete Laplace noise, whose losses are counted one by one up to there, over all kinds of events; beyond, its
budget alone counts."""
FFT_ERROR = 1e-15
"""Per release, at most, what rounding in Fourier transforms takes off δ (measured: 0.3e-15). Privacy loss distributions
are asked where that is at most a hundredth of δ: below, ε would rise and fall with the noise."""
ORDERS = sorted({1 + 2 ** (k / 8) for k in range(-80, 0)} | {float(round(2 ** (k / 8))) for k in range(8, 321)})
"""Rényi orders, 1.001 to 2^40, integers from 2 on; 9 % apart, which costs at most 0.1 % of ε. The best one is about
1 + 2 log(1/δ)/ε, so that ε = 1e-9 is within reach at δ = 1e-300."""
MANY = 50
"""Kinds of events for which all orders are tried; of more every second, third, ... order, and of many half of these."""
TERMS = 2**17
"""Terms of a sampled Gaussian's Rényi divergence, at most; where it takes more, that of all records is the bound."""


class Spent(NamedTuple):
    """An upper bound on what was spent."""

    epsilon: float | None
    """None where no finite guarantee follows."""
    delta: float
    reason: str = ""
    """Why there is no finite epsilon, in words that nothing reads."""


def account(events: Sequence[Event], delta: float = 0.0, points: int = POINTS) -> Spent:
    """The epsilon, at the given delta, of all events together.

    With delta = 0 this is the sum of the events' pure budgets: Laplace sensitivity/scale, discrete Laplace
    noise_parameter × sensitivity, and `pure-local` as stated; Gaussian noise has none.

    Args:
        events: everything that was released about the same data. None at all is refused: a run that recorded nothing
            has shown nothing.
        delta: failure probability at which epsilon is asked for.
        points: losses of a privacy loss distribution before composition.

    Raises:
        ValueError: delta is outside [0, 1).
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1) (is {delta})")
    try:
        require_accountable(events, delta)
        epsilon = _bound(events, delta, points)
        if math.isinf(epsilon):
            raise UnaccountableError("the noise is too small for any finite epsilon")
    except UnaccountableError as error:
        return Spent(None, delta, str(error))
    return Spent(epsilon, delta)


def _bound(events: Sequence[Event], delta: float, points: int) -> float:
    """Infinity where none is finite."""
    events = distinct(merged(events), DISTINCT)
    pure = [event for event in events if not event.kind.endswith("gaussian")]
    gaussian = [event for event in events if event.kind.endswith("gaussian")]
    basic = _sum(pure)
    if delta == 0:
        return basic
    epsilon = basic + (_gaussian_epsilon(_joint_multiplier(gaussian), delta) if gaussian else 0.0)
    # What sampling gains is left out where a single release costs so much that it gains next to nothing.
    multipliers = sorted({event.parameters["noise_multiplier"] for event in gaussian}, reverse=True)
    cheap = set(multipliers[: bisect_left(multipliers, LARGE, key=lambda value: _gaussian_epsilon(value, delta))])
    sampled, normal = list[Event](), list[Event]()
    for event in gaussian:
        gains = event.kind == "sampled-gaussian" and event.parameters["noise_multiplier"] in cheap
        (sampled if gains else normal).append(event)
    multiplier = _joint_multiplier(normal) if normal else None
    # Pure budgets that are large are added: privacy loss distributions would gain little on them, and at great cost.
    large = _sum([event for event in pure if _pure_epsilon(event) >= LARGE])
    small = [event for event in pure if _pure_epsilon(event) < LARGE] + sampled
    if small:
        epsilon = min(epsilon, large + _renyi_epsilon(small, multiplier, delta))
        if epsilon and (sampled or multiplier is None or _gaussian_epsilon(multiplier, delta) < LARGE):
            epsilon = min(epsilon, large + _compose(small, multiplier, delta, points))
    return epsilon


estimate = partial(account, points=ROUGH)
"""An upper bound as well, on a coarser grid: for anyone who searches and confirms by `account`."""


def accounted_entry(
    events: Sequence[Event], delta: float = 0.0, remarks: tuple[Explanation, ...] = (), **about: object
) -> LedgerEntry:
    """The entry of what was released under rigorous accounting, at the δ that is claimed.

    Args:
        remarks: on the accounting, where a finite ε follows.
        about: the other fields of the entry, or others than those that follow from the events.

    Raises:
        ValueError: as `account`; a field is not what `LedgerEntry` says.
    """
    spent = account(events, delta)
    reasons = remarks if spent.epsilon is not None else (because("not-accounted"),)
    accounted = {"accounted_epsilon": spent.epsilon, "accounted_delta": delta, "reasons": reasons}
    known = {"accounting": "rigorous", "claimed_delta": delta, "events": tuple(events)} | accounted
    return LedgerEntry.model_validate(known | about)


def _pure_epsilon(event: Event) -> float:
    parameters = event.parameters
    if event.kind == "laplace":
        return 1 / parameters["noise_multiplier"]
    if event.kind == "discrete-laplace":
        return parameters["noise_parameter"] * parameters["sensitivity"]
    return parameters["epsilon"]


def _sum(events: Sequence[Event]) -> float:
    """Basic composition of pure budgets; infinity where they are beyond double precision."""
    try:
        return math.fsum(event.count * _pure_epsilon(event) for event in events)
    except OverflowError:
        return math.inf


def _joint_multiplier(gaussian: Sequence[Event]) -> float:
    """Noise multiplier of the one Gaussian release that is equivalent to all of them."""
    inverse = [(event.count, 1 / event.parameters["noise_multiplier"]) for event in gaussian]
    precision = math.fsum(count * value * value for count, value in inverse)
    return 1 / math.sqrt(max(precision, sys.float_info.min))


def _gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """The exact epsilon of one Gaussian release (Balle and Wang, ICML 2018).

    Below 1e-8, where that formula cancels, it is bounded by zero-concentrated privacy (Bun and Steinke, TCC 2016).
    """
    from dp_accounting import get_epsilon_gaussian

    shift = 1 / noise_multiplier if noise_multiplier else math.inf
    if math.erf(shift / math.sqrt(8)) <= delta:  # the total variation distance
        return 0.0
    bound = shift * (shift / 2 + math.sqrt(-2 * math.log(delta)))
    if bound < 1e-8 or math.isinf(bound):
        return bound
    epsilon = float(get_epsilon_gaussian(noise_multiplier, delta))
    return epsilon if epsilon > 1e-4 else epsilon + 1e-12  # its root is found to 2e-13


def _renyi_epsilon(events: Sequence[Event], noise_multiplier: float | None, delta: float) -> float:
    """Epsilon at delta > 0 by Rényi divergences (conversion: Canonne, Kamath and Steinke, arXiv 2004.00010, prop. 12).

    noise_multiplier: of Gaussian noise that is composed with the events.
    """
    best = math.inf
    tried = MANY if len(events) <= MOST_KINDS else MANY // 2
    for order in ORDERS[:: 1 + len(events) // tried]:
        total = order / 2 / noise_multiplier / noise_multiplier if noise_multiplier is not None else 0.0
        total += sum(event.count * _renyi(event, order) for event in events)
        epsilon = total * (1 + 1e-5) + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, max(epsilon, 0.0))
        if epsilon > 1.1 * best:  # it falls and then rises
            break
    return best


def _renyi(event: Event, order: float) -> float:
    """An upper bound on one release's Rényi divergence in both directions, up to a relative rounding error of 1e-5.

    Of a pure budget it is randomised response's.
    """
    if event.kind == "sampled-gaussian":
        return _sampled_renyi(order, event.parameters["noise_multiplier"], event.parameters["sampling_probability"])
    epsilon = _pure_epsilon(event)
    excess = epsilon - np.logaddexp(0, epsilon) + _log_expm1(np.array([(order - 1) * epsilon, -order * epsilon])).sum()
    return float(np.logaddexp(0, excess)) / (order - 1)


@lru_cache(4096)
def _sampled_renyi(order: float, multiplier: float, probability: float) -> float:
    """log E[(1 - q + q e^loss)^order] / (order - 1), as positive terms alone so that nothing cancels.

    Its logarithm is convex in the order: between 1 and 2 it is at most that of order 2.
    """
    unsampled = order / 2 / multiplier / multiplier
    if order < 2:
        return min(unsampled, _sampled_renyi(2.0, multiplier, probability))
    if probability == 1 or unsampled > 1e300:
        return unsampled
    terms = order
    if order > ROUGH:
        # Later terms are at most e^-700 together, by Chernoff's bound on a binomial with a tilted probability.
        terms = order * math.log1p(probability * math.expm1(unsampled + 1)) + 700 if unsampled < 50 else math.inf
        if terms > TERMS:
            return unsampled
    k = np.arange(1, min(order, math.ceil(terms)) + 1)
    logs = np.cumsum(np.log((order + 1 - k) / k * probability) - math.log1p(-probability))[1:]
    logs += _log_expm1(k[1:] * (k[1:] - 1) / 2 / multiplier / multiplier) + order * math.log1p(-probability)
    return min(unsampled, float(np.logaddexp(0, np.logaddexp(logsumexp(logs), -700))) / (order - 1))


def _log_expm1(values: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.maximum(values, 0) + np.log(-np.expm1(-np.abs(values)))


def _compose(events: Sequence[Event], noise_multiplier: float | None, delta: float, points: int) -> float:
    """Epsilon at delta > 0 by composing privacy loss distributions; infinity where that shows nothing.

    Args:
        noise_multiplier: of Gaussian noise that is composed with the events.
        points: losses before composition, see `POINTS`.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    events = events if len(events) <= MOST_KINDS else distinct(list(events), FEW_KINDS)
    releases = sum(event.count for event in events) + len(events)
    error = FFT_ERROR * releases
    asked = delta if error < 1e-5 * delta else delta - error
    if error > delta / 100 or releases > MOST_COMPOSED or len(events) > MOST_KINDS:
        return math.inf
    reach = math.fsum(map(_reach, events)) + (
        _gaussian_reach(noise_multiplier) if noise_multiplier is not None else 0.0
    )
    width = 8 * reach + math.fsum(map(_width, events))
    if width > 1e5:
        return math.inf
    coarser = max(reach, width * max(len(events) / 8, 1) / COMPOSED) / FINEST / points
    interval = FINEST * 2 ** max(0, math.ceil(math.log2(coarser)))
    total = pld.identity(interval)
    if noise_multiplier is not None:
        total = total.compose(_gaussian_distribution(noise_multiplier, 1.0, interval))
    for event in events:
        single = _distribution(event, interval, LARGEST_SENSITIVITY // len(events))
        total = total.compose(_repeated(single, event.count))
    return float(total.get_epsilon_for_delta(asked))


def _repeated(distribution: PrivacyLossDistribution, count: int) -> PrivacyLossDistribution:
    """So often composed with itself; by parts, since dp_accounting takes powers with `count` as their exponent."""
    parts, rest = divmod(count, 2**16)
    if not parts:
        return distribution.self_compose(count)
    composed = distribution.self_compose(2**16)
    composed = composed if parts == 1 else composed.self_compose(parts)
    return composed.compose(distribution.self_compose(rest)) if rest else composed


def _reach(event: Event) -> float:
    """The largest privacy loss of one release, but for a probability of e^-50."""
    if event.kind == "sampled-gaussian":
        return _gaussian_reach(event.parameters["noise_multiplier"])
    return _pure_epsilon(event)


def _width(event: Event) -> float:
    """Of the losses of all its releases that dp_accounting keeps, by Chernoff's bound at its least or largest order."""
    reach = _reach(event)
    mean = ((times, _renyi(event, 1 + math.ceil(times / 2 / max(reach, FINEST)))) for times in (1, 20))
    return min(2 * event.count * min(loss, reach) + 140 * reach / times for times, loss in mean)


def _gaussian_reach(noise_multiplier: float) -> float:
    return (10 + 0.5 / noise_multiplier) / noise_multiplier


def _distribution(event: Event, interval: float, most: int) -> PrivacyLossDistribution:
    """The privacy loss distribution of one release, an upper bound where only its budget is known.

    most: sensitivity of discrete Laplace noise above which that is so.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    parameters = event.parameters
    if event.kind == "laplace":
        return pld.from_laplace_mechanism(parameters["noise_multiplier"], value_discretization_interval=interval)
    if event.kind == "sampled-gaussian":
        noise, probability = min(parameters["noise_multiplier"], 1e100), parameters["sampling_probability"]
        return _gaussian_distribution(noise, probability, interval)
    sensitivity = int(parameters.get("sensitivity", 1))
    if sensitivity > most:
        sensitivity = 1
    # With a sensitivity of 1 this is randomised response, of all releases with the same budget the most revealing one.
    noise = _pure_epsilon(event) / sensitivity
    return pld.from_discrete_laplace_mechanism(noise, sensitivity, value_discretization_interval=interval)


def _gaussian_distribution(noise_multiplier: float, probability: float, interval: float) -> PrivacyLossDistribution:
    """dp_accounting's `from_gaussian_mechanism`, with all losses at once instead of one by one, to the same numbers."""
    from dp_accounting.pld.pld_pmf import PLDPmf, create_pmf_pessimistic_connect_dots_fixed_gap
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

    def one_way(adjacency: AdjacencyType, sign: int) -> PLDPmf:
        law = GaussianPrivacyLoss(noise_multiplier, sampling_prob=probability, adjacency_type=adjacency)
        bounds = law.connect_dots_bounds()
        lower, upper = math.floor(bounds.epsilon_lower / interval), math.ceil(bounds.epsilon_upper / interval)
        epsilons = np.arange(lower, upper + 1) * interval
        deltas = -np.expm1(np.minimum(epsilons, 0))
        reached = sign * epsilons > (math.log1p(-probability) if probability < 1 else -math.inf)
        logs = sign * epsilons[reached] + np.log(1 / probability)
        with np.errstate(divide="ignore"):
            losses = logs + np.log1p(-np.exp(np.minimum(np.log(1 / probability - 1) - logs, 0)))
            losses[epsilons[reached] == 0] = np.log(1 / probability + (1 - 1 / probability))
        outputs = -0.5 - sign * losses * noise_multiplier**2 + (1 - sign) / 2
        deltas[reached] = law.mu_upper_cdf(outputs) - np.exp(epsilons[reached] + law.mu_lower_log_cdf(outputs))
        return create_pmf_pessimistic_connect_dots_fixed_gap(interval, lower, upper, np.clip(deltas, 0, 1))

    added = [one_way(AdjacencyType.ADD, -1)] if probability < 1 else []
    return PrivacyLossDistribution(one_way(AdjacencyType.REMOVE, 1), *added)
