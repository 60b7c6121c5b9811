"""Procrustes: exact where an exact map exists, the oracle's answer elsewhere, orthogonal always."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from tasks.models.alignment.procrustes import nearest_orthogonal, procrustes, refine
from tests.models.alignment.clouds import clustered, rotated


@pytest.mark.parametrize("n_pairs", [8, 50])
def test_noisy_pairs_give_what_scipy_gives(n_pairs: int) -> None:
    rng = np.random.default_rng(0)
    source, target = rng.standard_normal((n_pairs, 8)), rng.standard_normal((n_pairs, 8))
    np.testing.assert_allclose(procrustes(source, target), orthogonal_procrustes(source, target)[0], atol=1e-10)


@pytest.mark.parametrize("n_pairs", [1, 3, 12])
def test_maps_are_orthogonal_even_from_fewer_pairs_than_columns(n_pairs: int) -> None:
    rng = np.random.default_rng(1)
    source = rng.standard_normal((n_pairs, 12))
    target = source @ np.linalg.qr(rng.standard_normal((12, 12)))[0]
    mapping = procrustes(source, target)
    np.testing.assert_allclose(mapping.T @ mapping, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(source @ mapping, target, atol=1e-10)


def test_no_orthogonal_map_is_nearer_than_the_nearest() -> None:
    rng = np.random.default_rng(2)
    mapping = rng.standard_normal((5, 5))
    others = np.linalg.qr(rng.standard_normal((500, 5, 5)))[0]
    nearest = nearest_orthogonal(mapping)
    np.testing.assert_allclose(nearest @ nearest.T, np.eye(5), atol=1e-12)
    assert np.linalg.norm(mapping - nearest) <= np.linalg.norm(mapping - others, axis=(1, 2)).min()


def test_refinement_repairs_a_map_that_is_nearly_right_and_keeps_the_best() -> None:
    rng = np.random.default_rng(3)
    pair = rotated(clustered(300, 8, 6, rng), rng)
    start = nearest_orthogonal(pair.rotation + 0.1 * rng.standard_normal((8, 8)))
    refined = refine(pair.source, pair.target, start, iterations=8, neighbours=10, tie_seed=0)
    assert np.abs(refined.mapping - pair.rotation).max() < 1e-6 < np.abs(start - pair.rotation).max()
    assert refined.criterion == max(refined.criteria) > refined.criteria[0]
    assert len(refined.criteria) == len(refined.matched) == 9


def test_known_pairs_stay_in_every_fit() -> None:
    # From a wrong start all pairs found are wrong; enough known ones hold the map where it belongs all the same.
    rng = np.random.default_rng(4)
    pair = rotated(clustered(100, 6, 5, rng), rng)
    start = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    refined = refine(pair.source, pair.target, start, iterations=1, neighbours=10, tie_seed=0, anchors=pair.anchors)
    np.testing.assert_allclose(refined.mapping, pair.rotation, atol=1e-10)
