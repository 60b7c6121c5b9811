"""The adversarial start: finds noise-free rotations, is the same however often interrupted, stays near orthogonal."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from tasks.errors import DataError
from tasks.models.alignment.adversarial import AdversarialConfig, AdversarialStart
from tests.models.alignment.clouds import Rotated, clustered, rotated

CONFIG = AdversarialConfig(
    epochs=3,
    iterations=20,
    discriminator_steps=2,
    batch_size=16,
    learning_rate=0.1,
    hidden=(16, 8),
    initial="random",
)


@pytest.fixture
def pair() -> Rotated:
    rng = np.random.default_rng(0)
    return rotated(clustered(80, 5, 4, rng), rng)


def start(pair: Rotated, seed: int, config: AdversarialConfig = CONFIG) -> AdversarialStart:
    rng = np.random.default_rng(seed)
    return AdversarialStart(config, pair.source, pair.target, neighbours=10, tie_seed=0, rng=rng)


def test_an_interrupted_training_ends_as_an_unbroken_one(pair: Rotated) -> None:
    unbroken = start(pair, 1).train()

    first = start(pair, 1).train(lambda trained: len(trained.criteria) < 2)
    tensors, rest = first.state()
    first.train()  # what was handed out must not change with it
    second = start(pair, 2)
    second.load_state(tensors, json.loads(json.dumps(rest)))
    assert len(second.criteria) == 2
    second.train()

    np.testing.assert_array_equal(second.mapping, unbroken.mapping)
    assert second.criteria == unbroken.criteria == first.criteria
    assert second.losses == unbroken.losses


def test_seeds_alone_decide_and_each_gives_another_map(pair: Rotated) -> None:
    torch.manual_seed(1)
    first = start(pair, 1).train()
    torch.manual_seed(2)
    again, other = start(pair, 1).train(), start(pair, 2).train()

    np.testing.assert_array_equal(first.mapping, again.mapping)
    assert np.abs(first.mapping - other.mapping).max() > 0.1


def test_the_map_handed_on_is_orthogonal_and_of_the_best_epoch(pair: Rotated) -> None:
    maps: list[np.ndarray] = []
    trained = start(pair, 3).train(lambda now: maps.append(now.mapping) or True)

    np.testing.assert_allclose(trained.mapping.T @ trained.mapping, np.eye(5), atol=1e-12)
    np.testing.assert_array_equal(trained.mapping, maps[int(np.argmax(trained.criteria))])
    assert trained.criterion == max(trained.criteria)


def test_the_map_in_training_stays_near_orthogonal_thanks_to_beta(pair: Rotated) -> None:
    def stretch(beta: float) -> float:
        config = CONFIG.model_copy(update={"beta": beta, "iterations": 300, "epochs": 1, "learning_rate": 0.5})
        mapping = start(pair, 4, config).train().state()[0]["map"].double().numpy()
        return float(np.abs(mapping.T @ mapping - np.eye(5)).max())

    assert stretch(0.1) < 0.25 < stretch(0.0)


@pytest.mark.parametrize("fool", [True, False])
def test_only_a_discriminator_that_learns_has_inputs_hidden_from_it(pair: Rotated, fool: bool) -> None:
    """MUSE's `mapping_step` evaluates the discriminator: the gradient of the map is that of all its inputs."""
    seen, half = (start(pair, 7, CONFIG.model_copy(update={"dropout": share})) for share in (0.0, 0.5))
    assert (seen._loss(fool=fool) == half._loss(fool=fool)) == fool


def test_the_decay_slows_the_map_and_not_the_discriminator(pair: Rotated) -> None:
    config = CONFIG.model_copy(update={"decay": 1e-12, "beta": 0.0, "epochs": 2})
    states: list[dict[str, torch.Tensor]] = []
    start(pair, 8, config).train(lambda now: states.append(now.state()[0]) or True)
    moved = {name: (states[1][name] - states[0][name]).abs().max().item() for name in states[0]}
    assert moved["map"] < 1e-6
    assert moved["discriminator.layers.0.weight"] > 1e-3


def test_a_map_that_diverges_ends_the_training_and_shows(pair: Rotated) -> None:
    config = CONFIG.model_copy(update={"learning_rate": 1e12})

    trained = start(pair, 5, config).train()

    assert trained.criteria == [-np.inf]
    np.testing.assert_allclose(trained.mapping.T @ trained.mapping, np.eye(5), atol=1e-12)


def test_the_identity_is_where_training_starts_if_so_configured(pair: Rotated) -> None:
    untrained = start(pair, 6, CONFIG.model_copy(update={"initial": "identity"}))

    np.testing.assert_array_equal(untrained.mapping, np.eye(5))
    assert untrained.criterion == -np.inf


def test_networks_of_different_sizes_align_and_of_different_widths_do_not(pair: Rotated) -> None:
    smaller = Rotated(pair.source, pair.target[:7], pair.rotation, pair.anchors)
    single = Rotated(pair.source[:1], pair.target[:1], pair.rotation, pair.anchors)

    assert np.isfinite(start(smaller, 7).train().criteria).all()
    assert np.isfinite(start(single, 7).train().criteria).all()
    with pytest.raises(DataError, match="widths differ"):
        AdversarialStart(
            CONFIG, pair.source, pair.target[:, :3], neighbours=10, tie_seed=0, rng=np.random.default_rng(0)
        )
