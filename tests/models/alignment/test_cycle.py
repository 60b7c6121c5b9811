"""The released code's start: it turns a turned copy back, and is the same however often it is interrupted."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from tasks.models.alignment.adversarial import AdversarialConfig, CoderConfig, CycleConfig, CycleStart, codes
from tasks.models.alignment.aligner import Aligner, AlignmentConfig
from tests.models.alignment.clouds import Rotated, clustered, rotated

CODER = CoderConfig(width=5, steps=600, batch_size=32, learning_rate=0.01)
CONFIG = CycleConfig(
    epochs=3, iterations=20, discriminator_steps=2, batch_size=16, learning_rate=0.1, hidden=(16, 8),
    initial="identity", coder=CODER.model_copy(update={"steps": 60}),
)  # fmt: skip


@pytest.fixture
def pair() -> Rotated:
    rng = np.random.default_rng(0)
    return rotated(clustered(80, 5, 4, rng), rng)


def start(pair: Rotated, seed: int, config: CycleConfig = CONFIG) -> CycleStart:
    rng = np.random.default_rng(seed)
    return CycleStart(config, pair.source, pair.target, neighbours=10, tie_seed=0, rng=rng)


def test_an_interrupted_training_ends_as_an_unbroken_one(pair: Rotated) -> None:
    unbroken = start(pair, 1).train()
    tensors, rest = start(pair, 1).train(lambda trained: len(trained.criteria) < 2).state()
    second = start(pair, 2)
    second.load_state(tensors, json.loads(json.dumps(rest)))
    second.train()
    np.testing.assert_array_equal(second.mapping, unbroken.mapping)
    assert second.losses == unbroken.losses
    torch.testing.assert_close(second.state()[0], unbroken.state()[0], rtol=0, atol=0)


def test_the_decay_slows_both_maps_and_no_discriminator(pair: Rotated) -> None:
    states: list[dict[str, torch.Tensor]] = []
    slowed = start(pair, 3, CONFIG.model_copy(update={"decay": 1e-12, "beta": 0.0, "epochs": 2}))
    slowed.train(lambda now: states.append(now.state()[0]) or True)
    moved = {name: (states[1][name] - states[0][name]).abs().max().item() for name in states[0]}
    assert max(moved["map"], moved["back-map"]) < 1e-6
    assert min(moved["discriminator.layers.0.weight"], moved["back.layers.0.weight"]) > 1e-3


def test_codes_keep_what_vectors_say(pair: Rotated) -> None:
    """As wide as the vectors, or wider, they are an affine image from which the vectors follow."""
    for width in (5, 8):
        rows = codes(pair.source, CODER.model_copy(update={"width": width}), np.random.default_rng(3))
        assert rows.shape == (80, width)
        affine = np.column_stack([rows, np.ones(80)])
        back = affine @ np.linalg.lstsq(affine, pair.source, rcond=None)[0]
        np.testing.assert_allclose(back, pair.source, atol=1e-3)


def test_the_way_back_ends_where_it_began(pair: Rotated) -> None:
    """Maps start at one another's inverse; without the cycle's loss the discriminators lead them apart."""
    distances = []
    for weight in (0.0, 5.0):
        config = CONFIG.model_copy(
            update={"cycle": weight, "epochs": 1, "iterations": 200, "beta": 0.0, "learning_rate": 0.02}
        )
        rng = np.random.default_rng(1)
        trained = CycleStart(config, pair.source, pair.target, neighbours=10, tie_seed=0, rng=rng).train()
        tensors = trained.state()[0]
        distances.append(float((tensors["map"] @ tensors["back-map"] - torch.eye(5)).abs().mean()))
    assert distances[1] < distances[0] / 2


def test_a_turned_copy_is_turned_back_as_far_as_the_truth_goes() -> None:
    """By 0.7 radians, from the identity, which finds no one; the map of all true pairs is the most there is."""
    rng = np.random.default_rng(5)
    cloud, turn = clustered(150, 4, 4, rng), np.eye(4)
    turn[:2, :2] = [[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]]
    order = rng.permutation(150)
    anchors = np.stack([order, np.arange(150)], axis=1)
    cycle = CycleConfig(
        epochs=3, iterations=150, discriminator_steps=3, batch_size=32, learning_rate=0.1, hidden=(64,),
        initial="identity", coder=CODER,
    )  # fmt: skip
    plain = AdversarialConfig(**{name: getattr(cycle, name) for name in AdversarialConfig.model_fields})
    config = AlignmentConfig(normalise=(), refinements=5, adversarial=plain, cycle=cycle)
    aligner = Aligner(config, cloud, (cloud @ turn)[order])

    def right(mapping: np.ndarray) -> float:
        matched = aligner.csls(mapping).mutual_neighbours(0).pairs.tolist()
        return len(set(map(tuple, matched)) & set(map(tuple, anchors.tolist()))) / len(anchors)

    start = aligner.cycle_start(np.random.default_rng(0)).train()
    learnt, truth = aligner.refine(start.mapping).mapping, aligner.from_anchors(anchors).mapping
    assert right(np.eye(4)) < 0.05 < 0.9 < right(truth)
    assert right(learnt) == pytest.approx(right(truth), abs=0.02)
