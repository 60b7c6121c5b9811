"""Weighing guesses and measurements against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tasks.attacks.submissions import DRIFTS, likeliest, log_likelihood, weigh


def linear(seed: int, n: int, size: int = 3) -> tuple[np.ndarray, ...]:
    """Values, slopes, guesses, their variances, and variances of the noise, of n numbers that follow them."""
    rng = np.random.default_rng(seed)
    slopes, guess, doubt = rng.normal(0, 1, (n, size)), rng.normal(3, 1, n), rng.uniform(0.1, 2, n)
    variances = rng.uniform(0.01, 1, (n, size))
    truth = guess + np.sqrt(doubt) * rng.normal(size=n)
    return slopes * truth[:, None] + np.sqrt(variances) * rng.normal(size=slopes.shape), slopes, guess, doubt, variances


def test_both_together_are_the_conditional_normal_distribution() -> None:
    values, slopes, guess, doubt, variances = linear(0, 20)
    actual = weigh(guess, doubt, (slopes**2 / variances).sum(1), (slopes * values / variances).sum(1))
    for row in range(20):
        slope = slopes[row]
        covariance = np.diag(variances[row]) + doubt[row] * np.outer(slope, slope)
        gain = doubt[row] * np.linalg.solve(covariance, slope)
        expected = guess[row] + gain @ (values[row] - slope * guess[row]), doubt[row] * (1 - gain @ slope)
        assert (actual[0][row], actual[1][row]) == pytest.approx(expected, rel=1e-9)


def test_the_likelihood_is_that_of_the_values_that_are_heard() -> None:
    values, slopes, guess, doubt, variances = linear(1, 20)
    variances[3, 1] = variances[5] = np.inf
    expected = 0.0
    for row in range(20):
        heard = np.isfinite(variances[row])
        slope = slopes[row][heard]
        if heard.any():
            covariance = np.diag(variances[row][heard]) + doubt[row] * np.outer(slope, slope)
            density = multivariate_normal.logpdf(values[row][heard], slope * guess[row], covariance)
            expected += float(density) + heard.sum() * np.log(2 * np.pi) / 2
    assert log_likelihood(values, slopes, guess, doubt, variances) == pytest.approx(expected / 20, rel=1e-9)


def test_what_values_are_off_besides_is_recognised() -> None:
    """By 20,000 values and without any number being known."""
    values, slopes, guess, doubt, variances = linear(2, 20_000)
    for drift in (1e-2, 1e-1, 1.0):
        off = values + np.sqrt(drift) * np.random.default_rng(3).normal(size=values.shape)
        assert likeliest(off, slopes, guess, doubt, variances, DRIFTS) == drift
