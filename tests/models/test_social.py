"""PrivSR's parties: equal to slow obvious code without noise, and each knows no more than it may."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from tasks.core.errors import DivergenceError
from tasks.models.social import messages as said
from tasks.models.social.parties import similarities
from tasks.models.social.ratings import RatingTable
from tests.models.social_data import BASE, CONFIGS, N_ITEMS, N_USERS, make, poisoned, ratings, started, vectors

SILENT = {"epsilon": math.inf, "projection": False}


def cosine(data, own: int, other: int) -> float:
    """S_if from dictionaries."""
    rows = list(zip(data.users, data.items, data.ratings.astype(float), data.sensitive, strict=True))
    first, second = ({i: r for u, i, r, hidden in rows if u == user and not hidden} for user in (own, other))
    both = first.keys() & second.keys()
    if not both:
        return 0.0
    lengths = sum(first[i] ** 2 for i in both) * sum(second[i] ** 2 for i in both)
    return sum(first[i] * second[i] for i in both) / math.sqrt(lengths)


def descend(data, users, items, iterations, *, alpha=0.0, sensitive=True):
    """Algorithm 1 without noise and projection, rating by rating and link by link, in double precision."""
    step, ridge = BASE["learning_rate"], BASE["regularization"]
    kept = [
        (u, j, float(r))
        for u, j, r, hidden in zip(data.users, data.items, data.ratings, data.sensitive, strict=True)
        if sensitive or not hidden
    ]
    friends = [(i, f, cosine(data, i, f)) for i, f in data.links if i != f]
    for _ in range(iterations):
        gradient = 2 * ridge * items
        for i, j, r in kept:
            gradient[j] += 2 * (users[i] @ items[j] - r) * users[i]
        items = items - step * gradient
        gradient = 2 * ridge * users
        for i, j, r in kept:
            gradient[i] += 2 * (users[i] @ items[j] - r) * items[j]
        for i, f, similarity in friends:
            gradient[i] += alpha * 2 * similarity * (users[i] - users[f])
        users = users - step * gradient
    return users, items


@pytest.mark.parametrize(
    ("name", "override", "alpha", "sensitive"),
    [
        ("mf-ratings", {"projection": False}, 0.0, False),
        ("soreg", {"projection": False}, 0.3, False),
        ("dpmf-ratings", SILENT, 0.0, True),
        ("privsr", SILENT | {"alpha": 0.0}, 0.0, True),  # plain MF of all ratings
        ("privsr", SILENT, 0.3, True),  # SoReg of all ratings
    ],
)
def test_without_noise_and_projection_it_is_gradient_descent(name, override, alpha, sensitive):
    data = ratings()
    model = started(name, data, **override)
    expected = descend(data, *vectors(model), 10, alpha=alpha, sensitive=sensitive)
    for _ in range(10):
        model.iterate()
    for actual, slow in zip(vectors(model), expected, strict=True):
        np.testing.assert_allclose(actual, slow, rtol=1e-6, atol=1e-6)


def test_published_gradient_of_users_is_that_of_the_objective():
    """By central differences of the user's own part of J, with a message's noise in it."""
    data = ratings()
    model = started("privsr", data, projection=True)
    users = model._users
    messages = users.exchange()
    before, items = users.vectors.astype(np.float64).copy(), model.network.items.numpy().astype(np.float64)

    def objective(user: int, vector: np.ndarray) -> float:
        mine = data.users == user
        fit = ((data.ratings[mine] - items[data.items[mine]] @ vector) ** 2).sum()
        total, _ = users.friends.total[user], users.friends
        social = total * (vector @ vector) + vector @ messages.sums[user]  # Σ S ‖u - u_f‖² less what has no u
        return fit + 0.3 * social + BASE["regularization"] * (vector @ vector)

    users.steps = users.steps._replace(projection=False)
    users.step(model.network.items.numpy(), messages)
    for user in (0, 1, 2, 5):
        gradient = [
            (objective(user, before[user] + nudge) - objective(user, before[user] - nudge)) / 2e-5
            for nudge in 1e-5 * np.eye(before.shape[1])
        ]
        expected = before[user] - BASE["learning_rate"] * np.array(gradient)
        np.testing.assert_allclose(users.vectors[user], expected, atol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_users_are_in_the_unit_ball_after_every_iteration(name, share):
    model = started(name, ratings(share), learning_rate=0.05)
    norms = []
    for _ in range(20):
        model.iterate()
        norms.append(np.linalg.norm(vectors(model)[0], axis=1))
        assert np.linalg.norm(model._users.shown.astype(np.float64), axis=1).max() <= 1
    assert np.max(norms) <= 1
    if name != "mf-ratings" and share < 1:
        assert np.max(norms) > 0.999  # projection had something to do


def test_similarity_is_the_cosine_over_items_that_both_published():
    data = ratings()
    public = ~data.sensitive
    table = RatingTable(data.users[public], data.items[public], data.ratings[public], N_USERS, N_ITEMS)
    expected = [cosine(data, i, f) for i, f in data.links]
    np.testing.assert_allclose(similarities(table, data.links), expected, atol=1e-6)
    assert 0 in expected


def test_similarity_does_not_change_by_a_bit_if_sensitive_ratings_do():
    data = ratings()
    first, other = (started("privsr", of)._users.friends.similarity for of in (data, poisoned(data)))
    np.testing.assert_array_equal(first, other)
    changed = replace(data, sensitive=np.zeros_like(data.sensitive))  # had they been read, it would have shown
    assert not np.array_equal(first, started("privsr", changed)._users.friends.similarity)


@pytest.mark.parametrize("name", ["mf-ratings", "soreg"])
def test_what_reads_published_ratings_alone_does_not_change_if_sensitive_ones_do(name):
    data = ratings()
    first, other = (make(name).fit(of, rng=np.random.default_rng(1)) for of in (data, poisoned(data)))
    assert torch.equal(first.network.users, other.network.users)
    assert torch.equal(first.network.items, other.network.items)


@pytest.mark.usefixtures("same_noise")
def test_the_recommender_says_the_same_to_the_same_messages_whatever_was_rated():
    """Messages of one run, handed to the recommender of a run on poisoned ratings."""
    data = ratings()
    model, other = started("privsr", data), started("privsr", poisoned(data))
    for _ in range(5):
        heard = model._recommender.broadcast(), other._recommender.broadcast()
        for part in fields(said.Broadcast):
            np.testing.assert_array_equal(*(getattr(broadcast, part.name) for broadcast in heard))
        submissions = model._users.submit(heard[0])
        model._recommender.receive(submissions)
        other._recommender.receive(submissions)
        model._users.step(model._recommender.vectors, model._users.exchange())
    assert not np.array_equal(other._users.submit(heard[1]).values, submissions.values)


@pytest.mark.usefixtures("same_noise")
def test_a_users_messages_depend_on_own_ratings_friends_and_the_recommender_alone():
    """Another user's ratings changed: everyone else's submissions of that iteration stay, with the same noise."""
    data = ratings()
    victim = int(data.users[data.sensitive & (data.ratings != 3)][0])
    changed = replace(data, ratings=np.where(data.users == victim, 6 - data.ratings, data.ratings))
    models = [started("privsr", of) for of in (data, changed)]
    broadcast = models[0]._recommender.broadcast()
    sent = [model._users.submit(broadcast) for model in models]
    others = models[0]._users.sensitive.users != victim
    np.testing.assert_array_equal(sent[0].values[others], sent[1].values[others])
    assert not np.array_equal(sent[0].values[~others], sent[1].values[~others])


def test_budgets_of_methods_section_10():
    config = make("privsr", epsilon=0.1, beta=0.1).config
    assert config.sensitive_epsilon == pytest.approx(0.11)
    assert config.public_epsilon == pytest.approx(1.1)
    assert make("privsr", epsilon=0.01, beta=1.0).config.sensitive_epsilon == pytest.approx(0.02)


def test_messages_are_those_of_the_protocol():
    data = ratings()
    model = make("privsr").fit(data, rng=np.random.default_rng(0))
    n, users, links = len(data.users), len(np.unique(data.users)), (data.links[:, 0] != data.links[:, 1]).sum()
    actual = model.communication()
    assert actual["messages"] == users + n + 2 * links  # vectors and h; submissions; h and vectors of friends
    assert actual["bytes"] == (2 * n + n + 2 * links) * 4 * 4
    assert actual["iterations"] == 12
    silent = make("privsr", epsilon=math.inf).fit(data, rng=np.random.default_rng(0)).communication()
    assert silent["messages"] == users + n + links
    assert silent["bytes"] == (n + n + links) * 4 * 4
    assert make("mf-ratings").fit(data, rng=np.random.default_rng(0)).communication() == {"iterations": 12}


def test_training_that_diverges_is_refused():
    with pytest.raises(DivergenceError, match="diverges"), np.errstate(all="ignore"):
        make("mf-ratings", learning_rate=50.0, epochs=100, projection=False).fit(
            ratings(), rng=np.random.default_rng(0)
        )
