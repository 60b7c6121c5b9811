"""The laws of PrivSR's noise: what sums follow, whoever draws the shares, and what receivers know of it."""

import math

import numpy as np
import pytest
from scipy import stats

from tasks.models.social.messages import Broadcast
from tasks.privacy.mechanisms.shared_noise import SharedNoise
from tests.models.social_data import make, ratings, started

ROUNDS = 600
ALARM = 1e-4
"""Of each test here: how often it fails although the law is right."""


def submitted(model, rounds: int = ROUNDS) -> tuple[np.ndarray, np.ndarray]:
    """Noise alone: sums per item of submissions about sensitive and non-sensitive ratings, (rounds, n_items, K)."""
    items = model.network.items.numpy()
    exact = started("privsr", ratings(), epsilon=math.inf)._users.submit(Broadcast(items))
    result = []
    for _ in range(rounds):
        sent = model._users.submit(model._recommender.broadcast())
        sums = np.zeros_like(items)
        np.add.at(sums, sent.items, sent.values - exact.values)
        result.append((sums, sent.sums - exact.sums))
    return tuple(np.stack(part) for part in zip(*result, strict=True))


def test_an_items_noise_adds_up_to_the_laplace_law_of_theorem_1():
    """Kolmogorov-Smirnov over items and coordinates; both kinds of ratings, which have an h of their own."""
    data = ratings()
    model = started("privsr", data)
    for noise, hidden, budget in zip(submitted(model), (True, False), (7.5, 15.0), strict=True):
        has = np.bincount(data.items[data.sensitive == hidden], minlength=data.n_items) > 0
        assert not noise[:, ~has].any()
        scale = 2 * 4 * math.sqrt(4) / budget
        law = stats.laplace(scale=scale)
        assert stats.kstest(noise[:, has].ravel(), law.cdf).pvalue > ALARM
        assert stats.kstest(noise[:, has].ravel(), stats.laplace(scale=1.1 * scale).cdf).pvalue < ALARM  # it can fail


def test_noise_of_the_two_kinds_of_ratings_is_independent():
    """Of their sizes, too: with one h for both these would be correlated by about 0.2."""
    data = ratings()
    sensitive, public = submitted(started("privsr", data))
    both = [np.bincount(data.items[data.sensitive == hidden], minlength=data.n_items) > 0 for hidden in (True, False)]
    items = both[0] & both[1]
    sizes = [np.abs(noise[:, items]).ravel() for noise in (sensitive, public)]
    correlation = stats.pearsonr(*sizes)
    assert correlation.pvalue > ALARM


@pytest.mark.parametrize("watched", [True, False])
def test_what_friends_add_follows_the_laplace_law_of_theorem_2(watched):
    """Whether all messages of a sum are drawn at once, or some by themselves because someone looks at them."""
    model = started("privsr", ratings())
    friends = model._users.friends
    if not watched:
        friends.watched = friends.watched[:0]
        friends._rest = (friends.counts > 0).astype(np.float32)
    users = model._users.shown
    exact = -2 * (friends._weights @ users)
    noise = np.stack([friends.exchange(users).sums - exact for _ in range(ROUNDS)])
    has = friends.counts > 0
    assert not has[0]
    assert not noise[:, ~has].any()
    law = stats.laplace(scale=2 * math.sqrt(4) / 5.0)
    assert stats.kstest(noise[:, has].ravel(), law.cdf).pvalue > ALARM


def test_a_single_friends_message_carries_its_share():
    """Its variance is that of the sum over the number of friends: chi-squared tests given h would be sharper; this
    compares with six standard errors."""
    model = started("privsr", ratings())
    friends, users = model._users.friends, model._users.shown
    watched = np.stack([friends.exchange(users).watched for _ in range(ROUNDS)])
    exact = -2 * friends.similarity[friends.watched, None] * users[friends.senders[friends.watched]]
    ratio = (watched - exact) ** 2 / friends.noise.variance(friends.counts[friends.receivers[friends.watched]])[:, None]
    assert abs(ratio.mean() - 1) < 6 * ratio.mean((0,)).std() / math.sqrt(ratio.shape[1] * ratio.shape[2])
    senders = friends.senders[friends.watched]
    assert len(np.unique(senders)) == len(senders)
    assert (friends.similarity[friends.watched] > 0).all()


def test_a_share_is_the_whole_for_an_item_with_one_rater_and_for_noise_that_is_not_shared():
    assert SharedNoise("gaussian", 2.0).share(np.array([1, 4])).tolist() == [1.0, 0.5]
    assert SharedNoise("gaussian", 2.0, colluders=3).share(np.array([1, 4, 7])).tolist() == [1.0, 1.0, 0.5]
    assert SharedNoise("gaussian", 2.0, colluders=math.inf).share(np.array([1, 4])).tolist() == [1.0, 1.0]
    assert SharedNoise("laplace", 3.0).variance(np.array([2])).tolist() == pytest.approx([9.0])


@pytest.mark.usefixtures("same_noise")
def test_h_does_not_depend_on_ratings_and_is_never_zero():
    first, other = (started("privsr", ratings(share))._recommender.broadcast() for share in (0.0, 0.5))
    np.testing.assert_array_equal(first.sensitive_mixing, other.sensitive_mixing)
    np.testing.assert_array_equal(first.public_mixing, other.public_mixing)
    many = SharedNoise("laplace", 1.0).mixing((4_000_000, 1), np.random.default_rng(0))
    assert many.min() > 0


@pytest.fixture(scope="module")
def unmoved():
    """Models whose averages differ from the signal by noise alone, since steps have length 0."""
    still = {"learning_rate": 1e-30, "epochs": 1, "iterations_per_epoch": 40}
    return [make("privsr", **still).fit(ratings(), rng=np.random.default_rng(seed)) for seed in range(20)]


@pytest.mark.parametrize("kind", ["submissions", "friends"])
def test_receivers_know_the_variance_of_the_noise_in_their_averages(kind, unmoved):
    """Errors over stated deviations are normal given h for the weighted average (KS), and have mean square 1 for the
    plain one."""
    squares, standardised = [], []
    for model in unmoved:
        received = getattr(model.observed(), kind)
        users, items = model.network.users.numpy(), model.network.items.numpy()
        signal = users[received.senders]
        if kind == "submissions":
            table = model._users.sensitive
            np.testing.assert_array_equal(received.senders, table.users)
            signal = (2 * table.errors(users, items))[:, None] * signal
        squares.append((received.mean - signal) ** 2 / received.mean_variance[:, None])
        standardised.append((received.weighted - signal) / np.sqrt(received.weighted_variance))
    assert stats.kstest(np.ravel(standardised), stats.norm.cdf).pvalue > ALARM
    assert np.mean(squares) == pytest.approx(1, abs=0.1)
    assert (received.weighted_variance.mean(1) < received.mean_variance).all()
