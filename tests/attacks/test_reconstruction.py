"""Attackers find what they must on data whose truth is known, equal slow code, and learn nothing from pure noise."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

from tasks.attacks import reconstruction, submissions
from tasks.attacks.reconstruction import Published, Targets, TunedAttacker
from tasks.evaluation.damped_means import DAMPINGS
from tasks.evaluation.rating import mae

N_USERS, N_ITEMS, SIZE = 80, 60, 3
LONELY = 5
"""A user without published ratings."""
STD = 0.4
"""Of ratings around uᵀv."""


@dataclass
class World:
    """True vectors, ratings, and what is published of them."""

    users: np.ndarray
    items: np.ndarray
    published: Published
    targets: Targets
    truth: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """uᵀv - r of the targets."""
        return (self.users[self.targets.users] * self.items[self.targets.items]).sum(axis=1) - self.truth

    @property
    def exact(self) -> np.ndarray:
        """What is submitted about the targets, without noise."""
        return 2 * self.errors[:, None] * self.users[self.targets.users]

    @cached_property
    def informed(self) -> TunedAttacker:
        return reconstruction.tune(self.published, self.targets, self.items)

    @cached_property
    def guess(self) -> np.ndarray:
        """From published ratings alone."""
        return self.informed.guess(self.informed.profiles.vectors)


def world(seed: int = 0, n_items: int = N_ITEMS) -> World:
    rng = np.random.default_rng(seed)
    users = rng.normal(0.5, 0.25, (N_USERS, SIZE))
    items = rng.normal(2, 0.5, (n_items, SIZE))
    u, i = (ids.astype(np.int32) for ids in np.nonzero(rng.random((N_USERS, n_items)) < 0.4))
    ratings = np.clip((users[u] * items[i]).sum(axis=1) + rng.normal(0, STD, len(u)), 1, 5)
    sensitive = (rng.random(len(u)) < 0.3) | (u == LONELY)
    return World(
        users,
        items,
        Published(u[~sensitive], i[~sensitive], ratings[~sensitive], N_USERS, n_items, 1.0, 5.0),
        Targets(u[sensitive], i[sensitive]),
        ratings[sensitive],
    )


def error(predictions: np.ndarray, of: World) -> float:
    assert ((predictions >= 1) & (predictions <= 5)).all()
    return mae(of.truth, predictions)


def test_the_fit_equals_least_squares_user_by_user() -> None:
    """Written as least squares with K rows more, which draw to the vector that fits all users' ratings."""
    its, ridge = world(), 0.37
    known = its.published
    actual = reconstruction.fit(known, its.items, ridge).vectors
    rows = np.sqrt(ridge) * np.eye(SIZE)
    seen = its.items[known.items]
    centre = np.linalg.lstsq(np.vstack([seen, rows]), np.concatenate([known.ratings, np.zeros(SIZE)]))[0]
    for user in range(N_USERS):
        mine = known.users == user
        left = np.vstack([seen[mine], rows])
        right = np.concatenate([known.ratings[mine], rows @ centre])
        assert actual[user] == pytest.approx(np.linalg.lstsq(left, right)[0], rel=1e-9)
    assert not (known.users == LONELY).any()
    assert actual[LONELY] == pytest.approx(centre, rel=1e-9)


def test_leaving_out_by_the_hat_matrix_equals_fitting_again(monkeypatch: pytest.MonkeyPatch) -> None:
    its, ridge = world(), 2.0
    known = its.published
    monkeypatch.setattr(reconstruction, "BLOCK", 7)  # so that there are several blocks
    fitted = reconstruction.fit(known, its.items, ridge)
    actual = reconstruction.left_out(known, its.items, fitted)
    centre = fitted.vectors[LONELY]
    for row in range(0, len(actual), 37):
        mine = known.users == known.users[row]
        mine[row] = False
        seen = its.items[known.items[mine]]
        again = np.linalg.solve(seen.T @ seen + ridge * np.eye(SIZE), seen.T @ known.ratings[mine] + ridge * centre)
        assert actual[row] == pytest.approx(np.clip(again @ its.items[known.items[row]], 1, 5), rel=1e-9)


def test_the_controls_damping_predicts_published_ratings_best_when_each_is_left_out() -> None:
    """Noisy ratings of users and items that hardly differ want much of it, means that differ widely and exactly none;
    sensitive ratings have no say, as no one hands them over."""
    rng = np.random.default_rng(0)
    users, items = (ids.ravel().astype(np.int32) for ids in np.indices((40, 30)))
    noisy = rng.uniform(1, 5, len(users))
    exact = np.clip(3 + rng.normal(0, 0.5, 40)[users] + rng.normal(0, 0.5, 30)[items], 1, 5)
    for ratings, expected in ((noisy, max(DAMPINGS)), (exact, min(DAMPINGS))):
        known = Published(users, items, ratings, 40, 30, 1.0, 5.0)
        assert known.best == expected
        targets = Targets(users[:9], items[:9])
        control = known.expected(targets.users, targets.items, expected)
        np.testing.assert_array_equal(reconstruction.expected_ratings(known, targets), control)
        errors = {damping: np.abs(known.left_out(damping) - ratings).mean() for damping in DAMPINGS}
        assert errors[expected] == min(errors.values())


