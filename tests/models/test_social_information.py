"""What the recommender adds up of all submissions of a user: equal to slow code, of the stated law, and of use."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tasks.attacks import reconstruction, submissions
from tasks.attacks.reconstruction import Published, Targets
from tasks.attacks.submissions import Measured
from tasks.models.social import information, passes
from tasks.models.social.messages import Broadcast
from tests.models.social_data import N_ITEMS, N_USERS, make, poisoned, ratings, started

ALARM = 1e-6
"""Of each test of a law here: how often it fails although the law is right."""
ALONE = {"initial_spread": 0.0, "alpha": 0.0}
"""Nothing that the recommender does not know but sensitive ratings."""
NAMES = ("privsr", "dpmf-ratings")


def alone(name, **override):
    return {key: value for key, value in ALONE.items() if name == "privsr" or key != "alpha"} | override


def matrices_of(known) -> list[np.ndarray]:
    sizes = np.unique(known.senders, return_counts=True)[1]
    parts = np.split(known.matrix, np.cumsum(sizes**2)[:-1])
    return [part.reshape(size, size) for part, size in zip(parts, sizes, strict=True)]


def watched_of(model, submissions) -> np.ndarray:
    """Submissions about published ratings, of users with sensitive ones, in order."""
    which = model._joint._as_sensitive
    return submissions.watched if which is None else submissions.values[which]


def iterate(model, visit) -> None:
    """An iteration, in which `visit` gets what is sent and answered."""
    submit = model._users.submit

    def seen(broadcast):
        sent = submit(broadcast)
        visit(replace(broadcast, vectors=broadcast.vectors.copy()), sent)
        return sent

    model._users.submit = seen
    model.iterate()
    model._users.submit = submit


class Slow:
    """One user's vector as the recommender replays it, in double precision, for any ratings."""

    def __init__(self, config, items, values) -> None:
        self.config, self.items, self.values = config, items, values
        self.vector = np.full(config.dimension, config.dimension**-0.5)

    def submissions(self, items) -> np.ndarray:
        errors = items[self.items] @ self.vector - self.values
        return 2 * errors[:, None] * self.vector

    def step(self, items) -> None:
        seen = items[self.items]
        errors = seen @ self.vector - self.values
        gradient = 2 * self.config.regularization * self.vector + 2 * errors @ seen
        self.vector = self.vector - self.config.learning_rate * gradient
        self.vector /= max(np.linalg.norm(self.vector), 1)


class Dense:
    """G and H of one user, all residuals below each other, with derivatives by differences of replays."""

    def __init__(self, model, user) -> None:
        self.tables = [channel.table for channel in model._joint._channels]
        self.mine = [table.users == user for table in self.tables]
        parts = list(zip(self.tables, self.mine, strict=True))
        items = np.concatenate([table.items[mine] for table, mine in parts])
        values = np.concatenate([table.values[mine] for table, mine in parts]).astype(float)
        self.n, self.step = int(self.mine[0].sum()), 1e-5
        changes = self.step * np.eye(len(items))[: self.n]
        self.worlds = [Slow(model.config, items, values + each) for each in (0 * values, *changes, *-changes)]
        self.gradient, self.matrix, self.lengths = np.zeros(self.n), np.zeros((self.n, self.n)), []

    def add(self, items, values, variances) -> None:
        """Of all users' submissions about targets and published ratings, and the variances of their noise."""
        actual = np.concatenate([each[mine] for each, mine in zip(values, self.mine, strict=True)]).ravel()
        variance = np.concatenate([each[mine] for each, mine in zip(variances, self.mine, strict=True)]).ravel()
        weights = 1 / (variance + passes.ROUNDING)
        expected = [world.submissions(items.astype(float)).ravel() for world in self.worlds]
        up, down = np.array(expected[1 : self.n + 1]), np.array(expected[self.n + 1 :])
        slopes = (up - down) / (2 * self.step)
        self.gradient += slopes @ (weights * (actual - expected[0]))
        self.matrix += (slopes * weights) @ slopes.T

    def go_on(self, items) -> None:
        for world in self.worlds:
            world.step(items.astype(float))
        self.lengths.append(np.linalg.norm(self.worlds[0].vector))


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_those_of_dense_least_squares_with_derivatives_by_differences(name, monkeypatch):
    """User by user, over eight iterations; some users reach the ball's surface."""
    monkeypatch.setattr(information, "LONGEST", 1)
    model = started(name, ratings(), **alone(name))
    channels = model._joint._channels
    slow = [Dense(model, user) for user in np.unique(model._joint.targets.users)]

    def visit(broadcast, sent):
        values = sent.values[model._watched], watched_of(model, sent)
        mixing = broadcast.sensitive_mixing, broadcast.public_mixing
        if name == "dpmf-ratings":
            mixing = mixing[:1] * 2
        pairs = zip(channels, mixing, strict=True)
        variances = [channel.variance[:, None] * h[channel.table.items] for channel, h in pairs]
        for user in slow:
            user.add(broadcast.vectors, values, variances)

    for _ in range(8):
        iterate(model, visit)
        for user in slow:
            user.go_on(model._recommender.vectors)
    lengths = np.array([user.lengths for user in slow])
    assert (np.abs(lengths - 1) < 1e-9).any()
    assert (lengths < 0.99).any()
    result = model._joint.information(model._recommender.vectors)
    gradient = np.concatenate([user.gradient for user in slow])
    np.testing.assert_allclose(result.gradient, gradient, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())
    for actual, user in zip(matrices_of(result), slow, strict=True):
        np.testing.assert_allclose(actual, user.matrix, rtol=1e-3, atol=1e-4 * np.abs(user.matrix).max())


