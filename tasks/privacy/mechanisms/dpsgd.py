"""Differentially private SGD on records such as users: who is in a step, how far a record may pull, how much noise.

Source: Abadi et al., "Deep learning with differential privacy" (CCS 2016). A step takes every record with the same
probability (Poisson sampling), scales its gradient down to norm `clip_norm`, adds up, and adds Gaussian noise with
standard deviation `noise_multiplier` × `clip_norm` to every coordinate of the sum. Neighbours are records added or
removed. How much a run spends is composed over all its steps by `tasks.privacy.accounting.account`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.accounting.account import Spent, account, estimate
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.checks import check_at_least, check_delta, check_epsilon

if TYPE_CHECKING:
    from torch import Tensor

PRECISION = 1e-3  # relative; what the multiplier is above the smallest one
ENOUGH = 2.0**60  # noise with which steps cost next to nothing


class Plan(NamedTuple):
    """The steps of a run, fixed by configuration and the public number of records before a record is read.

    What is accounted are the planned steps: where validation ends training early, the number of those that ran is
    itself read off private data.
    """

    expected: int
    """Records in a step, on average, and what a sum is divided by: neither the number of those who are in it, nor of
    those who have anything to learn from. Of neighbours, one has an empty record where the other has a full one."""
    probability: float
    """With which a record is in a step."""
    steps_per_epoch: int
    """So many steps take every record once, on average."""
    steps: int

    def multiplier(self, epsilon: float, delta: float, composed_with: Sequence[Event] = ()) -> float:
        """`noise_multiplier` of the plan; 0 for an infinite budget."""
        if math.isinf(epsilon):
            return 0.0
        return noise_multiplier(epsilon, delta, self.probability, self.steps, composed_with)

    @classmethod
    def from_epochs(cls, n_records: int, batch_size: int, epochs: int) -> Self:
        """batch_size: expected records in a step; their number, or more, puts all of them into every step."""
        expected = min(batch_size, n_records)
        steps = max(1, round(n_records / expected))
        return cls(expected, expected / n_records, steps, epochs * steps)


def check_clip_norm(config: Any) -> Any:
    """Refuse gradients without a bound where they get noise.

    Args:
        config: with `clip_norm` and `epsilon`; it is given back.
    """
    if math.isinf(config.clip_norm) and not math.isinf(config.epsilon):
        raise ValueError("clip_norm must be finite where epsilon is: unbounded gradients need unbounded noise")
    return config


def release(noise_multiplier: float, sampling_probability: float, steps: int) -> Event:
    """What `steps` steps release, for ledger and accountant: without sampling it is plain Gaussian noise."""
    if sampling_probability == 1:
        return Event(kind="gaussian", parameters={"noise_multiplier": noise_multiplier}, count=steps)
    parameters = {"noise_multiplier": noise_multiplier, "sampling_probability": sampling_probability}
    return Event(kind="sampled-gaussian", parameters=parameters, count=steps)


def noise_multiplier(
    epsilon: float, delta: float, sampling_probability: float, steps: int, composed_with: Sequence[Event] = ()
) -> float:
    """The smallest noise multiplier with which `steps` steps are accounted at no more than `epsilon`.

    Found by bisection; the result is on the safe side and at most a thousandth too large. Takes some seconds of
    accounting; remembered, since the seeds of an experiment ask for the same.

    Args:
        epsilon: total budget of one record, all steps together.
        delta: failure probability of the same guarantee.
        sampling_probability: with which a record is in a step.
        steps: number of steps, at most, that will be run.
        composed_with: what else is released of the same records within the same budget.

    Raises:
        ValueError: epsilon is not a positive finite number, delta is not in (0, 1), sampling_probability is not in
            (0, 1], steps is below 1, or `composed_with` alone spends the budget.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    _check_probability(sampling_probability)
    check_at_least(1, steps=steps)
    if composed_with and not (composed_alone := _epsilon(account(composed_with, delta))) < epsilon:
        raise ValueError(f"epsilon = {epsilon:g} must be above what is released besides the steps ({composed_alone:g})")

    composed = tuple(event.model_dump_json() for event in composed_with)
    return _noise_multiplier(epsilon, delta, sampling_probability, steps, composed)


