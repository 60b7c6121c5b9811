"""What every predictor of ratings promises: finite predictions, refitting, save and load, exact resuming."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.errors import DataError
from tasks.models.base import RatingPredictor
from tasks.models.replayed import Replaying
from tasks.models.training import EpochModel
from tasks.stages.monitor import Monitor, Screen
from tasks.training_data import TrainingData
from tests.models import social_data
from tests.models.social_data import ratings
from tests.systems import system_class, systems

MEANS = {"of": "bias", "damping": 1.0, "scale": (1, 5)}
CONFIGS = social_data.CONFIGS | {
    "rating-means": MEANS,
    "dp-rating-means": MEANS | {"epsilon": 1.0, "variance": 1.0},
}
PREDICTORS = [name for name in systems() if issubclass(system_class(name), RatingPredictor)]
BY_EPOCHS = [name for name in PREDICTORS if issubclass(system_class(name), EpochModel)]


def make(name: str, **override):
    cls = system_class(name)
    return cls(cls.Config.model_validate(CONFIGS[name] | override))


def fitted(name: str, data: TrainingData, seed: int = 0, **override):
    return make(name, **override).fit(data, rng=np.random.default_rng(seed))


def everything(model, data: TrainingData) -> torch.Tensor:
    users, items = (ids.ravel().astype(np.int32) for ids in np.indices((data.n_users, data.n_items)))
    return model.predict(users, items).reshape(data.n_users, data.n_items)


def test_every_registered_predictor_is_held_to_the_contract():
    assert set(CONFIGS) == set(PREDICTORS)


@pytest.mark.parametrize("name", PREDICTORS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_all_pairs_have_finite_predictions_whatever_is_sensitive(name, share):
    """Users without ratings, friends or published ratings and an item without ratings among them."""
    data = ratings(share)
    actual = everything(fitted(name, data), data)
    assert actual.dtype == torch.float32
    assert torch.isfinite(actual).all()
    mean = data.ratings[~data.sensitive].mean() if share < 1 else 3.0
    if name != "dpmf-ratings":  # whose user without ratings is where it started, and whose items move with noise alone
        assert abs(actual[1, 0] - mean) < 1.0


@pytest.mark.parametrize("name", PREDICTORS)
def test_nobody_has_friends_or_everybody_is_alone_with_a_rating(name):
    users = np.arange(3, dtype=np.int32)
    alone = TrainingData(
        3,
        3,
        users,
        users,
        ratings=np.array([1, 5, 3], np.float32),
        sensitive=np.array([True, False, True]),
        links=np.zeros((0, 2), np.int32),
    )
    assert torch.isfinite(everything(fitted(name, alone), alone)).all()


@pytest.mark.parametrize("name", PREDICTORS)
def test_what_was_learnt_is_predicted_better_than_by_the_mean(name):
    """Everybody likes even items."""
    users, items = (ids.ravel().astype(np.int32) for ids in np.indices((40, 30)))
    values = np.where(items % 2 == 0, 5, 2).astype(np.float32)
    rng = np.random.default_rng(0)
    train = rng.random(len(users)) < 0.7
    sensitive = rng.random(int(train.sum())) < 0.1
    data = TrainingData(
        40, 30, users[train], items[train], ratings=values[train], sensitive=sensitive,
        links=np.stack([np.arange(38), np.arange(38) + 2], axis=1).astype(np.int32),
    )  # fmt: skip
    override = {"epochs": 100, "learning_rate": 1e-3, "regularization": 1e-3} if name in BY_EPOCHS else {}
    if "epsilon" in CONFIGS[name]:
        override |= {"epsilon": 1000.0}
    actual = fitted(name, data, **override).predict(users[~train], items[~train]).numpy()
    mean = data.ratings[~sensitive].mean()
    assert np.abs(actual - values[~train]).mean() < 0.5 * np.abs(mean - values[~train]).mean()


@pytest.mark.parametrize("name", PREDICTORS)
def test_same_seed_same_predictions_and_refitting_forgets(name):
    first, second = ratings(), ratings(seed=1, n_users=8, n_items=7)
    model = fitted(name, first)
    model.fit(second, rng=np.random.default_rng(7))
    fresh = fitted(name, second, seed=7)
    assert torch.equal(everything(model, second), everything(fresh, second))
    assert model.communication() == fresh.communication()
    if (seen := model.observed()) is not None:
        np.testing.assert_array_equal(seen.mean_items, fresh.observed().mean_items)


@pytest.mark.parametrize("name", PREDICTORS)
def test_save_and_load_change_no_prediction(name, tmp_path):
    data = ratings()
    model = fitted(name, data)
    model.save(tmp_path / "model.safetensors")
    loaded = system_class(name).load(tmp_path / "model.safetensors")
    assert torch.equal(everything(loaded, data), everything(model, data))
    assert loaded.config == model.config
    assert loaded.observed() is None
    assert not isinstance(loaded, Replaying) or loaded.replayed() is None


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_damaged_file_is_refused_in_one_line(name, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    with pytest.raises(DataError, match="not a saved model") as error:
        system_class(name).load(tmp_path / "model.safetensors")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", PREDICTORS)
def test_ratings_that_do_not_say_what_is_sensitive_are_refused(name):
    with pytest.raises(DataError, match="which are sensitive"):
        fitted(name, replace(ratings(), sensitive=None))


@pytest.mark.parametrize("name", PREDICTORS)
def test_no_sensitive_rating_changes_more_than_its_ledger_says_anything_about(name):
    for entry in fitted(name, ratings()).ledger():
        assert entry.protects == "rating"
        assert entry.unit == "sensitive-rating"


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("name", BY_EPOCHS)
def test_an_interrupted_run_ends_as_an_unbroken_one(name, tmp_path):
    """In what it predicts and in what others remember of it."""
    data = ratings()

    def train(folder, interrupt):
        calls = iter(range(1, 100))

        def watched(model):
            if next(calls) == interrupt:
                raise Interrupted
            return -abs(model.epochs_done - 3) / 10  # the best epoch is 3; patience is 2

        monitor = Monitor(folder, watched, Screen("test", 1), 2, "mae")
        monitor._screen.begin("run", 8)
        return make(name, epochs=8).fit(data, rng=np.random.default_rng(5), progress=monitor)

    def everything_left(model):
        seen = model.observed()
        parts = [everything(model, data).numpy(), seen.items, seen.mean_items]
        for received in (seen.submissions, model.replayed(), seen.friends):
            parts += [] if received is None else list(vars(received).values())
        return parts

    unbroken = train(tmp_path / "unbroken", None)
    for interrupted_at in (1, 4):
        broken = tmp_path / f"broken at {interrupted_at}"
        with pytest.raises(Interrupted):
            train(broken, interrupted_at)
        for resumed in (train(broken, None), train(broken, 1)):  # the last: nothing left to do
            for left, other in zip(everything_left(unbroken), everything_left(resumed), strict=True):
                np.testing.assert_array_equal(left, other)
            assert resumed.communication() == unbroken.communication()
            assert resumed.communication()["iterations"] == 3 * (8 if resumed.config.plans_epochs else 5)
            assert resumed.ledger() == unbroken.ledger()
