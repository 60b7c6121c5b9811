"""What every recommender of lists promises: known truths, refitting, save and load, exact resuming."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from tasks.errors import DataError
from tasks.models.base import Recommender
from tasks.models.training import EpochModel, PairwiseModel
from tasks.stages.monitor import Monitor, Screen
from tasks.training_data import TrainingData
from tests.systems import system_class, systems

EPOCHS = {"epochs": 25, "batch_size": 64, "learning_rate": 0.01, "dimension": 4, "regularization": 1e-3}
"""Small and regularised: a large model memorises the training items and takes held-out ones for negatives."""
GRAPH = EPOCHS | {"epochs": 60, "dimension": 8, "regularization": 1e-4}
AMPLE = 1e6
"""A budget of SGD, all steps together: so large that a step's own gains nothing from sampling, so that its noise is
calibrated in closed form."""
CONFIGS = {
    "popularity": {},
    "dp-popularity": {"epsilon": 1.0, "contribution": 10},
    "bpr": EPOCHS,
    "blurm": EPOCHS | {"attribute": "gender", "share": 0.1, "added": "withheld"},
    "ease": {"regularization": 1.0},
    "ials": {"dimension": 2, "iterations": 10, "alpha": 10.0, "regularization": 0.1},
    "dpmf": {"dimension": 2, "epsilon": 1000.0, "ridge": 0.1, "accounting": "published"},
    "dpmf-rigorous": {"dimension": 20, "epsilon": 1000.0, "ridge": 1.0, "accounting": "rigorous"},
    "dpne": {"dimension": 2, "epsilon": 1000.0, "ridge": 0.1, "smoothing": 0.75, "shift": 1.0, "cap": 2.0},
    "gcn": GRAPH,
    "gerai": GRAPH | {"epsilon": 50.0},
    "gerai-nl": GRAPH | {"epsilon": 50.0},
    "gerai-nf": GRAPH,
    "dpae": {
        "epochs": 40,
        "batch_size": 64,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "dimension": 4,
        "epsilon": AMPLE,
        "delta": 1e-3,
        "clip_norm": 10.0,
    },
    "dpals": {
        "dimension": 2,
        "iterations": 3,
        "epsilon": 1000.0,
        "delta": 1e-3,
        "user_ridge": 0.1,
        "item_ridge": 0.1,
        "clip": 1.0,
        "lengthen": True,
        "contribution": 20.0,
        "counts_share": 0.2,
    },
    "gram-svd": {"epsilon": 1000.0, "delta": 1e-3},
    "gram-ease": {"epsilon": 1000.0, "delta": 1e-3},
    "rap": EPOCHS | {"alpha": 0.1, "list_length": 5, "adversary_dimension": 4, "adversary_users": 16},
    "knn": {"k": 10, "values": "binary"},
    "lightfm": EPOCHS | {"learning_rate": 0.05, "metadata": False},
    "bprmf": EPOCHS,
    "lightgcn": GRAPH | {"layers": 2, "row_regularization": 1e-3},
    "dpmf-implicit": {"dimension": 2, "epsilon": 1000.0, "ridge": 0.1, "alternations": 2},
    "dpmf-explicit": {
        "dimension": 2,
        "epsilon": 1000.0,
        "ridge": 0.1,
        "alternations": 2,
        "rating_low": 1.0,
        "rating_high": 5.0,
    },
}
TINY = {"knn": {"k": 2}}
"""What must be smaller where there are three users."""
USERS = {
    "epochs": 60, "batch_size": 8, "learning_rate": 0.01, "optimiser": "adam", "values": "binary", "dimension": 4,
    "privacy": "none",
}  # fmt: skip
ROWS = USERS | {"hidden": 8, "beta": 0.1, "prior": "standard"}
PRIVATE = {"epsilon_max": AMPLE, "delta": 1e-3, "clip_norm": 10.0, "privacy": "dpsgd"}
CONFIGS |= {
    "ae": USERS,
    "mf": USERS | {"unobserved": 0.1, "regularization": 1e-3},
    "svd": USERS | {"unobserved": 0.1, "regularization": 1e-3},
    "vae": ROWS,
    "dpvae": ROWS | PRIVATE | {"optimiser": "sgd", "learning_rate": 0.1, "privacy": "dpsgd-optimal-clip"},
    "dpvae-rigorous": ROWS | PRIVATE | {"accounting": "rigorous", "quantile": 0.5},
    "dpvae-compact": ROWS | PRIVATE | {"accounting": "rigorous", "popularity": 0.1, "frozen_encoder": True},
}
TINY |= {name: {"batch_size": 3} for name in ("ae", "mf", "svd", "vae", "dpvae", "dpvae-rigorous", "dpvae-compact")}
RECOMMENDERS = [name for name in systems() if issubclass(system_class(name), Recommender)]
PERSONALISED = [name for name in RECOMMENDERS if "popularity" not in name]
BY_EPOCHS = [name for name in RECOMMENDERS if issubclass(system_class(name), EpochModel)]
PAIRWISE = [name for name in RECOMMENDERS if issubclass(system_class(name), PairwiseModel)]


def checkerboard(n_users: int = 40, n_items: int = 30, seed: int = 0) -> tuple[TrainingData, np.ndarray]:
    """Even users like even items, odd users odd ones; of these a random quarter is held out. Also the truth matrix."""
    rng = np.random.default_rng(seed)
    likes = np.add.outer(np.arange(n_users), np.arange(n_items)) % 2 == 0
    train = likes & (rng.random(likes.shape) > 0.25)
    users, items = np.nonzero(train)
    features = rng.uniform(-1, 1, (n_users, 4)).astype(np.float32)
    data = TrainingData(
        n_users,
        n_items,
        users.astype(np.int32),
        items.astype(np.int32),
        features,
        attributes(n_users),
        ratings=4 + rng.integers(0, 2, len(users)).astype(np.float32),
    )
    return data, likes & ~train


def attributes(n_users: int) -> dict[str, np.ndarray]:
    """One attribute that likes reveal, with an unknown user, and one that nothing reveals."""
    gender = np.arange(n_users) % 2
    gender[0] = -1
    return {"gender": gender, "age": np.arange(n_users) // 2 % 3}


def make(name: str, **override):
    cls = system_class(name)
    return cls(cls.Config.model_validate(CONFIGS[name] | override))


def fitted(name: str, data: TrainingData, seed: int = 0, **override):
    return make(name, **override).fit(data, rng=np.random.default_rng(seed))


def short(name: str) -> dict[str, int]:
    """What does not depend on how much is learnt need not learn much."""
    return {"epochs": 2} if name in BY_EPOCHS else {}


@cache
def _trained(name: str) -> Recommender:
    return fitted(name, checkerboard()[0], **short(name))


def trained(name: str) -> Recommender:
    """A copy, of the caller's own, of a model fitted shortly on the checkerboard."""
    return deepcopy(_trained(name))


