"""The adversarial start: finds noise-free rotations, is the same however often interrupted, stays near orthogonal."""

import json
from collections.abc import Callable

import numpy as np
import pytest
import torch

from tasks.core.errors import DataError
from tasks.models.alignment.adversarial import (
    AdversarialConfig,
    AdversarialStart,
    CoderConfig,
    CycleConfig,
    CycleStart,
    codes,
)
from tasks.models.alignment.aligner import Aligner, AlignmentConfig
from tasks.models.base import Progress
from tests.models.alignment.clouds import Rotated, clustered, rotated

CONFIG = AdversarialConfig(
    epochs=3, iterations=20, discriminator_steps=2, batch_size=16, learning_rate=0.1, hidden=(16, 8), initial="random"
)


CYCLE = CycleConfig.model_validate(CONFIG.model_dump() | {"initial": "identity"})
CODER = CoderConfig(width=5, steps=600, batch_size=32, learning_rate=0.01)
BOTH = pytest.mark.parametrize("config", [CONFIG, CYCLE], ids=["plain", "cycle"])


@pytest.fixture
def pair() -> Rotated:
    rng = np.random.default_rng(0)
    return rotated(clustered(80, 5, 4, rng), rng)


def start(pair: Rotated, seed: int, config: AdversarialConfig = CONFIG) -> AdversarialStart:
    rng = np.random.default_rng(seed)
    kind = CycleStart if isinstance(config, CycleConfig) else AdversarialStart
    return kind(config, pair.source, pair.target, neighbours=10, tie_seed=0, rng=rng)


class Watched(Progress):
    """Asks of the trained start, after every epoch, whether to go on."""

    def __init__(self, going: Callable[[AdversarialStart], bool]) -> None:
        self.going = going

    def epoch(self, model: AdversarialStart, loss: float) -> bool:
        assert loss == model.losses[-1]
        return self.going(model)


@BOTH
def test_an_interrupted_training_ends_as_an_unbroken_one(pair: Rotated, config: AdversarialConfig) -> None:
    unbroken = start(pair, 1, config).train()
    first = start(pair, 1, config).train(Watched(lambda trained: len(trained.criteria) < 2))
    tensors, rest = first.state()
    first.train()  # what was handed out must not change with it
    second = start(pair, 2, config)
    second.load_state(tensors, json.loads(json.dumps(rest)))
    assert len(second.criteria) == 2
    second.train()
    np.testing.assert_array_equal(second.mapping, unbroken.mapping)
    assert second.criteria == unbroken.criteria == first.criteria
    assert second.losses == unbroken.losses
    torch.testing.assert_close(second.state()[0], unbroken.state()[0], rtol=0, atol=0)


def test_seeds_alone_decide_and_each_gives_another_map(pair: Rotated) -> None:
    torch.manual_seed(1)
    first = start(pair, 1).train()
    torch.manual_seed(2)
    again, other = start(pair, 1).train(), start(pair, 2).train()
    np.testing.assert_array_equal(first.mapping, again.mapping)
    assert np.abs(first.mapping - other.mapping).max() > 0.1


def test_the_map_handed_on_is_orthogonal_and_of_the_best_epoch(pair: Rotated) -> None:
    maps: list[np.ndarray] = []
    trained = start(pair, 3).train(Watched(lambda now: maps.append(now.mapping) or True))
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


@BOTH
def test_the_decay_slows_maps_and_no_discriminator(pair: Rotated, config: AdversarialConfig) -> None:
    states: list[dict[str, torch.Tensor]] = []
    slowed = start(pair, 8, config.model_copy(update={"decay": 1e-12, "beta": 0.0, "epochs": 2}))
    slowed.train(Watched(lambda now: states.append(now.state()[0]) or True))
    for names in slowed.names:
        of_map, of_discriminator = (
            (states[1][name] - states[0][name]).abs().max() for name in (names[0], f"{names[1]}.layers.0.weight")
        )
        assert of_map < 1e-6 < 1e-3 < of_discriminator


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
        config = CYCLE.model_copy(
            update={"cycle": weight, "epochs": 1, "iterations": 200, "beta": 0.0, "learning_rate": 0.02}
        )
        tensors = start(pair, 1, config).train().state()[0]
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
