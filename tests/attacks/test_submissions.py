"""Who recalls submissions: exact without noise, equal to dense algebra, nothing from pure noise."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tasks.attacks import submissions
from tasks.attacks.reconstruction import Published
from tasks.attacks.submissions import DRIFTS, Measured, likeliest, log_likelihood, weigh
from tests.attacks.test_reconstruction import SIZE, World, error, world

DEVIATION = 0.05


def beginning(its: World, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of the targets' users at the start, of length 1, and what is submitted of the ratings without noise."""
    rng = np.random.default_rng(seed)
    users = SIZE**-0.5 + DEVIATION * rng.normal(size=(len(its.users), SIZE))
    users /= np.linalg.norm(users, axis=1, keepdims=True)
    mine, items = users[its.targets.users], its.items[its.targets.items]
    return mine, 2 * ((mine * items).sum(axis=1) - its.truth)[:, None] * mine


def guess_of(its: World) -> tuple[np.ndarray, np.ndarray]:
    return its.guess, np.full(len(its.guess), its.informed.variance)


def test_without_noise_the_first_submission_is_the_rating() -> None:
    """Items' vectors point everywhere; the start is known to a twentieth of a coordinate alone."""
    its = world()
    _, messages = beginning(its)
    items, silence = its.items[its.targets.items], np.zeros_like(messages)
    actual, variance = submissions.from_first(its.informed, items, messages, silence, DEVIATION)
    assert np.abs(actual - its.truth).max() < 1e-5
    assert variance.max() < 1e-5
    roughly = submissions.from_first(its.informed, items, messages, silence, DEVIATION, rounds=1)[0]
    assert np.abs(roughly - its.truth).mean() > 1e-3  # the length alone is not enough


@pytest.mark.parametrize("error_", [-1e-3, 1e-3])
def test_an_error_much_smaller_than_the_guess_has_its_own_sign(error_: float) -> None:
    """Else the vector would turn around, and the rating be off by up to the scale."""
    its = world()
    users, _ = beginning(its)
    items = its.items[its.targets.items]
    actual, _ = submissions.from_first(its.informed, items, 2 * error_ * users, np.zeros_like(users), DEVIATION)
    np.testing.assert_allclose(actual, (users * items).sum(axis=1) - error_, atol=1e-4)


def test_the_first_submission_is_weighed_as_slow_code_does() -> None:
    """Target by target, with dense matrices; the user's vector has leeway across itself alone."""
    its = world()
    informed, rng = its.informed, np.random.default_rng(1)
    variances = rng.uniform(0.01, 2, (len(its.truth), SIZE))
    messages = beginning(its)[1] + np.sqrt(variances) * rng.normal(size=variances.shape)
    items = its.items[its.targets.items]
    actual = submissions.from_first(informed, items, messages, variances, DEVIATION, rounds=3)
    for row, guess in enumerate(its.guess):
        error_, noise = 0.0, np.diag(variances[row])
        for _ in range(3):
            precision = np.eye(SIZE) / DEVIATION**2 + 4 * error_**2 * np.linalg.inv(noise)
            start = np.full(SIZE, SIZE**-0.5) / DEVIATION**2
            user = np.linalg.solve(precision, start + 2 * error_ * np.linalg.solve(noise, messages[row]))
            user /= np.linalg.norm(user)
            across = items[row] - user * (user @ items[row])
            doubt = across @ np.linalg.solve(precision, across) + 1 / (4 * user @ np.linalg.solve(noise, user))
            submitted = user @ np.linalg.solve(noise, messages[row]) / (2 * user @ np.linalg.solve(noise, user))
            weight = informed.variance / (informed.variance + doubt)
            rating = guess + weight * (user @ items[row] - submitted - guess)
            error_ = np.copysign(user @ items[row] - rating, messages[row].sum())
        assert actual[0][row] == pytest.approx(rating, rel=1e-6)
        assert actual[1][row] == pytest.approx(weight * doubt, rel=1e-6)


def test_averages_beside_what_was_expected_are_weighed_as_slow_code_does() -> None:
    its = world()
    informed, rng = its.informed, np.random.default_rng(2)
    guess, doubt = its.guess, rng.uniform(0.1, 1, len(its.truth))
    expected, along = rng.normal(1, 1, (2, len(its.truth), SIZE))
    variances = rng.uniform(0.1, 2, expected.shape)
    messages = 2 * (expected - its.truth[:, None] * along) + np.sqrt(variances) * rng.normal(size=expected.shape)
    actual = submissions.from_replay(informed, (guess, doubt), (expected, along), messages, variances, drifts=(0.1,))
    for row, slope in enumerate(-2 * along):
        covariance = np.diag(variances[row] + 0.1) + doubt[row] * np.outer(slope, slope)
        off = messages[row] - 2 * expected[row] - slope * guess[row]
        rating = guess[row] + doubt[row] * slope @ np.linalg.solve(covariance, off)
        assert actual[row] == pytest.approx(np.clip(rating, 1, 5), rel=1e-9)


def test_averages_without_noise_give_ratings_away_to_who_knows_the_answers() -> None:
    its = world()
    users = its.users[its.targets.users]
    expected = (users * its.items[its.targets.items]).sum(axis=1)[:, None] * users
    silence = np.zeros_like(users)
    tuned = its.informed
    actual = submissions.from_replay(tuned, guess_of(its), (expected, users), its.exact, silence, drifts=(1e-12,))
    assert error(actual, its) < 1e-6


def test_pure_noise_leaves_exactly_the_guess() -> None:
    its = world()
    informed, guess = its.informed, guess_of(its)
    noise = np.random.default_rng(3).normal(0, 1e6, its.exact.shape)
    unknown, items = np.full_like(noise, np.inf), its.items[its.targets.items]
    actual = submissions.from_first(informed, items, noise, unknown, DEVIATION)
    assert all(np.array_equal(*both) for both in zip(actual, guess, strict=True))
    assert np.array_equal(submissions.from_replay(informed, guess, (items, items), noise, unknown), guess[0])


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
            turned.append(submissions.turn(its.gradient[part], matrix, missed, doubt[part]))
            at += size
        offs, values = (np.concatenate([each[part] for each in turned]) for part in (0, 1))
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
