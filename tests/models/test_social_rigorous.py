"""PrivSR with a budget that adds up: what a sensitive rating can reach, by how much, and what the ledger says of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.models.base import SILENT, Progress
from tasks.models.social.messages import Broadcast
from tasks.privacy.accounting.account import account
from tasks.privacy.remarks import gap
from tests.models.social_data import make, poisoned, ratings, started
from tests.systems import ids

QUIET = {"epsilon": math.inf}


def neighbour(data, row: int):
    """The same with one rating's value moved to the other end of the scale."""
    values = data.ratings.copy()
    values[row] = 1 if values[row] > 3 else 5
    return replace(data, ratings=values)


def test_one_sensitive_value_changes_one_submission_by_at_most_its_sensitivity():
    """Before noise, at every iteration, given the same item vectors: those of a run with noise, large as they are.
    (With the published vectors the same change reaches the user's other messages: that is why it is `none` there.)"""
    data = ratings()
    noisy = started("privsr-rigorous", data, epsilon=1.0, learning_rate=0.05)
    row = int(np.flatnonzero(data.sensitive)[0])
    models = [started("privsr-rigorous", of, **QUIET, learning_rate=0.05) for of in (data, neighbour(data, row))]
    published = [started("privsr", of, **QUIET, learning_rate=0.05) for of in (data, neighbour(data, row))]
    senders, deviations = models[0]._users.sensitive.users, []
    for _ in range(15):
        noisy.iterate()
        items = noisy.network.items.numpy()
        first, other = (model._users.submit(Broadcast(items)) for model in models)
        changes = np.linalg.norm(first.values.astype(float) - other.values, axis=1)
        changed = np.flatnonzero(changes)
        assert [(senders[i], first.items[i]) for i in changed] == [(data.users[row], data.items[row])]
        assert changes.max() <= 2 * 4 * (1 + 1e-5)
        np.testing.assert_array_equal(first.sums, other.sums)
        exchanged = [model._users.exchange() for model in models]
        np.testing.assert_array_equal(exchanged[0].sums, exchanged[1].sums)
        for model, messages in zip(models, exchanged, strict=True):
            model._users.step(items, messages)
        sent = [model._users.submit(Broadcast(items)) for model in published]
        deviations.append(np.count_nonzero(np.abs(sent[0].values - sent[1].values).sum(1)))
        for model in published:
            model._users.step(items, model._users.exchange())
    assert changes.max() > 4  # the bound is not idle
    assert max(deviations) > 1
    users = [model.network.users.numpy() for model in models]
    assert np.flatnonzero((users[0] != users[1]).any(1)).tolist() == [data.users[row]]


def two_runs():
    """Runs on ratings and on others where they are sensitive, after each of five steps on the same item vectors."""
    models = [started("privsr-rigorous", of, **QUIET) for of in (ratings(), poisoned(ratings()))]
    for seed in range(5):
        items = np.random.default_rng(seed).normal(size=(9, 4)).astype(np.float32)
        for model in models:
            model._users.step(items, model._users.exchange())
        yield models


def test_public_vectors_do_not_change_by_a_bit_given_the_same_item_vectors():
    *_, models = two_runs()
    assert torch.equal(models[0].network.public_users, models[1].network.public_users)
    assert not torch.equal(models[0].network.users, models[1].network.users)


def test_the_loss_that_is_published_tells_no_sensitive_rating():
    """Given the item vectors, it is the same to the last bit whatever the values of sensitive ratings are."""
    for models in two_runs():
        losses = [model._users.squared_error for model in models]
        assert losses[0] == losses[1] > 0


def test_without_sensitive_ratings_nothing_is_noisy_and_both_vectors_are_one():
    data = ratings(share=0.0)
    private, plain = (make("privsr-rigorous", **o).fit(data, rng=np.random.default_rng(0)) for o in ({}, QUIET))
    assert torch.equal(private.network.items, plain.network.items)
    assert torch.equal(private.network.users, private.network.public_users)


@pytest.mark.parametrize("towards", ["sums", "recommender"])
def test_noise_has_the_calibrated_deviation_in_the_sum_or_in_every_submission(towards):
    """Mean squares over 400 rounds, six standard errors of it (false alarm below 1e-8)."""
    data = ratings()
    model = started("privsr-rigorous", data, towards=towards)
    broadcast = model._recommender.broadcast()
    exact = started("privsr-rigorous", data, **QUIET)._users.submit(broadcast)
    sigma = 2 * 4 * model.noise_multiplier()
    sent = [model._users.submit(broadcast).values - exact.values for _ in range(400)]
    if towards == "sums":
        sums = np.zeros((400, *model.network.items.shape))
        for total, values in zip(sums, sent, strict=True):
            np.add.at(total, exact.items, values)
        sent = sums[:, np.unique(exact.items)]
    squares = np.square(sent) / sigma**2
    assert abs(squares.mean() - 1) < 6 * math.sqrt(2 / squares.size)


