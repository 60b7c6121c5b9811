"""What every predictor of ratings promises beyond the contract of all: finite predictions that beat the mean."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.errors import DataError
from tasks.training_data import TrainingData
from tests.models.contract import BY_EPOCHS, RATINGS, fitted, outputs, trained
from tests.models.social_data import ratings


@pytest.mark.parametrize("name", RATINGS)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_all_pairs_have_finite_predictions_whatever_is_sensitive(name, share):
    """Users without ratings, friends or published ratings and an item without ratings among them."""
    data = ratings(share)
    actual = outputs(fitted(name, data), data)[0]
    assert actual.dtype == torch.float32
    assert torch.isfinite(actual).all()
    mean = data.ratings[~data.sensitive].mean() if share < 1 else 3.0
    if name != "dpmf-ratings":  # whose user without ratings is where it started, and whose items move with noise alone
        assert abs(actual[1, 0] - mean) < 1.0


@pytest.mark.parametrize("name", RATINGS)
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
    assert torch.isfinite(outputs(fitted(name, alone), alone)[0]).all()


@pytest.mark.parametrize("name", RATINGS)
def test_what_was_learnt_is_predicted_better_than_by_the_mean(name):
    """Everyone likes even items."""
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
    if "epsilon" in RATINGS[name]:
        override |= {"epsilon": 1000.0}
    actual = fitted(name, data, **override).predict(users[~train], items[~train]).numpy()
    mean = data.ratings[~sensitive].mean()
    assert np.abs(actual - values[~train]).mean() < 0.5 * np.abs(mean - values[~train]).mean()


@pytest.mark.parametrize("name", RATINGS)
def test_ratings_that_do_not_say_what_is_sensitive_are_refused(name):
    with pytest.raises(DataError, match="which are sensitive"):
        fitted(name, replace(ratings(), sensitive=None))


@pytest.mark.parametrize("name", RATINGS)
def test_a_loaded_model_knows_of_no_message(name, tmp_path):
    trained(name).save(tmp_path / "model.safetensors")
    loaded = type(trained(name)).load(tmp_path / "model.safetensors")
    assert loaded.observed() is None
    assert loaded.replayed() is None
