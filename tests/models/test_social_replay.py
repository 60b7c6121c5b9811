"""What the untrusted recommender keeps of single submissions and expects of users, against what users do."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tasks.attacks import reconstruction
from tasks.attacks.reconstruction import Published, Targets
from tasks.attacks.submissions import from_first
from tests.models.social_data import N_ITEMS, N_USERS, make, poisoned, ratings, started

QUIET = {"epsilon": math.inf}
ALARM = 1e-6
CENTRED = {"initial_spread": 0.0, "alpha": 0.0}


def submissions_of(model, data):
    """What was received, what was replayed, and the true ratings in their order."""
    seen = model.observed()
    hidden = np.flatnonzero(data.sensitive)
    order = hidden[np.lexsort((data.items[hidden], data.users[hidden]))]
    for table in (seen.submissions, model.replayed()):
        np.testing.assert_array_equal(table.senders, data.users[order])
        np.testing.assert_array_equal(table.subjects, data.items[order])
    return seen.submissions, model.replayed(), data.ratings[order].astype(float)


def test_users_who_learn_from_published_ratings_alone_are_replayed_exactly():
    """Rigorous accounting without noise, friends and spread: averages are 2 (A - r B) for the true r and no other."""
    data = ratings()
    model = make("privsr-rigorous", **QUIET, **CENTRED, learning_rate=0.01).fit(data, rng=np.random.default_rng(0))
    received, replayed, truth = submissions_of(model, data)
    expected = 2 * (replayed.expected - truth[:, None] * replayed.along)
    np.testing.assert_allclose(received.weighted, expected, atol=1e-4)
    np.testing.assert_allclose(model._replay._users.vectors, model.network.public_users.numpy(), atol=1e-5)
    assert np.abs(replayed.along - 0.5).max() > 0.01  # users have moved


@pytest.mark.parametrize("name", ["privsr", "dpmf-ratings", "privsr-rigorous"])
def test_first_and_averaged_submissions_are_off_by_noise_of_the_known_variance(name):
    """Nothing moves (step 0): errors over stated deviations are normal (KS)."""
    data = ratings()
    still = {"learning_rate": 1e-30, "epochs": 1, "iterations_per_epoch": 50, "initial_spread": 0.0}
    first, averaged = [], []
    for seed in range(30):
        model = make(name, **still).fit(data, rng=np.random.default_rng(seed))
        received, replayed, truth = submissions_of(model, data)
        expected = 2 * (replayed.expected - truth[:, None] * replayed.along)
        averaged.append((received.weighted - expected) / np.sqrt(received.weighted_variance))
        exact = (replayed.first_items / 2).sum(1) - truth  # uᵀv - r, as every coordinate of u is 1/2
        first.append((replayed.first - exact[:, None]) / np.sqrt(replayed.first_variance))
    for standardised in (first, averaged):
        assert stats.kstest(np.ravel(standardised), stats.norm.cdf).pvalue > ALARM


@pytest.mark.parametrize("name", ["privsr", "dpmf-ratings", "privsr-rigorous"])
def test_without_noise_the_first_submission_gives_the_rating_away(name):
    """Anyone who holds submissions, in the published and in the rigorous variant: noise alone is what protects."""
    data = ratings()
    model = make(name, **QUIET).fit(data, rng=np.random.default_rng(0))
    _, replayed, truth = submissions_of(model, data)
    shown = replace(data, users=data.users[~data.sensitive], items=data.items[~data.sensitive])
    known = Published(shown.users, shown.items, data.ratings[~data.sensitive].astype(float), N_USERS, N_ITEMS, 1, 5)
    targets = Targets(replayed.senders, replayed.subjects)
    tuned = reconstruction.tune(known, targets, model.observed().items.astype(float))
    messages = (each.astype(float) for each in (replayed.first_items, replayed.first, replayed.first_variance))
    actual, _ = from_first(tuned, *messages, model.config.initial_spread)
    np.testing.assert_allclose(actual, truth, atol=1e-4)


def test_the_recommender_replays_users_without_any_sensitive_rating():
    """Given what it sends and gets, nothing that it computes changes by a bit if sensitive ratings do."""
    data = ratings()
    models = [started("privsr", of) for of in (data, poisoned(data))]
    for model in models:
        rng = np.random.default_rng(0)
        for _ in range(5):
            broadcast = model._recommender.broadcast()
            broadcast.vectors[:] = rng.normal(1, 1, broadcast.vectors.shape)
            broadcast = replace(broadcast, sensitive_mixing=np.ones_like(broadcast.vectors))
            model._replay.add(np.ones((int(data.sensitive.sum()), 4), np.float32), broadcast)
            model._replay.step(broadcast.vectors)
    these, those = (model._replay.replayed() for model in models)
    for name, values in vars(these).items():
        np.testing.assert_array_equal(values, getattr(those, name))
    assert model._replay._users.vectors.std() > 0
