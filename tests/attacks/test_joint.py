"""Ratings of a user measured together: equal to dense least squares, exact without noise, nothing from pure noise."""

from __future__ import annotations

import numpy as np

from tasks.attacks import submissions
from tasks.attacks.reconstruction import Published
from tasks.attacks.submissions import Measured

SIZES = (1, 3, 2, 5, 1)
PUBLISHED = Published(np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(1, 3.0), len(SIZES), 1, 1.0, 5.0)


def measured(seed: int, truth: np.ndarray, inflation: float = 0.0, rows: int = 6) -> Measured:
    """G and H of `rows` random values of each user, of variance 1, with noise whose variance is `inflation`."""
    rng = np.random.default_rng(seed)
    guess, gradients, matrices, at = np.full(len(truth), 3.0), [], [], 0
    for size in SIZES:
        slopes = rng.normal(size=(rows, size))
        values = slopes @ (truth - guess)[at : at + size] + inflation**0.5 * rng.normal(size=rows)
        gradients.append(slopes.T @ values)
        matrices.append(slopes.T @ slopes)
        at += size
    return Measured(guess, np.concatenate(gradients), matrices)


def truth_of(seed: int) -> np.ndarray:
    return np.random.default_rng([seed, 1]).uniform(1.5, 4.5, sum(SIZES))


def test_ratings_of_a_user_are_estimated_as_dense_least_squares_does() -> None:
    """The prior as further rows; with too few rows for some users, too."""
    rng = np.random.default_rng(3)
    guess, doubt = rng.uniform(2.5, 3.5, sum(SIZES)), rng.uniform(0.01, 0.1, sum(SIZES))
    for rows in (2, 6):
        its = measured(0, truth_of(0), 0.01, rows)
        actual, at = submissions.from_information(PUBLISHED, (guess, doubt), its, (0.25,)), 0
        for size, matrix in zip(SIZES, its.matrices, strict=True):
            part = slice(at, at + size)
            precision = matrix / 0.25 + np.diag(1 / doubt[part])
            right = (its.gradient[part] + matrix @ its.guess[part]) / 0.25 + guess[part] / doubt[part]
            np.testing.assert_allclose(actual[part], np.clip(np.linalg.solve(precision, right), 1, 5), rtol=1e-9)
            at += size


def test_without_noise_measured_ratings_are_exact() -> None:
    truth = truth_of(1)
    guess = np.full(len(truth), 2.0), np.ones(len(truth))
    actual = submissions.from_information(PUBLISHED, guess, measured(1, truth), (1e-12,))
    np.testing.assert_allclose(actual, truth, atol=1e-6)


def test_nothing_measured_leaves_the_guess() -> None:
    guess = truth_of(2), np.ones(sum(SIZES))
    nothing = Measured(np.full(sum(SIZES), 3.0), np.zeros(sum(SIZES)), [np.zeros((size, size)) for size in SIZES])
    np.testing.assert_array_equal(submissions.from_information(PUBLISHED, guess, nothing), guess[0])


def test_the_likelihood_is_that_of_the_normal_distribution_and_chooses_the_inflation() -> None:
    """Differences between inflations, as slow code has them; over 40 worlds the true one is chosen, by the sum."""
    guess, doubt, total = np.full(sum(SIZES), 3.2), np.full(sum(SIZES), 0.5), np.zeros(3)
    inflations = (0.1, 1.0, 10.0)
    for seed in range(40):
        truth = np.random.default_rng([seed, 2]).normal(guess, doubt**0.5)
        its, at, turned = measured(seed, truth, 1.0), 0, []
        slow = np.zeros(3)
        for size, matrix in zip(SIZES, its.matrices, strict=True):
            part = slice(at, at + size)
            off = its.gradient[part] - matrix @ (guess - its.guess)[part]
            for row, inflation in enumerate(inflations):
                covariance = inflation * matrix + matrix @ np.diag(doubt[part]) @ matrix
                slow[row] -= 0.5 * (np.linalg.slogdet(covariance)[1] + off @ np.linalg.solve(covariance, off))
            missed = (guess - its.guess)[part]
            turned.append(submissions.Turned.of(its.gradient[part], matrix, missed, doubt[part]))
            at += size
        offs, values = (np.concatenate([getattr(each, name) for each in turned]) for name in ("off", "values"))
        fast = np.array([submissions.likelihood_of_directions(offs, values, inflation) for inflation in inflations])
        np.testing.assert_allclose(fast - fast[0], slow - slow[0], rtol=1e-6, atol=1e-8)
        total += fast
    assert total.argmax() == 1


def test_measurements_that_contradict_exact_guesses_are_not_believed() -> None:
    """As where what was expanded to first order is off: H promises more than G keeps."""
    truth = truth_of(4)
    guess = truth, np.full(len(truth), 1e-9)
    wrong = measured(4, truth + 0.3, rows=50)
    wrong = Measured(wrong.guess, 1e4 * wrong.gradient, [1e4 * matrix for matrix in wrong.matrices])
    np.testing.assert_allclose(submissions.from_information(PUBLISHED, guess, wrong), truth, atol=1e-3)
    assert np.abs(submissions.from_information(PUBLISHED, (truth, np.ones(len(truth))), wrong) - truth).mean() > 0.1
