"""Canaries that are out leave no trace; those that are in are found where noise is off, and sound noise stands."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from tasks.attacks.canaries import Canaries, Watcher, draw, insert, loss_scores
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpae import DPAE, DPAEConfig
from tasks.models.vae.autoencoder import VAE, VAEConfig
from tasks.privacy.audits import one_run
from tasks.privacy.mechanisms import dpsgd

N_USERS, N_ITEMS, M, EACH = 150, 300, 60, 4
CONFIG = {
    "epochs": 40, "batch_size": N_USERS + M, "learning_rate": 0.2, "momentum": 0.5, "dimension": 3,
    "epsilon": 1.0, "delta": 1e-4, "clip_norm": 2.0,
}  # fmt: skip


def popular(seed: int = 0) -> TrainingData:
    """Users with interactions of unequal items, the last ones nearly untouched."""
    chances = 0.4 * np.exp(-np.arange(N_ITEMS) / 40)
    users, items = np.nonzero(np.random.default_rng(seed).random((N_USERS, N_ITEMS)) < chances)
    return TrainingData(N_USERS, N_ITEMS, users.astype(np.int32), items.astype(np.int32))


def audited(seed: int = 0, **override: float) -> tuple[one_run.OneRun, one_run.OneRun]:
    """One training run with canaries: the bound of the auditor who sees the network, and of the one who sees steps."""
    data = popular()
    of_canaries, of_others, of_training = np.random.default_rng(seed).spawn(3)
    made_up = draw(data, M, EACH, of_canaries)
    model = DPAE(DPAEConfig.model_validate(CONFIG | override))
    model.watch = watcher = Watcher(model, made_up, data)
    model.fit(insert(data, made_up, of_others), rng=of_training)
    plain = DPAE(model.config.model_copy(update={"epsilon": math.inf}))
    reference = plain.fit(
        insert(data, replace(made_up, included=np.zeros_like(made_up.included)), of_others), rng=of_others
    )
    scores = loss_scores(model, reference, made_up, N_ITEMS), watcher.scores
    network, steps = (one_run.audit(score, made_up.included, M // 2, 1e-4, 0.95) for score in scores)
    return network, steps


def test_canaries_share_no_item_while_items_last_and_take_the_rarest() -> None:
    data = popular()
    counts = np.bincount(data.items, minlength=N_ITEMS)
    made_up = draw(data, 50, 4, np.random.default_rng(0))
    assert made_up.items.shape == (50, 4)
    assert len(np.unique(made_up.items)) == 200
    assert counts[made_up.items].max() <= np.sort(counts)[199]
    rows = made_up.rows(N_ITEMS)
    assert rows.shape == (50, N_ITEMS)
    assert (rows.sum(1) == 4).all()
    assert rows[7, made_up.items[7].astype(np.int64)].all()


def test_where_items_do_not_last_they_are_dealt_again() -> None:
    made_up = draw(popular(), 200, 7, np.random.default_rng(0))
    assert made_up.items.shape == (200, 7)
    assert all(len(set(row)) == 7 for row in made_up.items.tolist())
    uses = np.bincount(made_up.items.ravel(), minlength=N_ITEMS)
    assert uses.max() <= 5  # deals of 42 canaries


def test_every_coin_is_fair() -> None:
    """False alarm: two in 1,000."""
    tosses = np.array([draw(popular(), 40, 2, np.random.default_rng(seed)).included for seed in range(200)])
    assert stats.binomtest(int(tosses.sum()), tosses.size).pvalue > 1e-3
    assert stats.kstest(tosses.sum(0), stats.binom(200, 0.5).cdf).pvalue > 1e-3


def test_only_those_who_are_in_have_interactions_and_real_users_keep_theirs() -> None:
    data = replace(
        popular(),
        features=np.random.default_rng(1).random((N_USERS, 2), dtype=np.float32),
        attributes={"gender": np.ones(N_USERS, np.int64)},
    )
    made_up = draw(data, M, EACH, np.random.default_rng(0))
    both = insert(data, made_up, np.random.default_rng(2))
    assert both.n_users == N_USERS + M
    assert np.array_equal(both.users[: len(data.users)], data.users)
    assert np.array_equal(both.items[: len(data.items)], data.items)
    added = both.users[len(data.users) :] - N_USERS
    assert np.array_equal(np.bincount(added, minlength=M), np.where(made_up.included, EACH, 0))
    for user in np.flatnonzero(made_up.included):
        assert np.array_equal(both.items[len(data.items) :][added == user], made_up.items[user])
    assert (both.attributes["gender"][N_USERS:] == -1).all()
    turned = Canaries(made_up.items, ~made_up.included)
    assert np.array_equal(both.features, insert(data, turned, np.random.default_rng(2)).features)
    assert set(map(tuple, both.features[N_USERS:].tolist())) <= set(map(tuple, data.features.tolist()))


def test_a_canary_that_is_out_leaves_no_trace() -> None:
    """Training is the same to the last bit whatever its items would have been."""
    data = popular()
    made_up = draw(data, M, EACH, np.random.default_rng(0))
    others = made_up.items.copy()
    others[~made_up.included] = 0
    weights = []
    for items in (made_up.items, others):
        model = DPAE(DPAEConfig.model_validate(CONFIG | {"epochs": 2}))
        model.fit(
            insert(data, Canaries(items, made_up.included), np.random.default_rng(1)), rng=np.random.default_rng(2)
        )
        weights.append(model.network.items)
    assert torch.equal(*weights)


def test_without_noise_both_auditors_prove_a_lot() -> None:
    """The positive control: an audit that finds nothing here finds nothing anywhere."""
    network, steps = audited(epsilon=math.inf, epochs=100, learning_rate=0.5)
    assert steps.correct == steps.guesses == M // 2
    assert steps.epsilon == steps.provable > 2
    assert network.epsilon > 1.5


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("batch_size", [N_USERS + M, 50])
def test_sound_noise_is_not_accused(epsilon: float, batch_size: int) -> None:
    """False alarm: each of the 8 bounds is wrong with probability 0.05 at most, and far less where the auditor is not
    the best one."""
    for result in audited(epsilon=epsilon, batch_size=batch_size, epochs=20):
        assert result.epsilon <= epsilon


def test_noise_for_one_step_in_place_of_all_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = dpsgd.noise_multiplier
    monkeypatch.setattr(dpsgd, "noise_multiplier", lambda epsilon, delta, rate, *_: honest(epsilon, delta, rate, 1))
    _, steps = audited(epochs=100)
    assert steps.epsilon > 1


def test_what_cannot_be_audited_is_refused() -> None:
    data = popular()
    rng = np.random.default_rng(0)
    with pytest.raises(ConfigurationError, match="canaries"):
        draw(data, 0, 2, rng)
    with pytest.raises(ConfigurationError, match="items each"):
        draw(data, 5, N_ITEMS + 1, rng)
    made_up = draw(data, 5, 2, rng)
    order = Sequences.from_events(data.users, data.items)
    with pytest.raises(DataError, match="no order"):
        insert(replace(data, sequences=order), made_up, rng)
    with pytest.raises(DataError, match="sensitive"):
        insert(replace(data, sensitive=np.zeros(len(data.users), np.bool_)), made_up, rng)


def test_canaries_rate_as_high_as_anybody() -> None:
    data = popular()
    rated = replace(data, ratings=np.random.default_rng(0).integers(1, 6, len(data.items)).astype(np.float32))
    made_up = draw(rated, 6, 2, np.random.default_rng(0))
    ratings = insert(rated, made_up, np.random.default_rng(1))
    assert set(ratings.ratings[ratings.users >= data.n_users]) == {5.0}
    assert set(made_up.rows(N_ITEMS).unique().tolist()) == {0.0, 5.0}


@pytest.mark.parametrize("prior", ["standard", "user"])
def test_the_watcher_knows_what_steps_draw_and_whose_priors_they_have(prior: str) -> None:
    """Of a VAE too: without noise and with everyone in every step, what is left is the canaries' own gradients."""
    data, coins = popular(), np.random.default_rng(0)
    data = replace(data, features=coins.random((N_USERS, 4)).astype(np.float32))
    made_up = draw(data, M, EACH, coins)
    own = {"epochs": 2, "batch_size": N_USERS + M, "learning_rate": 1e-3, "optimiser": "sgd", "values": "binary"}
    private = {"privacy": "dpsgd", "accounting": "rigorous", "epsilon_max": math.inf, "delta": 1e-4, "clip_norm": 2.0}
    network = {"dimension": 4, "hidden": 8, "beta": 1.0, "dropout": 0.5, "prior": prior}
    model = VAE(VAEConfig.model_validate(own | private | network))
    left: list[float] = []

    def watch(released: Sequence[Tensor], probability: float) -> None:
        watcher(released, probability)
        rows, users = inserted_rows(data, made_up), np.arange(N_USERS + M)
        exact = model.clipped_gradients(rows, users).weighted_sum(torch.ones(len(rows)))
        left.extend(float((total - sum_).abs().max()) for total, sum_ in zip(released, exact, strict=True))

    watcher = Watcher(model, made_up, data)
    model.watch = watch
    model.fit(insert(data, made_up, coins), rng=np.random.default_rng(1))
    assert max(left) < 1e-4
    guesses = watcher.scores > np.median(watcher.scores)
    assert prior == "user" or (guesses == made_up.included).mean() > 0.9  # of what priors add, gradients have in common


def inserted_rows(data: TrainingData, canaries: Canaries) -> Tensor:
    """(N_USERS + M, N_ITEMS) what is in the training data, of real users and of canaries."""
    rows = torch.zeros(N_USERS + M, N_ITEMS)
    rows[torch.from_numpy(data.users.astype(np.int64)), torch.from_numpy(data.items.astype(np.int64))] = 1.0
    rows[N_USERS:] = canaries.rows(N_ITEMS) * torch.from_numpy(canaries.included)[:, None]
    return rows
