"""Who recalls what submissions answered: exact without noise, equal to slow code, nothing from pure noise."""

from __future__ import annotations

import numpy as np
import pytest

from tasks.attacks import submissions
from tasks.attacks.reconstruction import TunedAttacker
from tests.attacks.test_reconstruction import SIZE, World, error, world

DEVIATION = 0.05


def beginning(its: World, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of the targets' users at the start, of length 1, and what is submitted of the ratings without noise."""
    rng = np.random.default_rng(seed)
    users = SIZE**-0.5 + DEVIATION * rng.normal(size=(len(its.users), SIZE))
    users /= np.linalg.norm(users, axis=1, keepdims=True)
    mine, items = users[its.targets.users], its.items[its.targets.items]
    return mine, 2 * ((mine * items).sum(axis=1) - its.truth)[:, None] * mine


def guess_of(tuned: TunedAttacker) -> tuple[np.ndarray, np.ndarray]:
    guess = tuned.guess(tuned.profiles.vectors)
    return guess, np.full(len(guess), tuned.variance)


def test_without_noise_the_first_submission_is_the_rating() -> None:
    """Items' vectors point everywhere; the start is known to a twentieth of a coordinate alone."""
    its = world()
    _, messages = beginning(its)
    items, silence = its.items[its.targets.items], np.zeros_like(messages)
    actual, variance = submissions.from_first(its.informed(), items, messages, silence, DEVIATION)
    assert np.abs(actual - its.truth).max() < 1e-5
    assert variance.max() < 1e-5
    roughly = submissions.from_first(its.informed(), items, messages, silence, DEVIATION, rounds=1)[0]
    assert np.abs(roughly - its.truth).mean() > 1e-3  # the length alone is not enough


@pytest.mark.parametrize("error_", [-1e-3, 1e-3])
def test_an_error_much_smaller_than_the_guess_has_its_own_sign(error_: float) -> None:
    """Else the vector would turn around, and the rating be off by up to the scale."""
    its = world()
    users, _ = beginning(its)
    items = its.items[its.targets.items]
    actual, _ = submissions.from_first(its.informed(), items, 2 * error_ * users, np.zeros_like(users), DEVIATION)
    np.testing.assert_allclose(actual, (users * items).sum(axis=1) - error_, atol=1e-4)


def test_the_first_submission_is_weighed_as_slow_code_does() -> None:
    """Target by target, with dense matrices; the user's vector has leeway across itself alone."""
    its = world()
    informed, rng = its.informed(), np.random.default_rng(1)
    variances = rng.uniform(0.01, 2, (len(its.truth), SIZE))
    messages = beginning(its)[1] + np.sqrt(variances) * rng.normal(size=variances.shape)
    items = its.items[its.targets.items]
    actual = submissions.from_first(informed, items, messages, variances, DEVIATION, rounds=3)
    for row, guess in enumerate(guess_of(informed)[0]):
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
    informed, rng = its.informed(), np.random.default_rng(2)
    guess, doubt = guess_of(informed)[0], rng.uniform(0.1, 1, len(its.truth))
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
    tuned = its.informed()
    actual = submissions.from_replay(tuned, guess_of(tuned), (expected, users), its.exact, silence, drifts=(1e-12,))
    assert error(actual, its) < 1e-6


def test_pure_noise_leaves_exactly_the_guess() -> None:
    its = world()
    informed, guess = its.informed(), guess_of(its.informed())
    noise = np.random.default_rng(3).normal(0, 1e6, its.exact.shape)
    unknown, items = np.full_like(noise, np.inf), its.items[its.targets.items]
    actual = submissions.from_first(informed, items, noise, unknown, DEVIATION)
    assert all(np.array_equal(*both) for both in zip(actual, guess, strict=True))
    assert np.array_equal(submissions.from_replay(informed, guess, (items, items), noise, unknown), guess[0])
