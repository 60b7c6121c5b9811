"""From events to (epsilon, delta): what follows under composition from everything a run did.

Composition is adaptive and on the same data. Two upper bounds are computed and the smaller is returned: basic
composition (budgets add up), and privacy loss distributions by Google's dp_accounting, discretised pessimistically
(Koskela et al. 2020; Doroshenko et al., "Connect the dots", PoPETs 2022). An event that is unknown, or for which no
finite guarantee exists, is refused with its reason; nothing is ever approximated from below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tasks.privacy.accounting.ledger import Event, LedgerEntry

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

PARAMETERS = {
    "pure-local": {"epsilon"},
    "laplace": {"noise_multiplier"},
    "discrete-laplace": {"noise_parameter", "sensitivity"},
    "gaussian": {"noise_multiplier"},
    "sampled-gaussian": {"noise_multiplier", "sampling_probability"},
}
"""Kinds of event that can be accounted for, and their parameters (documented at `Event`)."""
LARGE = 50.0
"""A single event with at least this epsilon gains nothing from a privacy loss distribution and is added as it is."""


class Spent(NamedTuple):
    """An upper bound on what was spent."""

    epsilon: float | None
    """None where no finite guarantee follows."""
    delta: float
    reason: str
    """Why there is no finite epsilon; empty where there is one."""


def account(events: Sequence[Event], delta: float = 0.0) -> Spent:
    """The epsilon, at the given delta, of all events together.

    With delta = 0 this is the sum of the events' pure budgets: Laplace sensitivity/scale, discrete Laplace
    noise_parameter × sensitivity, and `pure-local` as stated; Gaussian noise has none.

    Args:
        events: everything that was released about the same data. None at all is refused: a run that recorded nothing
            has shown nothing.
        delta: failure probability at which epsilon is asked for.

    Raises:
        ValueError: delta is outside [0, 1).
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1) (is {delta})")
    if not events:
        return Spent(None, delta, "no release was recorded, so nothing can be accounted")
    if reason := next(filter(None, map(_refusal, events)), ""):
        return Spent(None, delta, reason)
    pure = [event for event in events if event.kind not in ("gaussian", "sampled-gaussian")]
    gaussian = [event for event in events if event not in pure]
    basic = _sum(pure)
    if delta == 0:
        if gaussian:
            return Spent(None, delta, "Gaussian noise gives no finite epsilon at delta = 0")
        return _spent_epsilon(basic, delta)
    # What sampling gains is left out where a single release costs so much that it gains next to nothing.
    sampled = [
        event
        for event in gaussian
        if event.kind == "sampled-gaussian" and _gaussian_epsilon(event.parameters["noise_multiplier"], delta) < LARGE
    ]
    gaussian = [event for event in gaussian if event not in sampled]
    multiplier = _joint_multiplier(gaussian)
    if sampled:
        return _spent_epsilon(_compose([*pure, *sampled], multiplier if gaussian else None, delta), delta)
    normal = _gaussian_epsilon(multiplier, delta) if gaussian else 0.0
    epsilon = basic + normal
    small = [event for event in pure if _pure_epsilon(event) < LARGE]
    if small and normal < LARGE:
        large = [event for event in pure if _pure_epsilon(event) >= LARGE]
        epsilon = min(epsilon, _sum(large) + _compose(small, multiplier if gaussian else None, delta))
    return _spent_epsilon(epsilon, delta)


def accounted_entry(events: Sequence[Event], delta: float = 0.0, remark: str = "", **about: Any) -> LedgerEntry:
    """The entry of what was released under rigorous accounting, at the δ that is claimed.

    Args:
        remark: on the accounting, where a finite ε follows.
        about: the other fields of the entry, or others than those that follow from the events.

    Raises:
        ValueError: as `account`; a field is not what `LedgerEntry` says.
    """
    spent = account(events, delta)
    accounted = {"accounted_epsilon": spent.epsilon, "accounted_delta": delta, "reason": spent.reason or remark}
    known = {"accounting": "rigorous", "claimed_delta": delta, "events": tuple(events)} | accounted
    return LedgerEntry.model_validate(known | about)