@pytest.mark.parametrize("name", NAMES)
def test_where_ratings_are_what_was_expected_there_is_noise_of_the_stated_law_alone(name):
    """The control: L⁻¹ G with H = L Lᵀ is normal (KS), though H is summed over several iterations; so no one learns
    anything, and the estimates are as far from the guess as noise takes them."""
    data = ratings()
    standardised = []
    for seed in range(12):
        model = started(name, data, seed, **alone(name))
        order = np.lexsort((data.items, data.users))
        values = data.ratings.copy()
        values[order[data.sensitive[order]]] = model._joint.guess
        model = make(name, **alone(name, iterations_per_epoch=25, learning_rate=1e-3))
        model = model.fit(replace(data, ratings=values), rng=np.random.default_rng(seed))
        result, at = model.information(), 0
        for matrix in matrices_of(result):
            part = slice(at, at + len(matrix))
            standardised.append(np.linalg.solve(np.linalg.cholesky(matrix), result.gradient[part]))
            at = part.stop
    off = np.concatenate(standardised)
    assert stats.kstest(off, stats.norm.cdf).pvalue > ALARM
    assert stats.kstest(2 * off, stats.norm.cdf).pvalue < ALARM  # it can fail


def attacked(name, **override) -> tuple[float, float, float]:
    """Errors of the control, of who averages submissions about sensitive ratings, and of who uses all."""
    data = ratings()
    model = make(name, **alone(name, **override)).fit(data, rng=np.random.default_rng(0))
    public, known = ~data.sensitive, model.information()
    published = Published(
        data.users[public], data.items[public], data.ratings[public].astype(float), N_USERS, N_ITEMS, 1, 5
    )
    order = np.lexsort((data.items, data.users))
    truth = data.ratings[order[data.sensitive[order]]]
    seen, targets = model.observed(), Targets(known.senders, known.subjects)
    tuned = reconstruction.tune(published, targets, seen.items.astype(float))
    received = (each.astype(float) for each in (seen.submissions.weighted, seen.submissions.weighted_variance))
    control = reconstruction.expected_ratings(published, targets)
    averaged = submissions.from_submissions(tuned, seen.mean_items.astype(float), *received)
    measured = Measured(known.guess, known.gradient, matrices_of(known))
    together = submissions.from_information(published, (control, np.full(len(truth), 2.0)), measured)
    return tuple(float(np.abs(guess - truth).mean()) for guess in (control, averaged, together))


def test_submissions_about_published_ratings_give_sensitive_ones_away():
    """Where their noise is a hundredth, those about sensitive ratings alone say little."""
    settings = {"epsilon": 5.0, "beta": 0.01, "learning_rate": 3e-4, "iterations_per_epoch": 300}
    control, averaged, together = attacked("privsr", **settings)
    assert together < 0.7 * min(control, averaged)


def test_nothing_is_added_up_where_messages_do_not_depend_on_sensitive_ratings():
    data = ratings()
    for name in ("privsr-rigorous", "mf-ratings"):
        model = make(name).fit(data, rng=np.random.default_rng(0))
        assert model.information() is None
        assert not len(model._users.watched)
    assert make("privsr").fit(ratings(0.0), rng=np.random.default_rng(0)).information() is None


def test_the_recommender_adds_up_without_any_sensitive_rating():
    """Given what it sends and gets, nothing that it computes changes by a bit if sensitive ratings do."""
    data, results = ratings(), []
    sent = started("privsr", data)._users.submit(started("privsr", data)._recommender.broadcast())
    for of in (data, poisoned(data)):
        model, rng = started("privsr", of), np.random.default_rng(0)
        for _ in range(5):
            vectors = rng.normal(1, 1, (N_ITEMS, 4)).astype(np.float32)
            broadcast = Broadcast(vectors, np.ones_like(vectors), np.ones_like(vectors))
            model._joint.add(sent.values, sent, broadcast)
            model._joint.step(broadcast.vectors)
        results.append(model._joint.information(broadcast.vectors))
    for name, values in vars(results[0]).items():
        np.testing.assert_array_equal(values, getattr(results[1], name))
    assert results[0].gradient.std() > 0


def test_watched_submissions_are_parts_of_their_items_sum_and_carry_their_share_of_noise():
    """Given h, errors over stated deviations are normal (KS); where all are watched they add up to the sum."""
    standardised = []
    model = started("privsr", ratings())
    users, table = model._users, model._users.public
    users.watch(np.flatnonzero(table.items < 6))
    items, complete = table.items[users.watched], np.arange(N_ITEMS) < 6
    assert (table.of_item[6:] > 0).all()
    for _ in range(200):
        broadcast = model._recommender.broadcast()
        sent = users.submit(broadcast)
        sums = np.zeros_like(sent.sums)
        np.add.at(sums, items, sent.watched)
        np.testing.assert_allclose(sent.sums[complete], sums[complete], rtol=1e-4, atol=1e-4)
        assert not np.isclose(sent.sums[~complete], sums[~complete]).any()
        exact = 2 * table.errors(users.vectors, broadcast.vectors)[users.watched, None]
        exact = exact * users.vectors[table.users[users.watched]]
        variance = users.noises.public.variance(table.of_item[items])[:, None] * broadcast.public_mixing[items]
        standardised.append((sent.watched - exact) / np.sqrt(variance))
    assert stats.kstest(np.ravel(standardised), stats.norm.cdf).pvalue > ALARM
