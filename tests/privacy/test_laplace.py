"""Noisy counts: bounded contributions chosen at random, and discrete Laplace noise of the right width."""

import numpy as np
import pytest
from scipy import stats

from tasks.privacy.mechanisms import laplace


def interactions(rng: np.random.Generator, n: int = 5_000) -> tuple[np.ndarray, np.ndarray]:
    return rng.integers(0, 60, n).astype(np.int32), rng.integers(0, 90, n).astype(np.int32)


@pytest.mark.parametrize("contribution", [1, 7, 50, 1_000])
def test_every_user_keeps_as_many_distinct_items_as_allowed(contribution: int) -> None:
    rng = np.random.default_rng(1)
    users, items = interactions(rng)
    kept = laplace.cap(users, items, contribution, rng)
    for user in range(60):
        distinct = len(set(items[users == user]))
        chosen = items[kept & (users == user)]
        assert len(chosen) == len(set(chosen)) == min(contribution, distinct)
    assert laplace.cap(users[:0], items[:0], contribution, rng).shape == (0,)


def test_every_item_of_a_user_is_equally_likely_to_be_kept() -> None:
    """Five standard errors for each of 10 items: a false alarm in one of 170,000 runs."""
    n, rng = 20_000, np.random.default_rng(2)
    users, items = np.repeat(np.arange(n), 10), np.tile(np.arange(10), n)
    kept = laplace.cap(users, items, 3, rng)
    rates = np.bincount(items[kept], minlength=10) / n
    assert np.abs(rates - 0.3).max() <= 5 * np.sqrt(0.3 * 0.7 / n)


@pytest.mark.parametrize(("epsilon", "contribution"), [(0.1, 1), (1.0, 1), (1.0, 20), (5.0, 2)])
def test_noise_is_discrete_laplace(epsilon: float, contribution: int) -> None:
    """Chi-square at 1e-5 over cells of 20 expected draws or more."""
    n, decay = 200_000, epsilon / contribution
    noise = laplace.noisy_counts(np.zeros(n, dtype=np.int64), epsilon, contribution, np.random.default_rng(4))
    widest = int(np.log(n * np.tanh(decay / 2) / 20) / decay)
    values = np.arange(-widest, widest + 1)
    expected = n * np.tanh(decay / 2) * np.exp(-decay * np.abs(values))
    observed = np.bincount(noise[np.abs(noise) <= widest] + widest, minlength=len(values))
    rest = n - observed.sum(), n - expected.sum()
    assert stats.chisquare(np.append(observed, rest[0]), np.append(expected, rest[1])).pvalue > 1e-5


def test_counts_are_shifted_not_scaled() -> None:
    counts = np.array([[0, 10**12], [5, -3]])
    noisy = laplace.noisy_counts(counts, 30.0, 1, np.random.default_rng(5))
    np.testing.assert_array_equal(noisy, counts)  # e^-30: noise other than 0 has probability 4e-13 here
    zero = laplace.noisy_counts(np.zeros_like(counts), 0.1, 1, np.random.default_rng(6))
    np.testing.assert_array_equal(laplace.noisy_counts(counts, 0.1, 1, np.random.default_rng(6)) - zero, counts)