def test_the_control_equals_means_of_items_then_of_users() -> None:
    its, damping = world(), 2.5
    known = its.published
    mean = known.ratings.mean()
    of_item = {
        item: (known.ratings[known.items == item] - mean).sum() / ((known.items == item).sum() + damping)
        for item in range(N_ITEMS)
    }
    expected = []
    for user, item in zip(its.targets.users, its.targets.items, strict=True):
        mine = known.users == user
        off = [
            rating - mean - of_item[other] for rating, other in zip(known.ratings[mine], known.items[mine], strict=True)
        ]
        expected.append(np.clip(mean + of_item[item] + sum(off) / (len(off) + damping), 1, 5))
    actual = known.expected(its.targets.users, its.targets.items, damping)
    assert actual == pytest.approx(np.array(expected), rel=1e-9)
    assert (known.users != LONELY).all()


def test_leaving_a_rating_out_of_the_control_equals_means_without_it() -> None:
    """All but the mean of all ratings, which keeps it."""
    its, damping = world(), 2.5
    known = its.published
    actual = known.left_out(damping)
    off = known.ratings - known.ratings.mean()

    def of_item(item: int, without: int) -> float:
        others = (known.items == item) & (np.arange(len(off)) != without)
        return off[others].sum() / (others.sum() + damping)

    for row in range(0, len(actual), 61):
        item = of_item(known.items[row], row)
        mine = np.flatnonzero((known.users == known.users[row]) & (np.arange(len(off)) != row))
        user = sum(off[other] - of_item(known.items[other], row) for other in mine) / (len(mine) + damping)
        assert actual[row] == pytest.approx(np.clip(known.ratings.mean() + item + user, 1, 5), rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 6.0])
def test_ridge_and_share_are_those_that_predict_published_ratings_best(scale: float) -> None:
    """Of all combinations on a grid, for item vectors that are off by little and by much."""
    its, grid = world(), np.linspace(0, 1, 101)
    known, truth = its.published, its.published.ratings
    items = its.items + scale * np.random.default_rng(7).normal(0, 0.3, its.items.shape)
    informed = reconstruction.tune(known, its.targets, items)
    control = known.left_out(known.best)
    left_out = [
        reconstruction.left_out(known, items, reconstruction.fit(known, items, ridge))
        for ridge in reconstruction.RIDGES
    ]
    errors = [((prediction - truth) ** 2).mean() for prediction in left_out]
    assert informed.residual == pytest.approx(min(errors))
    best = left_out[int(np.argmin(errors))]
    by_share = [((share * control + (1 - share) * best - truth) ** 2).mean() for share in grid]
    assert informed.share == pytest.approx(grid[np.argmin(by_share)], abs=0.01)
    assert informed.variance == pytest.approx(min(by_share), rel=1e-3)


def test_a_submission_tells_of_its_user_what_its_derivatives_say() -> None:
    """The Schur complement of the Gauss-Newton matrix of (u, r), from derivatives by finite differences."""
    rng = np.random.default_rng(6)
    users, items, messages = rng.normal(size=(3, 4, SIZE))
    precisions, ratings, variance = rng.uniform(0.5, 2, (4, SIZE)), rng.normal(3, 1, 4), 0.7
    errors = (users * items).sum(axis=1) - ratings
    gradient, matrix = submissions.gauss_newton(users, items, errors, messages, precisions, variance)
    for row in range(4):

        def sent(state: np.ndarray, row: int = row) -> np.ndarray:
            return 2 * (state[:SIZE] @ items[row] - state[SIZE]) * state[:SIZE]

        state, step = np.append(users[row], ratings[row]), 1e-6 * np.eye(SIZE + 1)
        slopes = np.array(
            [(sent(state + coordinate) - sent(state - coordinate)) / 2e-6 for coordinate in step]
        ).T  # (K, K + 1)
        full = slopes.T @ (precisions[row][:, None] * slopes)
        full[SIZE, SIZE] += 1 / variance
        cross = full[:SIZE, SIZE]
        expected = full[:SIZE, :SIZE] - np.outer(cross, cross) / full[SIZE, SIZE]
        assert matrix[row] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        off = precisions[row] * (messages[row] - sent(state))
        assert gradient[row] == pytest.approx(slopes[:, :SIZE].T @ off, rel=1e-6, abs=1e-6)


def test_without_noise_submissions_give_ratings_away() -> None:
    """The positive control. Exactly, to one who knows the users' vectors; to one who fits them to many published
    ratings, to a quarter of what even the true vectors leave open."""
    its = world(n_items=600)
    informed, silence = its.informed, np.zeros_like(its.exact)
    knowing = replace(informed, profiles=replace(informed.profiles, vectors=its.users))
    actual = submissions.from_submissions(knowing, its.items, its.exact, silence, drifts=(1e-9,), rounds=1)
    assert error(actual, its) < 1e-6
    actual = submissions.from_submissions(informed, its.items, its.exact, silence, drifts=(1e-6,))
    known = its.targets.users != LONELY
    assert mae(its.truth[known], actual[known]) < np.abs(its.errors[known]).mean() / 4


