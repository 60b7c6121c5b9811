"""The piecewise mechanism follows its density, which is unbiased and never reveals more than ε."""

import math

import numpy as np
import pytest
from scipy import stats

from tasks.privacy.mechanisms import piecewise

BUDGETS = [1e-3, 0.1, 1.0, 2.5, 20.0, 60.0]
INPUTS = [-1.0, -0.3, 0.0, 0.7, 1.0]


def pieces(x: float, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges (4,) and densities (3,) of the mechanism, as docs/methods.md §1 prints them."""
    t = np.exp(epsilon / 2)
    c = (t + 1) / (t - 1)
    left = (c + 1) / 2 * x - (c - 1) / 2
    p = (np.exp(epsilon) - t) / (2 * t + 2)
    return np.array([-c, left, left + c - 1, c]), np.array([p / np.exp(epsilon), p, p / np.exp(epsilon)])


def cdf(edges: np.ndarray, densities: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.interp(at, edges, np.concatenate([[0], np.cumsum(densities * np.diff(edges))]))


def variance(x: float, epsilon: float) -> float:
    """Of the output for input x, t being e^(ε/2): x²/(t - 1) + (t + 3)/(3 (t - 1)²)."""
    inverse, rest = math.exp(-epsilon / 2), -math.expm1(-epsilon / 2)  # 1/t and 1 - 1/t
    return inverse / rest * x * x + inverse * (1 + 3 * inverse) / (3 * rest * rest)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 20.0])
@pytest.mark.parametrize("x", INPUTS)
def test_density_integrates_to_one_with_the_stated_mean_and_variance(x: float, epsilon: float) -> None:
    edges, densities = pieces(x, epsilon)
    moments = [(densities * np.diff(edges**k) / k).sum() for k in (1, 2, 3)]
    assert moments[:2] == pytest.approx([1, x], rel=1e-6, abs=1e-6)
    assert variance(x, epsilon) == pytest.approx(moments[2] - moments[1] ** 2, rel=1e-5)
    assert piecewise.bound(epsilon) == pytest.approx(edges[-1])
    real = np.diff(edges) > 1e-9  # at x = 1 and -1 one of the pieces is empty
    middles = (edges[1:] + edges[:-1])[real] / 2
    expected = np.log(densities[real])
    np.testing.assert_allclose(piecewise.log_density(middles, x, epsilon), expected, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [*BUDGETS, 1e3])
def test_no_output_is_more_than_exp_epsilon_times_likelier_under_another_input(epsilon: float) -> None:
    limit = piecewise.bound(epsilon)
    outputs = np.linspace(-limit, limit, 1001)
    densities = np.stack([piecewise.log_density(outputs, x, epsilon) for x in np.linspace(-1, 1, 41)])
    largest = (densities.max(axis=0) - densities.min(axis=0)).max()
    assert largest == pytest.approx(epsilon, rel=1e-12)


def test_nothing_lies_beyond_the_bound() -> None:
    limit = piecewise.bound(1.0)
    assert piecewise.log_density(np.array([limit * 1.001]), 0.0, 1.0) == -np.inf


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("x", INPUTS)
def test_outputs_follow_the_density(x: float, epsilon: float) -> None:
    """Kolmogorov-Smirnov at 1e-5: a sound mechanism fails one of the 20 cases with probability 2e-4."""
    rng = np.random.default_rng(7)
    outputs = piecewise.perturb(np.full(50_000, x), epsilon, rng)
    edges, densities = pieces(x, epsilon)
    assert stats.kstest(outputs, lambda at: cdf(edges, densities, at)).pvalue > 1e-5


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_the_mean_of_many_outputs_is_the_input(epsilon: float) -> None:
    """Five standard errors: a false alarm in one of 1.7 million runs, per input."""
    n, rng = 100_000, np.random.default_rng(11)
    for x in INPUTS:
        error = piecewise.perturb(np.full(n, x), epsilon, rng).mean() - x
        assert abs(error) <= 5 * np.sqrt(variance(x, epsilon) / n) + 1e-12


@pytest.mark.parametrize("epsilon", [1e-300, 1e-3, 1.0, 1e3, 1e5])
def test_outputs_are_finite_and_bounded_at_extreme_budgets(epsilon: float) -> None:
    values = np.linspace(-1, 1, 10_001)
    outputs = piecewise.perturb(values, epsilon, np.random.default_rng(0))
    assert np.isfinite(outputs).all()
    assert np.abs(outputs).max() <= piecewise.bound(epsilon)


def test_shape_is_kept_input_is_untouched_and_the_generator_decides() -> None:
    values = np.full((3, 4, 5), 0.5, dtype=np.float32)
    first = piecewise.perturb(values, 1.0, np.random.default_rng(3))
    assert first.shape == values.shape
    assert (values == 0.5).all()
    np.testing.assert_array_equal(first, piecewise.perturb(values, 1.0, np.random.default_rng(3)))
    assert len(np.unique(first)) == first.size
    assert piecewise.perturb(np.empty((0, 3)), 1.0, np.random.default_rng(3)).shape == (0, 3)