@pytest.mark.usefixtures("same_noise")
def test_the_weight_of_sensitive_submissions_is_applied_to_what_was_submitted():
    """Half the weight of the same noisy messages moves items half as far by them; none of it reaches users' side."""
    data = ratings(share=1.0)
    multiplier = make("privsr-rigorous").noise_multiplier()
    full, half = (
        started("privsr-rigorous", data, sensitive_weight=weight, regularization=0.0)
        for weight in (2 * multiplier, multiplier / 2)
    )
    start = full.network.items.numpy().copy()
    sent = full._users.submit(full._recommender.broadcast())
    np.testing.assert_array_equal(sent.values, half._users.submit(half._recommender.broadcast()).values)
    for model in (full, half):
        model._recommender.receive(sent)
    moved = [model.network.items.numpy() - start for model in (full, half)]
    np.testing.assert_allclose(moved[0], 2 * moved[1], atol=1e-4)
    assert np.abs(moved[0]).max() > 0.01


def test_the_ledger_accounts_for_all_iterations_within_the_budget():
    """Also for those that validation saves, here all after the first epoch."""
    data, short = ratings(), Progress()
    short.epoch = lambda model, _: model.epochs_done < 1
    for epsilon, progress in ((1.0, SILENT), (8.0, SILENT), (8.0, short)):
        model = make("privsr-rigorous", epsilon=epsilon).fit(data, rng=np.random.default_rng(0), progress=progress)
        assert model.iterations_done == (12 if progress is SILENT else 12 / model.config.epochs)
        first = model.ledger()[0]
        assert first.observer == "recommender-of-sums"
        assert epsilon * 0.99 < first.accounted_epsilon <= epsilon
        assert first.events[0].count == 12


@pytest.mark.parametrize(
    ("budget", "made_for", "most_left"),
    [
        ({}, "recommender-of-sums", {"co-raters": 1 / 2, "recommender-of-submissions": 1 / 5}),
        ({"colluders": 1}, "co-raters", {"recommender-of-sums": 5 / 4, "recommender-of-submissions": 1 / 4}),
        ({"colluders": 3}, "co-raters", {"recommender-of-sums": 2, "recommender-of-submissions": 1 / 2}),
        ({"towards": "recommender"}, "recommender-of-submissions", {"co-raters": 1, "recommender-of-sums": 2}),
    ],
)
def test_every_observer_has_the_noise_that_the_observer_does_not_know(budget, made_for, most_left):
    """Of items with two and with five sensitive ratings; the line of those whom the noise is made for comes first."""
    submitted = np.repeat(np.arange(2), (2, 5)).astype(np.int32)
    users = np.concatenate([np.arange(2), np.arange(5)]).astype(np.int32)
    data = replace(
        ratings(), n_users=5, n_items=2, users=users, items=submitted, ratings=np.full(7, 3, np.float32),
        sensitive=np.ones(7, bool), links=np.array([[0, 1]], np.int32),
    )  # fmt: skip
    model = make("privsr-rigorous", epsilon=2.0, **budget).fit(data, rng=np.random.default_rng(0))
    lines = {entry.observer: entry for entry in model.ledger()}
    assert next(iter(lines)) == made_for
    assert {name for name, entry in lines.items() if entry.claimed_epsilon is not None} == {made_for}
    assert lines[made_for].accounted_epsilon <= 2.0
    assert lines["friend"].accounted_epsilon == lines["recommender-of-sums"].accounted_epsilon
    for observer, share in most_left.items():
        left = lines[observer].events[0].parameters["noise_multiplier"] / model.noise_multiplier()
        assert left**2 == pytest.approx(share)


def test_the_ledger_gives_the_published_noise_no_finite_epsilon():
    for name in ("privsr", "dpmf-ratings"):
        entries = make(name, epsilon=0.1).fit(ratings(), rng=np.random.default_rng(0)).ledger()
        assert ("friend" in {entry.observer for entry in entries}) == (name == "privsr")
        for entry in entries:
            assert (entry.claimed_epsilon, entry.accounted_epsilon) == (0.1, None)
            assert account(entry.events).epsilon is None
            assert gap("claim-for-one-iteration", iterations=12, epsilon=0.1) in entry.gaps
            assert ("untrusted-recommender" in ids(entry.gaps)) == entry.observer.startswith("recommender")
    (entry,) = make("privsr", **QUIET).ledger()
    assert entry.claimed_epsilon is None
    assert ids(entry.reasons) == {"infinite-budget"}


def test_the_ledger_accounts_nothing_for_what_is_not_read():
    for name in ("mf-ratings", "soreg"):
        (entry,) = make(name).ledger()
        assert (entry.claimed_epsilon, entry.accounted_epsilon) == (None, 0.0)
        assert entry.protects == "rating"
