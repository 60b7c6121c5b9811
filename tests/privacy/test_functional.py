"""The functional mechanism's noise: its scale is the published one, its quadratic form symmetric."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tasks.privacy.mechanisms import functional


@pytest.mark.parametrize(("dim", "scale"), [(20, 0.00375), (40, 0.01375), (60, 0.03), (80, 0.0525), (100, 0.08125)])
def test_noise_scale_of_the_published_settings(dim: int, scale: float) -> None:
    """docs/methods.md §10: ε = 0.4, |D| = 80,000."""
    assert functional.noise_scale(dim, 0.4, 80_000) == pytest.approx(scale, rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_sensitivity_is_the_largest_change_that_one_triple_can_cause(dim: int) -> None:
    """Coefficients are multilinear in q̄ and so extreme at corners of [-1, 1]^d, where the bound of Lemma 4.3 is above
    what any pair of corners reaches, and is reached by the two norms added."""
    corners = [np.array(corner) for corner in itertools.product([-1, 1], repeat=dim)]
    coefficients = [np.concatenate([-q / 2, np.outer(q, q).ravel() / 8]) for q in corners]
    changes = [np.abs(a - b).sum() for a in coefficients for b in coefficients]
    assert max(changes) <= functional.sensitivity(dim)
    assert functional.sensitivity(dim) == 2 * max(np.abs(c).sum() for c in coefficients)


@pytest.mark.parametrize(("draws", "variance"), [("monomial", 2.0), ("pair", 4.0)])
def test_noise_is_laplace_and_symmetric(draws: functional.Draws, variance: float) -> None:
    """Kolmogorov-Smirnov at 1e-5 for the linear and the diagonal noise; five standard errors for the variance of the
    coefficient of h_m h_n, Laplace's 2 scale² for each draw in it."""
    dim, scale, rng = 2_000, 0.03, np.random.default_rng(1)
    linear, quadratic = functional.draw(dim, scale, rng, draws)
    np.testing.assert_array_equal(quadratic, quadratic.T)
    for noise in (linear, np.diag(quadratic)):
        assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > 1e-5
    squares = (2 * quadratic[np.triu_indices(dim, 1)]) ** 2
    assert abs(squares.mean() - variance * scale**2) <= 5 * squares.std() / np.sqrt(len(squares))
