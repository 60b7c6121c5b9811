"""Private training on users differs from public training by what it releases, and by nothing else."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.models import model_class
from tasks.models.base import SILENT
from tasks.privacy import noise
from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import ghost, laplace
from tests.models.contract import Stretch
from tests.systems import ids

N_USERS, N_ITEMS = 30, 20
COMMON = {
    "epochs": 3, "batch_size": 10, "learning_rate": 0.05, "optimiser": "sgd", "values": "ratings", "dimension": 4,
    "privacy": "none", "epsilon_max": 1.0, "delta": 1e-3, "clip_norm": 1.0,
}  # fmt: skip
CONFIGS = {
    "ae": COMMON,
    "vae": COMMON | {"hidden": 6, "beta": 0.3, "prior": "standard"},
    "mf": COMMON | {"unobserved": 0.1, "learning_rate": 0.002},
    "svd": COMMON | {"unobserved": 0.1, "learning_rate": 0.002},
}
RIGOROUS = {"privacy": "dpsgd", "accounting": "rigorous", "epsilon_max": 0.2}
"""A small budget: the accountant's work grows as noise falls."""


def data(seed: int = 0, features: np.ndarray | None = None) -> TrainingData:
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.3)
    ratings = rng.integers(1, 6, len(users)).astype(np.float32)
    order = rng.permutation(len(users))  # any order of rows
    return TrainingData(
        N_USERS, N_ITEMS, users[order].astype(np.int32), items[order].astype(np.int32), features, ratings=ratings
    )


def without_4() -> TrainingData:
    """The same without a user's interactions."""
    given = data()
    left = given.users != 4
    return replace(given, users=given.users[left], items=given.items[left], ratings=given.ratings[left])


def fitted(name: str, given: TrainingData | None = None, seed: int = 0, progress=SILENT, **override):
    cls = model_class(name)
    return cls(cls.Config.model_validate(CONFIGS[name] | override)).fit(
        given or data(), rng=np.random.default_rng(seed), progress=progress
    )


def scores(model) -> torch.Tensor:
    return model.score(np.arange(N_USERS, dtype=np.int32))


def test_privacy_has_a_planned_number_of_epochs_of_its_own():
    public, private = (fitted("ae", epochs=3, private_epochs=2, privacy=privacy) for privacy in ("none", "dpsgd"))
    assert (public.epochs_done, private.epochs_done) == (3, 2)
    assert private.ledger() == fitted("ae", epochs=2, privacy="dpsgd").ledger()
    assert private.config.plans_epochs
    assert not public.config.plans_epochs


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("regularization", [0.0, 0.01])
@pytest.mark.usefixtures("one_stream")
def test_without_noise_and_clipping_private_training_is_public_training(name, regularization):
    override = {"epsilon_max": math.inf, "clip_norm": 1e9, "regularization": regularization}
    public = scores(fitted(name, regularization=regularization))
    private = scores(fitted(name, privacy="dpsgd", **override))
    torch.testing.assert_close(private, public, rtol=1e-4, atol=1e-5)
    chosen = scores(fitted(name, privacy="dpsgd-optimal-clip", **override))  # of norms, without noise: the largest
    torch.testing.assert_close(chosen, public, rtol=1e-4, atol=1e-5)