def all_scores(model, data: TrainingData) -> torch.Tensor:
    return model.score(np.arange(data.n_users, dtype=np.int32))


def test_every_registered_model_is_held_to_the_contract():
    assert set(CONFIGS) == set(RECOMMENDERS)


@pytest.mark.parametrize("name", PERSONALISED)
def test_checkerboard_held_out_items_are_ranked_first(name):
    data, held_out = checkerboard()
    scores = all_scores(fitted(name, data), data)
    scores[torch.from_numpy(data.users).long(), torch.from_numpy(data.items).long()] = -torch.inf
    n_held_out = torch.from_numpy(held_out.sum(1))
    hits = total = 0
    for user in range(data.n_users):
        top = scores[user].topk(int(n_held_out[user])).indices.numpy()
        hits += held_out[user, top].sum()
        total += len(top)
    assert hits / total > 0.95


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_same_seed_same_scores_and_refitting_forgets(name):
    second, _ = checkerboard(n_users=30, n_items=20, seed=1)
    model = trained(name).fit(second, rng=np.random.default_rng(7))
    fresh = fitted(name, second, seed=7, **short(name))
    assert torch.equal(all_scores(model, second), all_scores(fresh, second))


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_save_and_load_change_no_score(name, tmp_path):
    data, _ = checkerboard()
    model = trained(name)
    model.save(tmp_path / "model.safetensors")
    loaded = system_class(name).load(tmp_path / "model.safetensors")
    assert torch.equal(all_scores(loaded, data), all_scores(model, data))
    assert loaded.config == model.config


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_a_damaged_file_is_refused_in_one_line(name, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(DataError, match="not a saved model") as error:
        system_class(name).load(tmp_path / "model.safetensors")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_scores_are_finite_for_a_user_with_one_item_and_an_item_never_seen(name):
    users, items = np.array([0, 0, 1, 2, 2], np.int32), np.array([0, 1, 2, 0, 2], np.int32)
    ratings = np.array([4, 5, 1, 5, 4], np.float32)
    data = TrainingData(3, 5, users, items, np.zeros((3, 4), np.float32), attributes(3), ratings)
    override = ({"epochs": 3} if name in BY_EPOCHS else {}) | TINY.get(name, {})
    scores = all_scores(fitted(name, data, **override), data)
    assert scores.shape == (3, 5)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_a_user_without_any_interaction_is_scored_like_any_other(name):
    data, _ = checkerboard()
    stranger = replace(
        data,
        n_users=data.n_users + 1,
        features=np.vstack([data.features, np.zeros((1, 4), np.float32)]),
        attributes=attributes(data.n_users + 1),
    )
    model = fitted(name, stranger, **short(name))
    scores = model.score(np.array([data.n_users], np.int32))
    assert scores.shape == (1, data.n_items)
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("name", PAIRWISE)
def test_a_user_who_has_everything_is_refused(name):
    users, items = np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32)
    data = TrainingData(2, 2, users, items, np.zeros((2, 1), np.float32), attributes(2))
    with pytest.raises(DataError, match="user 0 has all 2 items"):
        make(name).fit(data, rng=np.random.default_rng(0))


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("name", BY_EPOCHS)
def test_an_interrupted_run_ends_as_an_unbroken_one(name, tmp_path):
    data, _ = checkerboard(n_users=24, n_items=16)

    def validate(model):
        return -abs(model.epochs_done - 3) / 10  # the best epoch is 3, and patience is 2

    def train(folder, interrupt):
        calls = iter(range(1, 100))

        def watched(model):
            if next(calls) == interrupt:
                raise Interrupted
            return validate(model)

        monitor = Monitor(folder, watched, Screen("test", 1), 2, "ndcg")
        monitor._screen.begin("run", 8)
        model = make(name, epochs=8).fit(data, rng=np.random.default_rng(5), progress=monitor)
        return all_scores(model, data), monitor.history

    scores, history = train(tmp_path / "unbroken", None)
    last = 8 if make(name, epochs=8).config.plans_epochs else 5  # planned epochs are all run
    assert [record["epoch"] for record in history] == list(range(1, last + 1))
    for interrupted_at in (1, 4):
        broken = tmp_path / f"broken at {interrupted_at}"
        with pytest.raises(Interrupted):
            train(broken, interrupted_at)
        resumed_scores, resumed_history = train(broken, None)
        assert torch.equal(resumed_scores, scores)
        assert resumed_history == history
        again, _ = train(broken, 1)  # complete: nothing is trained or validated any more
        assert torch.equal(again, scores)


def test_noisy_counts_order_items_as_counts_do_when_the_budget_is_large():
    data, _ = checkerboard()
    exact = fitted("popularity", data).counts
    noisy = fitted("dp-popularity", data, epsilon=1e6, contribution=1000).counts
    assert torch.equal(exact, noisy)


def test_noisy_popularity_accounts_for_its_whole_budget():
    entry = make("dp-popularity").ledger()[0]
    assert entry.accounted_epsilon == pytest.approx(1.0)
    assert entry.accounted_delta == 0