@cache
def _noise_multiplier(
    epsilon: float, delta: float, sampling_probability: float, steps: int, composed: tuple[str, ...]
) -> float:
    """`noise_multiplier` of what can be compared. others: `composed_with` as JSON."""
    composed_with = [Event.model_validate_json(event) for event in composed]

    @cache
    def cost(multiplier: float, by: Callable[[Sequence[Event], float], Spent] = account) -> float:
        return _epsilon(by([release(multiplier, sampling_probability, steps), *composed_with], delta))

    if cost(ENOUGH, estimate) > epsilon:
        raise ValueError(f"epsilon = {epsilon:g} leaves too little for the steps besides what else is released")
    # The accountant takes longer than its estimate: it is asked there first, then where its secants meet the budget.
    low, high, guess = 0.0, math.inf, _bracket(lambda multiplier: cost(multiplier, estimate) <= epsilon)[1]
    excess = dict[float, float]()
    while high > low * (1 + PRECISION):
        excess[guess] = math.log(min(max(cost(guess) / epsilon, 0.5), 2.0))
        low, high = (guess, high) if excess[guess] > 0 else (low, guess)
        if low and high < math.inf:
            target = low * (high / low) ** (excess[low] / (excess[low] - excess[high]))
        else:
            target = guess * math.exp(excess[guess])
        guess = _between(low, high, target)
    return high


def _between(low: float, high: float, target: float) -> float:
    """Of the multipliers that `_bracket` tries, the smallest from `target` on that is above `low` and below `high`."""
    below, above = _bracket(lambda multiplier: multiplier >= high or (multiplier > low and multiplier >= target))
    return above if above < high else below


def _bracket(enough: Callable[[float], bool]) -> tuple[float, float]:
    """Neighbours, at most `PRECISION` apart, of which the larger is enough and the smaller is not."""
    high = 1.0
    while not enough(high):
        high *= 2
    while enough(high / 2):
        high /= 2
    low = high / 2
    while high > low * (1 + PRECISION):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high


def _epsilon(accounted: Spent) -> float:
    return math.inf if accounted.epsilon is None else accounted.epsilon


def poisson_sample(n: int, probability: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Each of 0..n-1 independently with the given probability: ascending ids, possibly none."""
    if n < 0:
        raise ValueError(f"n must not be negative (is {n})")
    _check_probability(probability)
    return np.flatnonzero(noise.uniform(rng, "who-is-in-the-step", n) < probability)


def clip_factors(squared_norms: Tensor, clip_norm: float) -> Tensor:
    """What each record's gradient is multiplied by so that its norm is at most `clip_norm`: (n,) in [0, 1].

    Args:
        squared_norms: (n,) squared L2 norms of the records' gradients, over all parameters together.
        clip_norm: infinity leaves every gradient as it is.
    """
    return (clip_norm / squared_norms.clamp(min=0).sqrt()).clamp(max=1.0)


def add_noise(total: Tensor, multiplier: float, clip_norm: float, rng: np.random.Generator) -> Tensor:
    """`total` with Gaussian noise of `multiplier` × `clip_norm`, drawn on the CPU; itself where there is none.

    Args:
        total: a sum of gradients, clipped to norm `clip_norm` over all arrays together.
    """
    import torch  # accounting does without

    if not (multiplier and clip_norm):
        return total
    values, std = total.detach().cpu().numpy(), multiplier * clip_norm
    noisy = noise.add_gaussian(rng, "sum-of-gradients", values, std, sensitivity=clip_norm)
    return torch.from_numpy(noisy).to(total.device)


def _check_probability(probability: float) -> None:
    if not 0 < probability <= 1:
        raise ValueError(f"sampling probability must be in (0, 1] (is {probability})")