def test_without_noise_a_friend_knows_a_user_as_well_as_the_system_does() -> None:
    its = world()
    senders = np.arange(N_USERS, dtype=np.int32)
    actual, victims = reconstruction.from_friends(its.informed, senders, its.users, np.zeros_like(its.users))
    exact = np.clip((its.users[its.targets.users] * its.items[its.targets.items]).sum(axis=1), 1, 5)
    assert victims == len(its.truth)
    assert error(actual, its) == pytest.approx(mae(its.truth, exact), abs=0.02)
    assert error(actual, its) < error(its.guess, its)


def test_pure_noise_leaves_exactly_the_guess_from_published_ratings() -> None:
    its = world()
    noise = np.random.default_rng(1).normal(0, 1e6, its.exact.shape)
    actual = submissions.from_submissions(its.informed, its.items, noise, np.full_like(noise, np.inf))
    assert np.array_equal(actual, its.guess)
    senders = np.arange(0, N_USERS, 2, dtype=np.int32)
    noise = np.random.default_rng(2).normal(0, 1e6, (len(senders), SIZE))
    actual, victims = reconstruction.from_friends(its.informed, senders, noise, np.full_like(noise, np.inf))
    assert np.array_equal(actual, its.guess)
    assert victims == np.isin(its.targets.users, senders).sum()


def test_one_round_weighs_measurement_and_guess_by_precision() -> None:
    """Target by target: r = ûᵀv̄ - mᵀû/(2‖û‖²), whose variance is that of the noise over 4‖û‖²."""
    its = world()
    rng = np.random.default_rng(3)
    variances = np.repeat(rng.uniform(0.1, 2, (len(its.truth), 1)), SIZE, axis=1)
    messages = its.exact + np.sqrt(variances) * rng.normal(size=variances.shape)
    items = its.items + rng.normal(0, 0.1, its.items.shape)
    actual = submissions.from_submissions(its.informed, items, messages, variances, drifts=(1e-9,), rounds=1)
    for row, (user, item) in enumerate(zip(its.targets.users, its.targets.items, strict=True)):
        vector = its.informed.profiles.vectors[user]
        measured = vector @ items[item] - messages[row] @ vector / (2 * vector @ vector)
        deviation = variances[row, 0] / (4 * vector @ vector)
        weight = its.informed.variance / (its.informed.variance + deviation)
        expected = np.clip(weight * measured + (1 - weight) * its.guess[row], 1, 5)
        assert actual[row] == pytest.approx(expected, rel=1e-6)


def test_item_vectors_of_pure_noise_leave_the_control() -> None:
    """Equation 10 believes them; who looks at how published ratings are predicted does not."""
    its = world()
    junk = np.random.default_rng(4).normal(0, 50, its.items.shape)
    control = reconstruction.expected_ratings(its.published, its.targets)
    informed = reconstruction.tune(its.published, its.targets, junk)
    literal = reconstruction.fit(its.published, junk, 1e-6).vectors
    assert informed.share > 0.8
    assert error(informed.guess(informed.profiles.vectors), its) == pytest.approx(error(control, its), abs=0.03)
    assert error(reconstruction.predict(literal, junk, its.targets, its.published), its) > error(control, its) + 0.3


def test_a_friend_who_got_nothing_useful_is_not_listened_to() -> None:
    """Vectors of other users, said to be without noise."""
    its = world()
    senders = np.arange(N_USERS, dtype=np.int32)
    wrong = np.random.default_rng(5).permutation(its.users)
    actual, _ = reconstruction.from_friends(its.informed, senders, wrong, np.zeros_like(wrong))
    assert error(actual, its) <= error(its.guess, its) + 0.02


def test_users_without_friends_keep_their_guess() -> None:
    its = world()
    senders = np.array([1, 2, LONELY], np.int32)
    actual, victims = reconstruction.from_friends(its.informed, senders, its.users[senders], np.zeros((3, SIZE)))
    has = np.isin(its.targets.users, senders)
    assert victims == has.sum() > 0
    assert np.array_equal(actual[~has], its.guess[~has])
    assert not np.array_equal(actual[has], its.guess[has])
    nobody = np.empty(0, np.int32)
    actual, victims = reconstruction.from_friends(its.informed, nobody, np.empty((0, SIZE)), np.empty((0, SIZE)))
    assert np.array_equal(actual, its.guess)
    assert victims == 0


def test_nothing_to_attack_and_nothing_to_begin_with_are_refused() -> None:
    its, none = world(), np.empty(0, np.int32)
    with pytest.raises(ValueError, match="no sensitive rating"):
        Targets(none, none)
    with pytest.raises(ValueError, match="no rating is published"):
        Published(none, none, np.empty(0), N_USERS, N_ITEMS, 1.0, 5.0)
    with pytest.raises(ValueError, match="ridge must be positive"):
        reconstruction.fit(its.published, its.items, 0.0)
