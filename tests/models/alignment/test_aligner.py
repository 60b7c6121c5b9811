"""Alignment as a whole, from no anchors, from some, and from what cannot be aligned."""

import numpy as np
import pytest

from tasks.core.errors import DataError
from tasks.evaluation.alignment import precision
from tasks.models.alignment.adversarial import AdversarialConfig
from tasks.models.alignment.aligner import Aligner, AlignmentConfig
from tasks.models.alignment.procrustes import Csls, normalise, procrustes
from tests.models.alignment.clouds import clustered, rotated

CONFIG = AlignmentConfig(
    normalise=("centre", "unit"),
    refinements=8,
    adversarial=AdversarialConfig(
        epochs=2,
        iterations=300,
        discriminator_steps=2,
        batch_size=64,
        learning_rate=0.5,
        hidden=(64,),
        initial="random",
    ),
)


def test_a_rotated_network_is_found_without_a_single_anchor_and_the_criterion_tells_which_start_did() -> None:
    rng = np.random.default_rng(1)
    pair = rotated(clustered(300, 4, 6, rng), rng)
    aligner = Aligner(CONFIG, pair.source, pair.target)
    starts = (aligner.start(np.random.default_rng(seed)).train() for seed in range(3))
    attempts = [aligner.refine(start.mapping) for start in starts]
    best = max(attempts, key=lambda attempt: attempt.criterion)
    errors = [np.abs(attempt.mapping - pair.rotation).max() for attempt in attempts]
    assert min(errors) < 0.01 < 0.5 < max(errors)
    assert best is attempts[int(np.argmin(errors))]
    actual = precision(aligner.csls(best.mapping).scores, pair.anchors, (1, 10))
    assert actual.at[1] > 0.95
    assert actual.at[10] == 1


def test_a_few_anchors_align_a_rotated_network_and_held_out_people_are_found() -> None:
    rng = np.random.default_rng(3)
    pair = rotated(rng.standard_normal((200, 12)), rng)
    aligner = Aligner(CONFIG, pair.source, pair.target)
    refined = aligner.from_anchors(pair.anchors[:14])
    np.testing.assert_allclose(refined.mapping, pair.rotation, atol=1e-6)
    assert precision(aligner.csls(refined.mapping).scores, pair.anchors[14:], (1,)).at[1] == 1


def test_unrelated_networks_are_aligned_no_better_than_by_chance() -> None:
    rng = np.random.default_rng(4)
    aligner = Aligner(CONFIG, rng.standard_normal((400, 10)), rng.standard_normal((500, 10)))
    anchors = np.stack([np.arange(400), np.arange(400)], axis=1)
    refined = aligner.from_anchors(anchors[:40])
    actual = precision(aligner.csls(refined.mapping).scores, anchors[40:], (10,))
    # Binomial(360, 10 / 500) exceeds 18 once in 5,000 times.
    assert actual.at[10] * 360 <= 18
    assert actual.chance[10] == 10 / 500


def test_ids_say_nothing_about_the_result() -> None:
    rng = np.random.default_rng(5)
    pair = rotated(clustered(60, 5, 4, rng) + 0.1 * rng.standard_normal((60, 5)), rng)
    order = rng.permutation(60)
    moved = np.argsort(order)
    first = Aligner(CONFIG, pair.source, pair.target).from_anchors(pair.anchors[:10])
    renamed = pair.anchors[:10].copy()
    renamed[:, 1] = moved[renamed[:, 1]]
    second = Aligner(CONFIG, pair.source, pair.target[order]).from_anchors(renamed)
    np.testing.assert_allclose(first.mapping, second.mapping, atol=1e-6)
    np.testing.assert_allclose(first.criteria, second.criteria, atol=1e-6)


ALIGNER, SOME = Aligner(CONFIG, np.eye(4), np.eye(4)[:3]), np.ones((3, 2))


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (DataError, lambda: ALIGNER.from_anchors(np.empty((0, 2), np.int64)), "none are known"),
        (DataError, lambda: ALIGNER.from_anchors(np.array([[0, 0], [3, 3]])), r"1 name a target user outside 0\.\.2"),
        (DataError, lambda: ALIGNER.from_anchors(np.array([[-1, 0]])), r"1 name a source user outside 0\.\.3"),
        (DataError, lambda: Aligner(CONFIG, np.eye(4), np.eye(3)), "widths differ"),
        (DataError, lambda: Csls.from_vectors(SOME, np.ones((3, 4)), 10), "widths differ"),
        (DataError, lambda: Csls.from_vectors(SOME, np.ones((0, 2)), 10), "users × columns"),
        (
            DataError,
            lambda: Csls.from_vectors(SOME, np.array([[1.0, 2], [np.nan, 1]]), 10),
            r"not finite \(first: user 1",
        ),
        (ValueError, lambda: Csls.from_vectors(SOME, SOME, 0), "neighbours"),
        (DataError, lambda: procrustes(np.empty((0, 4)), np.empty((0, 4))), "none are known"),
        (DataError, lambda: procrustes(np.ones((3, 4)), np.ones((2, 4))), "one shape"),
    ],
)
def test_what_cannot_be_aligned_is_refused(error, call, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_normalisation_centres_and_scales_in_the_order_given() -> None:
    rng = np.random.default_rng(6)
    cloud = rng.standard_normal((50, 4)) + 3
    cloud[7] = 0
    np.testing.assert_allclose(normalise(cloud, ("unit", "centre")).mean(axis=0), 0, atol=1e-12)
    lengths = np.linalg.norm(normalise(cloud, ("unit",)), axis=1)
    np.testing.assert_allclose(np.delete(lengths, 7), 1)
    assert lengths[7] == 0
    np.testing.assert_allclose(np.linalg.norm(normalise(cloud, ("centre", "unit")), axis=1), 1)
    np.testing.assert_array_equal(normalise(cloud, ()), cloud)
