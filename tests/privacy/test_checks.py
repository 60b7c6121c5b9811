"""Every mechanism refuses an impossible budget before it touches data."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tasks.core.contracts import Feature
from tasks.privacy.mechanisms import (
    aggregation,
    dpsgd,
    edges,
    functional,
    laplace,
    multidimensional,
    objective,
    optimal_clip,
    piecewise,
    unary,
    words,
)

RNG = np.random.default_rng(0)
NUMBER = Feature(name="number", kind="numeric", low=0, high=1)
FRIENDS = np.array([[0, 1]])
MECHANISMS: dict[str, Callable[[float], object]] = {
    "aggregation, published": lambda epsilon: aggregation.sigma(1, 0.4, epsilon, 1e-5),
    "aggregation, rigorous": lambda epsilon: aggregation.rigorous_sigma(1, 0.4, epsilon, 1e-5),
    "dpsgd": lambda epsilon: dpsgd.noise_multiplier(epsilon, 1e-3, 0.5, 1),
    "edges": lambda epsilon: edges.top_m_filter(FRIENDS, 9, epsilon, 1.0, RNG, "rigorous"),
    "number of edges": lambda epsilon: edges.top_m_filter(FRIENDS, 9, 1.0, epsilon, RNG, "rigorous"),
    "counts": lambda epsilon: laplace.noisy_counts(np.zeros(3, int), epsilon, 1, RNG),
    "features": lambda epsilon: multidimensional.perturb(np.zeros((2, 1)), [NUMBER], epsilon, RNG),
    "piecewise": lambda epsilon: piecewise.perturb(np.zeros(3), epsilon, RNG),
    "unary": lambda epsilon: unary.perturb(np.eye(3), epsilon, RNG),
    "words": lambda epsilon: words.substitute(np.zeros(1, int), np.eye(3), epsilon, RNG),
}
NOISELESS: dict[str, Callable[[float], object]] = {
    "functional": lambda epsilon: functional.noise_scale(60, epsilon, 80_000),
    "objective": lambda epsilon: objective.noise_scale(4, epsilon, 1.0),
    "personal": lambda epsilon: optimal_clip.sigma(epsilon, 0.1),
}
"""Those that draw nothing at an infinite budget."""


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, 1e-310])
@pytest.mark.parametrize("mechanism", MECHANISMS | NOISELESS)
def test_impossible_budgets_are_refused(mechanism: str, epsilon: float) -> None:
    message = "the budget is too small" if epsilon == 1e-310 else "epsilon must be a positive finite number"
    with pytest.raises(ValueError, match=message):
        (MECHANISMS | NOISELESS)[mechanism](epsilon)


@pytest.mark.parametrize("mechanism", MECHANISMS | NOISELESS)
def test_an_infinite_budget_is_none_or_no_noise(mechanism: str) -> None:
    if mechanism in NOISELESS:
        assert NOISELESS[mechanism](math.inf) == 0
    else:
        with pytest.raises(ValueError, match="epsilon must be a positive finite number"):
            MECHANISMS[mechanism](math.inf)
