"""DPNE: the matrix it factorises, what noise does to it, and what its ledger says."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpmf import DPNE, DPNEConfig, mutual_information
from tasks.models.ranking.factors import unit_user_vectors
from tasks.privacy.mechanisms import objective
from tests.models.test_dpmf import descend, sparse_taste

COMMON = {"dimension": 3, "ridge": 0.5, "smoothing": 0.75, "shift": 1.0, "cap": 2.0}


def fitted(data: TrainingData, epsilon: float, seed: int = 0) -> DPNE:
    return DPNE(DPNEConfig(**COMMON, epsilon=epsilon)).fit(data, rng=np.random.default_rng(seed))


def mutual_information_of_one(data: TrainingData, edge: int, smoothing: float, shift: float) -> float:
    """log P(u, v) / (P(u) P_s(v)) - log shift by counting edges."""
    n_edges = len(data.users)
    p_user = sum(user == data.users[edge] for user in data.users) / n_edges
    weights = [sum(item == other for item in data.items) ** smoothing for other in sorted(set(data.items))]
    p_item = sum(item == data.items[edge] for item in data.items) ** smoothing / sum(weights)
    return math.log(1 / n_edges / (p_user * p_item)) - math.log(shift)


@pytest.mark.parametrize(("smoothing", "shift"), [(1.0, 1.0), (0.75, 1.0), (0.5, 3.0), (0.0, 0.5)])
def test_cells_are_shifted_positive_mutual_information(smoothing: float, shift: float) -> None:
    data = sparse_taste()
    cells = mutual_information(data, smoothing, shift, 1.5)
    assert cells.min() >= 0
    assert cells.max() <= 1.5
    for edge in range(0, len(data.users), 37):
        expected = np.clip(mutual_information_of_one(data, edge, smoothing, shift), 0, 1.5)
        assert cells[edge] == pytest.approx(expected)


def test_item_vectors_minimise_the_perturbed_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    data, drawn, scales = sparse_taste(), [], []
    draw = objective.draw

    def watched(n_items, dim, scale, rng):
        drawn.append(draw(n_items, dim, scale, rng))
        scales.append(scale)
        return drawn[-1]

    monkeypatch.setattr(objective, "draw", watched)
    model = fitted(data, 4.0)
    assert scales == [2 * 2.0 * math.sqrt(3) / 4.0]  # 2 cap √d / ε
    cells = np.zeros((data.n_users, data.n_items))
    cells[data.users, data.items] = mutual_information(data, 0.75, 1.0, 2.0)
    expected = descend(model.users.double().numpy(), cells, drawn[0], 0.5)
    np.testing.assert_allclose(model.items.numpy(), expected, atol=1e-5)


def test_user_vectors_span_the_leading_singular_vectors() -> None:
    """Against a dense decomposition; a user without edges has no direction."""
    matrix = np.random.default_rng(0).random((20, 15)) * (np.random.default_rng(1).random((20, 15)) < 0.4)
    matrix[4] = 0
    users = unit_user_vectors(csr_array(matrix), 3, np.random.default_rng(2))
    projected = matrix @ np.linalg.svd(matrix)[2][:3].T
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    expected = np.divide(projected, lengths, where=lengths > 0, out=np.zeros_like(projected))
    np.testing.assert_allclose(users @ users.T, expected @ expected.T, atol=1e-9)
    assert not users[4].any()
    again = unit_user_vectors(csr_array(matrix), 3, np.random.default_rng(9))
    np.testing.assert_allclose(again, users, atol=1e-9)  # signs are no matter of where iterations start


def test_one_edge_changes_cells_beside_its_own() -> None:
    """The gap that the ledger names."""
    data = sparse_taste()
    fewer = TrainingData(data.n_users, data.n_items, data.users[1:], data.items[1:])
    changed = mutual_information(data, 0.75, 1.0, 9.0)[1:] != mutual_information(fewer, 0.75, 1.0, 9.0)
    assert changed.sum() > 1