def test_rigorous_training_on_everyone_without_noise_is_public_training_in_one_batch():
    override = {"batch_size": N_USERS, "dropout": 0.0}
    public = scores(fitted("ae", **override))
    private = scores(fitted("ae", **override, **RIGOROUS | {"epsilon_max": math.inf, "clip_norm": 1e9}))
    torch.testing.assert_close(private, public, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ae", "vae"])
@pytest.mark.usefixtures("one_stream")
def test_tied_weights_train_in_private_as_in_public(name):
    public = fitted(name, tied=True)
    private = scores(fitted(name, tied=True, privacy="dpsgd", epsilon_max=math.inf, clip_norm=1e9))
    torch.testing.assert_close(private, scores(public), rtol=1e-4, atol=1e-5)
    assert torch.equal(public.network.items.weight, public.network.reader.weight.T)
    untied = sum(parameter.numel() for parameter in fitted(name).network.parameters())
    own = sum(parameter.numel() for parameter in public.network.parameters())
    assert own == untied - public.network.reader.weight.numel()


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_hold_the_users_ratings(name):
    given = data()
    model = fitted(name, given)
    rows = model.rows(np.array([5, 2]))
    for row, user in zip(rows, (5, 2), strict=True):
        own = given.users == user
        expected = torch.zeros(N_ITEMS)
        expected[torch.from_numpy(given.items[own]).long()] = torch.from_numpy(given.ratings[own])
        assert torch.equal(row, expected)
    assert set(fitted(name, given, values="binary").rows(np.arange(3)).unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("name", ["ae", "vae"])
def test_a_user_without_interactions_adds_nothing_to_a_private_step(name):
    model = fitted(name, without_4(), epochs=1, **RIGOROUS, batch_size=N_USERS)
    added = model.clipped_gradients(model.rows(np.array([4])), np.array([4]))
    assert not any(total.any() for total in added.weighted_sum(torch.ones(1)))


@pytest.mark.parametrize("override", [{}, {"examples": 3}, {"dropout": 0.3}], ids=str)
@pytest.mark.parametrize("name", ["ae", "vae"])
def test_who_is_in_a_rigorous_step_changes_nobody_elses_gradient(name, override):
    """Codes, masks and halves of rows are public, with the seed: given them, an empty place must add nothing."""
    sums = []
    settings = RIGOROUS | {"epsilon_max": math.inf, "clip_norm": 0.01, "batch_size": N_USERS, "epochs": 1}
    model = fitted(name, without_4(), **settings | override)
    model.watch = lambda released, _: sums.append(torch.cat([part.flatten() for part in released]).double())
    for users in (np.arange(N_USERS), np.delete(np.arange(N_USERS), 4)):
        model._rng = np.random.default_rng(1)
        model._released_gradients(users)
    assert sums[0].norm() > 0.01
    assert (sums[0] - sums[1]).norm() < 1e-3 * 0.01


@pytest.mark.parametrize(("values", "ratings"), [("ratings", 3.0), ("binary", None)])
def test_equal_ratings_and_no_ratings(values, ratings):
    given = data()
    equal = None if ratings is None else np.full(len(given.users), ratings, np.float32)
    assert torch.isfinite(scores(fitted("vae", replace(given, ratings=equal), values=values))).all()


def test_losses_are_those_of_the_rows_alone_and_repeat():
    model, rows = fitted("vae"), torch.eye(N_ITEMS)
    together = model.losses(rows)
    torch.testing.assert_close(together, torch.cat([model.losses(row[None]) for row in rows]), rtol=1e-5, atol=1e-5)
    assert torch.equal(together, model.losses(rows))


@pytest.mark.parametrize("name", ["mf", "svd"])
def test_models_with_users_vectors_say_nothing_of_other_rows(name):
    model = fitted(name, privacy="dpsgd")
    with pytest.raises(ConfigurationError, match="a vector for every user"):
        model.losses(torch.eye(N_ITEMS))
    with pytest.raises(ConfigurationError, match="a vector for every user"):
        model.clipped_gradients(torch.eye(N_ITEMS), np.arange(N_ITEMS))


def test_a_user_without_interactions_moves_no_item_of_a_factorisation():
    model = fitted("mf", without_4(), epochs=1)
    with ghost.record_calls(model.network) as calls:
        losses = model.network.losses(model.rows(np.array([4])), torch.tensor([4]), None)
    (outer,), _ = ghost.gradients(losses, calls)
    assert not outer.errors.any()


def test_several_examples_are_halves_of_the_row():
    model = fitted("ae", examples=400, epochs=1)
    ids, rows = model._examples(np.array([3]), model._rng)
    full = model.rows(np.array([3]))[0]
    assert set(ids.tolist()) == {3}
    assert ((rows == 0) | (rows == full)).all()
    share = float((rows != 0).sum() / ((full != 0).sum() * 400))
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(400 * int((full != 0).sum()))  # once in 1.7 million tries


@pytest.mark.parametrize(
    ("override", "reason"),
    [({"epsilon_max": math.inf}, "infinite-budget"), ({"calibration": "none"}, "true-data")],
)
def test_without_noise_the_ledger_says_whose_choice_that_was(override, reason):
    (entry,) = fitted("ae", epochs=1, privacy="dpsgd", **override).ledger()
    assert (entry.claimed_epsilon, entry.accounted_epsilon) == (None, None)
    assert ids(entry.reasons) == {reason}


def test_budgets_are_equal_uniform_or_given():
    assert set(fitted("ae", privacy="dpsgd")._budgets) == {1.0}
    drawn = fitted("ae", privacy="dpsgd", budgets="uniform", epsilon_max=2.0)._budgets
    assert (drawn > 0).all()
    assert (drawn <= 2).all()
    assert len(set(drawn)) == N_USERS
    given = np.linspace(0.1, 1.0, N_USERS)
    np.testing.assert_array_equal(fitted("ae", privacy="dpsgd", budgets=given.tolist())._budgets, given)


@pytest.mark.parametrize("quantile", [None, 0.5])
def test_popularity_starts_at_counts_that_are_paid_for(quantile):
    model = fitted("ae", epochs=1, popularity=0.4, contribution=5, quantile=quantile, **RIGOROUS)
    (entry,) = model.ledger()
    kinds = {event.kind: event for event in entry.events}
    assert set(kinds) == {"sampled-gaussian", "discrete-laplace"}
    counts = kinds["discrete-laplace"].parameters
    assert counts["noise_parameter"] * counts["sensitivity"] == pytest.approx(0.4 * 0.2)
    assert 0.875 * 0.2 < entry.accounted_epsilon <= 0.2
    exact = fitted("ae", epochs=1, popularity=0.4, learning_rate=0.0)
    counts = torch.from_numpy(np.bincount(data().items, minlength=N_ITEMS)).float().clamp(min=1).log()
    torch.testing.assert_close(exact.network.items.bias.detach(), counts - counts.mean(), rtol=1e-5, atol=1e-6)


def test_popularity_counts_no_more_of_a_user_than_is_paid_for(monkeypatch):
    """A user with every item adds `contribution` to the counts; a private start has its noise, a public one no cap."""
    given = TrainingData(N_USERS, N_ITEMS, np.zeros(N_ITEMS, np.int32), np.arange(N_ITEMS, dtype=np.int32))
    counted = []
    noisy = laplace.noisy_counts
    monkeypatch.setattr(laplace, "noisy_counts", lambda counts, *rest: counted.append(counts) or noisy(counts, *rest))
    override = RIGOROUS | {"values": "binary", "epochs": 1, "popularity": 0.4, "contribution": 5}
    with noise.recording() as draws:
        fitted("ae", given, **override)
    (counts,) = counted
    assert counts.sum() == 5
    assert counts.max() == 1
    scale = pytest.approx(-1 / math.expm1(-0.4 * 0.2 / 5))
    assert [(draw.shape, draw.scale) for draw in draws if draw.release == "item counts"] == [((N_ITEMS,), scale)]


def test_a_private_start_is_at_the_noisy_counts(monkeypatch):
    noisy, released = laplace.noisy_counts, []
    monkeypatch.setattr(laplace, "noisy_counts", lambda *given: released.append(noisy(*given)) or released[0])
    model = fitted("ae", epochs=1, popularity=0.4, contribution=5, learning_rate=0.0, **RIGOROUS)
    logs = torch.from_numpy(released[0]).clamp(min=1).double().log()
    torch.testing.assert_close(model.network.items.bias.detach(), (logs - logs.mean()).float())


def test_an_adaptive_bound_is_counted_with_noise_in_every_step():
    with noise.recording() as draws:
        model = fitted("ae", quantile=0.5, batch_size=N_USERS, **RIGOROUS)
    counts = [draw for draw in draws if draw.release == "count-of-small-norms"]
    assert [draw.scale for draw in counts] == [model.network.private.count_noise] * 3
    assert model.network.private.count_noise > 0


class TestLedger:
    def test_public_training_has_none(self):
        assert fitted("ae").ledger() == []

    @pytest.mark.parametrize("how", [RIGOROUS, {"privacy": "dpsgd"}])
    def test_what_is_spent_is_planned_whenever_validation_ends_training(self, how):
        model = fitted("ae", progress=Stretch(2), **how)
        assert model.epochs_done == 2
        assert model.ledger() == fitted("ae", **how).ledger()

    def test_a_published_constant_bound_is_accounted_over_all_epochs(self):
        (entry,) = fitted("ae", privacy="dpsgd").ledger()
        least = math.sqrt(2 * math.log(1250)) * math.sqrt(10)
        (event,) = entry.events
        assert (event.count, event.parameters["noise_multiplier"]) == (3, pytest.approx(least))
        assert entry.accounted_epsilon == pytest.approx(account(entry.events, 1e-3).epsilon)

    def test_a_chosen_bound_has_no_finite_epsilon(self):
        (entry,) = fitted("ae", privacy="dpsgd-optimal-clip").ledger()
        assert entry.accounted_epsilon is None
        assert ids(entry.reasons) == {"clip-from-gradients"}

    def test_users_below_the_first_step_are_counted(self):
        budgets = [0.01, 0.01] + [0.2] * 28
        (entry,) = fitted("ae", budgets=budgets, **RIGOROUS).ledger()
        assert [of.values["without"] for of in entry.gaps if of.id == "budget-levels"] == [2]
