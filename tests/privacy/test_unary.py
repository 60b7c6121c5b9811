"""Optimised unary encoding flips bits at its stated rates, and no pair of categories differs by more than ε."""

import itertools

import numpy as np
import pytest
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI

from tasks.privacy.mechanisms import unary

BUDGETS = [1e-3, 0.5, 2.5, 10.0]


def onehot(categories: np.ndarray, width: int) -> np.ndarray:
    return np.eye(width, dtype=np.float32)[categories]


@pytest.mark.parametrize("epsilon", [*BUDGETS, 1e3])
def test_probabilities_are_a_distribution_whose_ratios_reach_exp_epsilon(epsilon: float) -> None:
    outputs = np.array(list(itertools.product([0, 1], repeat=3)), dtype=np.float32)
    logs = np.stack([unary.log_probability(outputs, category, epsilon) for category in range(3)])
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)
    assert (logs.max(axis=0) - logs.min(axis=0)).max() == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_bits_survive_and_appear_at_their_rates(epsilon: float) -> None:
    """Five standard errors per column: a false alarm in one of 1.7 million."""
    n = 100_000
    outputs = unary.perturb(onehot(np.full(n, 1), 4), epsilon, np.random.default_rng(5))
    expected = np.where(np.arange(4) == 1, 0.5, 1 / (np.exp(epsilon) + 1))
    assert set(np.unique(outputs)) <= {0, 1}
    assert (np.abs(outputs.mean(axis=0) - expected) <= 5 * np.sqrt(expected * (1 - expected) / n)).all()


def test_bits_are_independent() -> None:
    """Five standard errors of a correlation that is 0 in truth."""
    n = 100_000
    outputs = unary.perturb(onehot(np.zeros(n, dtype=int), 4), 1.0, np.random.default_rng(6))
    correlations = np.corrcoef(outputs.T)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() <= 5 / np.sqrt(n)


def test_a_frequency_oracle_of_another_library_recovers_the_frequencies() -> None:
    """multi-freq-ldpy inverts the same two probabilities; 0.01 is five standard errors or more of each frequency."""
    n, epsilon, rng = 200_000, 2.0, np.random.default_rng(8)
    frequencies = np.array([0.5, 0.3, 0.15, 0.05])
    categories = rng.choice(4, size=n, p=frequencies)
    reports = unary.perturb(onehot(categories, 4), epsilon, rng)
    np.testing.assert_allclose(UE_Aggregator_MI(reports, epsilon), frequencies, atol=0.01)
