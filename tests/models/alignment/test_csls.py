"""CSLS and mutual nearest neighbours: equal to slow loops, blind to ids, and sound for networks of any size."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tasks.models.alignment import procrustes
from tasks.models.alignment.procrustes import Csls

SIZES = [(30, 30, 5), (17, 41, 10), (41, 17, 10), (1, 1, 10), (1, 6, 3), (6, 1, 3)]


def naive(source: NDArray[np.float64], target: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    def cosine(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))

    cosines = np.array([[cosine(x, y) for y in target] for x in source])
    row = [np.mean(sorted(line, reverse=True)[:k]) for line in cosines]
    column = [np.mean(sorted(line, reverse=True)[:k]) for line in cosines.T]
    return np.array([[2 * cosines[i, j] - row[i] - column[j] for j in range(len(target))] for i in range(len(source))])


@pytest.mark.parametrize(("n_sources", "n_targets", "k"), SIZES)
@pytest.mark.parametrize("cells", [1, 50, 1 << 23])
def test_scores_and_mutual_neighbours_equal_a_slow_loop_whatever_the_blocks(
    n_sources: int, n_targets: int, k: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(procrustes, "CELLS", cells)
    rng = np.random.default_rng(n_sources)
    source, target = rng.standard_normal((n_sources, 6)), rng.standard_normal((n_targets, 6))
    actual = Csls.from_vectors(source, target, k)
    matches = actual.mutual_neighbours(tie_seed=0)
    expected = naive(source, target, k)
    np.testing.assert_allclose(actual.scores(np.arange(n_sources)), expected, atol=1e-5)
    mutual = {
        (i, j)
        for i in range(n_sources)
        for j in range(n_targets)
        if expected[i, j] == expected[i].max() and expected[i, j] == expected[:, j].max()
    }
    assert {(int(i), int(j)) for i, j in matches.pairs} == mutual
    assert (np.diff([expected[i, j] for i, j in matches.pairs]) <= 1e-5).all()
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (source, target)]
    nearest = [unit[0][i] @ unit[1][expected[i].argmax()] for i in range(n_sources)]
    assert matches.criterion == pytest.approx(np.mean(nearest), abs=1e-5)


def test_order_of_ids_decides_nothing_where_all_users_are_equally_near() -> None:
    # Ids that mean the same person in both networks would give ties away if the lowest id went first.
    n = 100
    alike = np.ones((n, 3))
    pairs = [tuple(Csls.from_vectors(alike, alike, 10).mutual_neighbours(seed).pairs[0]) for seed in range(60)]
    assert sum(i == j for i, j in pairs) <= 5  # Binomial(60, 1/100) exceeds 5 once in 20,000 times
    assert len(set(pairs)) > 50


def test_there_is_always_a_pair_and_nobody_is_in_two() -> None:
    rng = np.random.default_rng(2)
    source = np.repeat(rng.standard_normal((5, 3)), 4, axis=0)
    target = np.concatenate([np.zeros((3, 3)), source[::2], source[::2]])
    pairs = Csls.from_vectors(source, target, 10).mutual_neighbours(tie_seed=3).pairs
    assert len(pairs) >= 1
    assert len(set(pairs[:, 0])) == len(set(pairs[:, 1])) == len(pairs)
