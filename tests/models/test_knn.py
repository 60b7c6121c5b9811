"""Neighbours are those of slow obvious code, ties are broken by chance, and scores are plain means."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from tasks.core.training_data import TrainingData
from tasks.models.ranking import knn
from tasks.models.ranking.knn import KNN
from tests.models import contract


def random_data(n_users: int = 25, n_items: int = 12, seed: int = 0) -> tuple[TrainingData, np.ndarray]:
    """Ratings 1 to 5 in steps of a half; user 3 has none. Also the matrix of ratings."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(2, 11, (n_users, n_items)) / 2 * (rng.random((n_users, n_items)) < 0.3)
    matrix[3] = 0
    return contract.of_matrix(matrix, ratings=matrix[matrix > 0].astype(np.float32)), matrix


def fitted(data: TrainingData, seed: int = 0, **config) -> KNN:
    return contract.fitted("knn", data, seed, **{"k": 4, "values": "ratings"} | config)


def rows_of(matrix: np.ndarray, values: str, scaled: bool) -> np.ndarray:
    rows = matrix if values == "ratings" else (matrix > 0).astype(float)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) if scaled else rows


@pytest.mark.parametrize("values", ["binary", "ratings"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("block", [1, 7 * 25, 2**22])
def test_nobody_left_out_is_nearer_than_a_neighbour_and_nobody_neighbours_oneself(monkeypatch, values, scaled, block):
    monkeypatch.setattr(knn, "BLOCK", block)
    data, matrix = random_data()
    model = fitted(data, values=values, scaled=scaled)
    rows = rows_of(matrix, values, scaled)
    for user in range(data.n_users):
        near = set(model.neighbours[user].tolist())
        others = set(range(data.n_users)) - near - {user}
        distance = [np.sqrt(((rows[user] - row) ** 2).sum()) for row in rows]
        assert len(near) == 4
        assert user not in near
        assert max(distance[other] for other in near) <= min(distance[other] for other in others) + 1e-12


@pytest.mark.parametrize("values", ["binary", "ratings"])
def test_scores_are_the_mean_of_the_neighbours_rows_in_whatever_order_users_are_asked_for(values):
    data, matrix = random_data()
    model = fitted(data, values=values)
    users = np.array([24, 3, 3, 0], np.int32)
    rows = rows_of(matrix, values, scaled=False)
    expected = np.array([np.mean([rows[other] for other in model.neighbours[user]], axis=0) for user in users])
    scores = model.score(users)
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    assert scores.dtype == torch.float32
    assert torch.equal(scores, model.score(np.arange(25, dtype=np.int32))[torch.from_numpy(users).long()])


@pytest.mark.parametrize("scaled", [False, True])
def test_of_equally_near_users_each_is_as_likely(scaled):
    # Users 1 to 8 are one and the same; user 0 takes two of them. Each is taken with probability 1/4: over 400 seeds
    # 100 times give or take 8.7, so that 5 standard deviations are exceeded once in 200,000 (eight users, two cases).
    rows = csr_array(np.vstack([[1.0, 0, 0], np.tile([0, 1.0, 1.0], (8, 1))]))
    taken = np.zeros(9)
    for seed in range(400):
        taken[knn.nearest_rows(rows, 2, np.random.default_rng(seed), scaled=scaled)[0]] += 1
    assert taken[0] == 0
    assert np.abs(taken[1:] - 100).max() < 44