def _spent_epsilon(epsilon: float, delta: float) -> Spent:
    if math.isinf(epsilon):
        return Spent(None, delta, "the noise is too small for any finite epsilon")
    return Spent(epsilon, delta, "")


def _refusal(event: Event) -> str:
    """Why an event cannot be accounted for; empty if it can."""
    if event.kind == "non-private":
        return "something was released without protection"
    if event.kind not in PARAMETERS:
        return f"no accounting is known for events of kind {event.kind!r}"
    if set(event.parameters) != PARAMETERS[event.kind]:
        return f"a {event.kind} event needs {sorted(PARAMETERS[event.kind])}, not {sorted(event.parameters)}"
    if name := next((name for name, value in event.parameters.items() if value <= 0), ""):
        return f"a {event.kind} event has no finite epsilon with {name} = {event.parameters[name]:g}"
    if event.parameters.get("sampling_probability", 0) > 1:
        return f"a {event.kind} event has no sampling probability of {event.parameters['sampling_probability']:g}"
    if event.kind == "discrete-laplace" and not event.parameters["sensitivity"].is_integer():
        return "a discrete-laplace event needs an integer sensitivity"
    return ""


def _pure_epsilon(event: Event) -> float:
    """The budget of one such event at delta = 0."""
    parameters = event.parameters
    if event.kind == "laplace":
        return 1 / parameters["noise_multiplier"]
    if event.kind == "discrete-laplace":
        return parameters["noise_parameter"] * parameters["sensitivity"]
    return parameters["epsilon"]


def _sum(events: Sequence[Event]) -> float:
    """Basic composition of pure budgets."""
    return math.fsum(event.count * _pure_epsilon(event) for event in events)


def _joint_multiplier(gaussian: Sequence[Event]) -> float:
    """Noise multiplier of the one Gaussian release that is equivalent to all of them (infinity for none)."""
    inverse = [(event.count, 1 / event.parameters["noise_multiplier"]) for event in gaussian]
    precision = math.fsum(count * value * value for count, value in inverse)
    return 1 / math.sqrt(precision) if precision else math.inf


def _gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """The exact epsilon of one Gaussian release (Balle and Wang, ICML 2018)."""
    from dp_accounting import get_epsilon_gaussian

    return float(get_epsilon_gaussian(noise_multiplier, delta))


def _compose(events: Sequence[Event], noise_multiplier: float | None, delta: float) -> float:
    """Epsilon at delta > 0 by composing privacy loss distributions."""
    from dp_accounting.pld import privacy_loss_distribution

    total = privacy_loss_distribution.identity()
    if noise_multiplier is not None:
        total = total.compose(privacy_loss_distribution.from_gaussian_mechanism(noise_multiplier))
    for event in events:
        total = total.compose(_distribution(event).self_compose(event.count))
    return float(total.get_epsilon_for_delta(delta))


def _distribution(event: Event) -> PrivacyLossDistribution:
    """The privacy loss distribution of one release, an upper bound where only its budget is known."""
    from dp_accounting.pld import common, privacy_loss_distribution

    parameters = event.parameters
    if event.kind == "laplace":
        return privacy_loss_distribution.from_laplace_mechanism(parameters["noise_multiplier"])
    if event.kind == "discrete-laplace":
        return privacy_loss_distribution.from_discrete_laplace_mechanism(
            parameters["noise_parameter"], int(parameters["sensitivity"])
        )
    if event.kind == "sampled-gaussian":
        return privacy_loss_distribution.from_gaussian_mechanism(
            parameters["noise_multiplier"], sampling_prob=parameters["sampling_probability"]
        )
    budget = common.DifferentialPrivacyParameters(parameters["epsilon"], 0.0)
    return privacy_loss_distribution.from_privacy_parameters(budget)
