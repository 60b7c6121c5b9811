"""The chosen bound is where the paper's objective is smallest among all norms, found in few steps."""

import math

import numpy as np
import pytest

from tasks.privacy.mechanisms import optimal_clip


def slow_objective(bound: float, norms: np.ndarray, l1: np.ndarray, cost: float) -> float:
    """Eq. (20) term by term, for one example per user (whose average over its own examples is itself)."""
    total = 0.0
    for norm, size in zip(norms, l1, strict=True):
        total += cost * bound + (size / norm * max(0.0, norm - bound) if norm > 0 else 0.0)
    return total / len(norms)


def drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    norms = rng.exponential(3.0, n)
    if n > 3:
        norms[1] = norms[0]  # equal ones
    return norms, norms * rng.uniform(1.0, 30.0, n)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_it_minimises_the_objective_over_all_candidates(n):
    for seed in range(20):
        rng = np.random.default_rng([seed, n])
        norms, l1 = drawn(rng, n)
        cost = float(rng.choice([0.0, 0.5, 3.0, 10.0, 40.0]))
        actual = optimal_clip.optimal_clip(norms, l1, cost)
        least = min(slow_objective(bound, norms, l1, cost) for bound in norms)
        assert actual in norms, seed
        assert slow_objective(actual, norms, l1, cost) == pytest.approx(least, rel=1e-12), seed


def test_without_noise_nothing_is_clipped_and_with_much_everything_is():
    norms, l1 = np.array([1.0, 4.0, 2.0]), np.array([2.0, 8.0, 4.0])
    assert optimal_clip.optimal_clip(norms, l1, 0.0) == 4.0
    assert optimal_clip.optimal_clip(norms, l1, 1e6) == 1.0


def test_the_noise_of_a_whole_network_always_chooses_the_smallest_norm():
    """|g|₁/‖g‖₂ is at most √l, and the cost of noise grows with l: with 275,802 values no budget of the paper
    lets the bound be anything but the smallest norm of the batch."""
    n_parameters = 275_802
    cost = optimal_clip.noise_cost(optimal_clip.sigma(np.ones(10), 1 / 943), n_parameters)
    norms = np.linspace(1.0, 10.0, 10)
    assert cost > 1000 * math.sqrt(n_parameters)
    assert optimal_clip.optimal_clip(norms, norms * math.sqrt(n_parameters), cost) == 1.0


def test_sigma_is_that_of_the_gaussian_mechanism():
    np.testing.assert_allclose(optimal_clip.sigma(np.array([0.5, 1.0]), 0.001), [7.5528, 3.7764], rtol=1e-4)
    of_rounds = optimal_clip.sigma_of_rounds(np.array([0.5, 1.0]), 0.001, 10 / 943, 30 * 95)  # Theorem 4 on ML-100K
    np.testing.assert_allclose(of_rounds, [2.9758, 1.4879], rtol=1e-4)
    assert optimal_clip.noise_cost(np.array([1.0, 3.0]), 10) == pytest.approx(20 * math.sqrt(2 / math.pi))
