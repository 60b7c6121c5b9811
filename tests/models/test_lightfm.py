"""LightFM's steps equal those of slow obvious WARP code, and who is known by metadata alone is ranked by it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.models.ranking.lightfm import LightFM, LightFMConfig
from tests.models.contract import of_matrix

N_USERS, N_ITEMS, N_COLUMNS, WIDTH = 20, 30, 4, 3
CONFIG = {
    "epochs": 3, "batch_size": 16, "learning_rate": 0.1, "dimension": WIDTH, "max_sampled": 4, "metadata": True,
}  # fmt: skip


def data(seed: int = 0) -> TrainingData:
    rng = np.random.default_rng(seed)
    has = rng.random((N_USERS, N_ITEMS)) < 0.3
    return of_matrix(has, rng.uniform(-1, 1, (N_USERS, N_COLUMNS)).astype(np.float32))


def make(**override) -> LightFM:
    return LightFM(LightFMConfig.model_validate(CONFIG | override))


def built(**override) -> LightFM:
    """At random weights that give scores a spread of several margins, ready for steps."""
    model, rng = make(**override), np.random.default_rng(1)
    model._data, model._rng = data(), rng
    model.network = model.build(model._data, rng)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(0, 1, parameter.shape)))
    model.network.double()
    model._optimiser = model.optimiser()
    return model


def slow_gradients(model: LightFM, users, items, negatives) -> tuple[dict[str, np.ndarray], float, int]:
    """Per positive: draw until a negative violates the margin, weigh by the rank, add the gradients up."""
    weights = {name: tensor.detach().numpy() for name, tensor in model.network.named_parameters()}
    features = model.network.features.numpy()
    gradients = {name: np.zeros_like(weight) for name, weight in weights.items()}
    penalty, total, updated = model.config.regularization, 0.0, 0
    for user, item, drawn in zip(users, items, negatives, strict=True):
        p = weights["users"][user] + sum(
            features[user, column] * weights["columns"][column] for column in range(features.shape[1])
        )
        q, b = weights["items"][item, :WIDTH], weights["items"][item, WIDTH]
        for trial, negative in enumerate(drawn, start=1):
            r, c = weights["items"][negative, :WIDTH], weights["items"][negative, WIDTH]
            if p @ r + c > p @ q + b - 1:
                weight = math.log(max(1, (N_ITEMS - 1) // trial))
                total += weight * (1 - (p @ q + b) + p @ r + c)
                total += penalty * (p @ p + q @ q + b * b + r @ r + c * c)
                user_gradient = weight * (r - q) + 2 * penalty * p
                gradients["users"][user] += user_gradient
                for column in range(features.shape[1]):
                    gradients["columns"][column] += features[user, column] * user_gradient
                gradients["items"][item] += np.append(-weight * p + 2 * penalty * q, -weight + 2 * penalty * b)
                gradients["items"][negative] += np.append(weight * p + 2 * penalty * r, weight + 2 * penalty * c)
                updated += 1
                break
    return gradients, total, updated


@pytest.mark.parametrize("metadata", [False, True])
@pytest.mark.parametrize("regularization", [0.0, 0.05])
def test_two_steps_equal_those_of_a_loop_over_positives(metadata, regularization):
    model = built(metadata=metadata, regularization=regularization)
    before = {name: tensor.detach().numpy().copy() for name, tensor in model.network.named_parameters()}
    sums = {name: np.ones_like(weight) for name, weight in before.items()}
    for start in (0, 40):
        users, items = model._data.users[start : start + 40], model._data.items[start : start + 40]
        negatives = model._sampler.draw(np.repeat(users, 4), model._rng).reshape(-1, 4)
        gradients, total, updated = slow_gradients(model, users, items, negatives)
        assert 0 < updated < 40  # some violate, some do not
        loss = model.train_batch(users, items, negatives)
        assert loss == pytest.approx(total, rel=1e-5)
        for name, gradient in gradients.items():
            sums[name] += gradient**2
            before[name] -= 0.1 * gradient / np.sqrt(sums[name])
            ours = dict(model.network.named_parameters())[name].detach().numpy()
            np.testing.assert_allclose(ours, before[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("biases", "negatives", "updated"), [((5.0, 0.0, 0.0), [1, 2, 2], 0), ((0.0, -3.0, 1.0), [1] * 30 + [2], 1)]
)
def test_neither_a_positive_above_its_trials_nor_an_estimated_rank_below_one_changes_anything(
    biases, negatives, updated
):
    model = built()
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.zero_()
        model.network.items[:3, -1] = torch.tensor(biases)
    before = model.weights()
    assert model.train_batch(*(np.array(ids, np.int32) for ids in ([4], [0], [negatives]))) == 0.0
    assert model._updated == updated
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.weights().items())


@pytest.mark.parametrize("metadata", [False, True])
def test_only_metadata_tells_what_a_user_without_interactions_likes(metadata):
    # Two groups that like the even and the odd items; ten more users, known by their group alone.
    group = np.arange(60) % 2
    likes = np.add.outer(group, np.arange(20)) % 2 == 0
    seen = np.append(np.random.default_rng(0).random((50, 20)) < 0.6, np.zeros((10, 20), bool), axis=0)
    known = of_matrix(likes & seen, np.eye(2, dtype=np.float32)[group])
    model = make(epochs=30, metadata=metadata).fit(known, rng=np.random.default_rng(0))
    best = model.score(np.arange(50, 60, dtype=np.int32)).topk(10).indices
    actual = np.take_along_axis(likes[50:], best.numpy(), 1).mean()
    # Without metadata the vectors are as they were drawn, alike for all, so that half of the items would be found.
    assert actual == 1.0 if metadata else actual < 0.8


@pytest.mark.parametrize("features", [None, np.zeros((N_USERS, 0), np.float32)])
def test_metadata_that_is_not_there_is_refused(features):
    plain = data()
    bare = replace(plain, features=features)
    with pytest.raises(ConfigurationError, match="the data has no user features"):
        make().fit(bare, rng=np.random.default_rng(0))
    scores = make(metadata=False).fit(bare, rng=np.random.default_rng(0)).score(np.array([0], np.int32))
    assert torch.isfinite(scores).all()
