"""DPMF and DPNE: what they compute under either accounting, what noise does to them, and what their ledgers say."""

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from tasks.core.training_data import TrainingData
from tasks.models.ranking import dpmf
from tasks.models.ranking.dpmf import DPMF, DPMFConfig, mutual_information, public_groups
from tasks.models.ranking.factors import unit_user_vectors
from tasks.privacy import noise
from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import laplace
from tests.models import contract
from tests.models.contract import all_scores, make, of_matrix
from tests.systems import ids


def dense(data: TrainingData) -> np.ndarray:
    cells = np.zeros((data.n_users, data.n_items))
    cells[data.users, data.items] = 1
    return cells


def sparse_taste(seed: int = 0) -> TrainingData:
    """Popular and rare items, and two tastes."""
    rng = np.random.default_rng(seed)
    likes = 0.6 / np.sqrt(1 + np.arange(50)) * (1 + 0.9 * (-1.0) ** np.add.outer(np.arange(80), np.arange(50)))
    return of_matrix(rng.random((80, 50)) < likes)


def fitted(data: TrainingData, accounting: str, epsilon: float, **override: float) -> DPMF:
    settings = {"dimension": 3, "ridge": 0.5} | override
    return contract.fitted("dpmf", data, accounting=accounting, epsilon=epsilon, **settings)


def descend(users: np.ndarray, cells: np.ndarray, noise: np.ndarray, ridge: float) -> np.ndarray:
    """Item vectors by gradient descent on Σ (r_ij - u_iᵀv_j)² + ridge Σ ‖v_j‖² + Σ η_jᵀv_j."""
    items = np.zeros((cells.shape[1], users.shape[1]))
    rate = 0.5 / (np.linalg.eigvalsh(users.T @ users).max() + ridge)
    for _ in range(5_000):
        items -= rate * (2 * (items @ users.T - cells.T) @ users + 2 * ridge * items + noise)
    return items


@pytest.mark.parametrize("accounting", ["published", "rigorous"])
def test_item_vectors_minimise_the_perturbed_objective(accounting: str) -> None:
    data = sparse_taste()
    with noise.recording() as draws:
        model = fitted(data, accounting, 2.0)
    (draw,) = draws
    linear, users = draw.values.reshape(data.n_items, -1), model.users.double().numpy()
    if accounting == "rigorous":
        linear, users = -2.0 * linear, np.eye(3)[public_groups(data.n_users, 3, np.random.default_rng(0))]
    assert np.abs(linear).max() > 0.5
    np.testing.assert_allclose(model.items.numpy(), descend(users, dense(data), linear, 0.5), atol=1e-5)


def test_without_noise_published_is_least_squares_on_a_truncated_svd() -> None:
    data = sparse_taste()
    cells = dense(data)
    _, _, right = np.linalg.svd(cells)
    users = cells @ right[:5].T
    users /= np.maximum(np.linalg.norm(users, axis=1, keepdims=True), 1e-12)
    expected = users @ np.linalg.lstsq(users, cells, rcond=None)[0]
    model = fitted(data, "published", math.inf, dimension=5, ridge=1e-9)
    np.testing.assert_allclose(all_scores(model, data).numpy(), expected, atol=1e-5)


def test_a_user_fits_a_vector_to_what_is_released_and_to_the_own_row() -> None:
    data = sparse_taste()
    model = fitted(data, "rigorous", 2.0, dimension=4, ridge=0.3)
    items, cells = model.items.double().numpy(), dense(data)
    for user in (0, 17):  # ridge regression as least squares with rows for the ridge
        stacked = np.vstack([items, math.sqrt(0.3) * np.eye(4)])
        target = np.concatenate([cells[user], math.sqrt(0.3) * np.full(4, 1 / 4)])
        own = np.linalg.lstsq(stacked, target, rcond=None)[0]
        np.testing.assert_allclose(model.users[user].numpy(), own, atol=1e-5)


def test_rigorous_reads_interactions_through_noisy_counts_and_the_own_row_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two inputs that give the same noisy counts give the same item vectors, and the same vector to every user whose
    own interactions are the same."""
    data = sparse_taste()
    other = TrainingData(data.n_users, data.n_items, data.users[1:], data.items[1:])
    monkeypatch.setattr(laplace, "noisy_counts", lambda counts, *_: np.arange(len(counts)) % 7)
    model, neighbour = (fitted(inputs, "rigorous", 1.0) for inputs in (data, other))
    assert torch.equal(model.items, neighbour.items)
    changed = (model.users != neighbour.users).any(1)
    assert changed.nonzero().ravel().tolist() == [int(data.users[0])]


def test_one_interaction_changes_one_count_by_one() -> None:
    """What the sensitivity in the ledger's event says, over all interactions of a data set."""
    data = sparse_taste()
    config = DPMFConfig(dimension=4, epsilon=math.inf, ridge=1.0, accounting="rigorous")
    groups = public_groups(data.n_users, 4, np.random.default_rng(0))
    sizes = np.bincount(groups)

    def counts(kept: np.ndarray) -> np.ndarray:
        inputs = TrainingData(data.n_users, data.n_items, data.users[kept], data.items[kept])
        return dpmf.group_rates(inputs, groups, config, np.random.default_rng(0)) * (sizes + 1.0)

    everything = np.arange(len(data.users))
    full = counts(everything)
    changes = [np.abs(full - counts(np.delete(everything, index))).sum() for index in everything[::20]]
    np.testing.assert_allclose(changes, 1.0)


def test_public_groups_are_of_equal_size() -> None:
    sizes = np.bincount(public_groups(103, 10, np.random.default_rng(0)), minlength=10)
    assert sizes.min() == 10
    assert sizes.max() == 11


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dpmf", "users-from-svd"),
        ("dpne", "users-and-graph"),
        ("dpmf-implicit", "users-and-cells"),
        ("dpmf-explicit", "users-and-cells"),
    ],
)
def test_the_ledger_gives_no_finite_epsilon_where_users_come_from_exact_data(name: str, reason: str) -> None:
    (entry,) = make(name, epsilon=0.4).ledger()
    assert (entry.protects, entry.accounting, entry.claimed_epsilon) == ("interaction", "published", 0.4)
    assert entry.accounted_epsilon is None
    assert account(entry.events).epsilon is None
    assert account(entry.events[:1]).epsilon == pytest.approx(0.4)  # what the noise would give by itself
    assert ids(entry.reasons) == {reason}
    (nothing,) = make(name, epsilon=math.inf).ledger()
    assert (nothing.claimed_epsilon, nothing.accounted_epsilon) == (None, None)


def test_the_ledger_gives_the_rigorous_accounting_its_budget_exactly() -> None:
    for epsilon in (0.1, 0.4, 6.4):
        entry = DPMF(DPMFConfig(dimension=16, epsilon=epsilon, ridge=1, accounting="rigorous")).ledger()[0]
        assert entry.accounting == "rigorous"
        assert entry.claimed_epsilon == entry.accounted_epsilon == account(entry.events).epsilon == epsilon
        assert entry.accounted_delta == 0
        assert {"own-list-items", "group-privacy"} <= ids(entry.gaps)


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


def test_item_vectors_of_dpne_minimise_its_perturbed_objective() -> None:
    data = sparse_taste()
    with noise.recording() as draws:
        model = contract.fitted("dpne", data, dimension=3, ridge=0.5, epsilon=4.0)
    (draw,) = draws
    assert draw.scale == 2 * 2.0 * math.sqrt(3) / 4.0  # 2 cap √d / ε
    cells = np.zeros((data.n_users, data.n_items))
    cells[data.users, data.items] = mutual_information(data, 0.75, 1.0, 2.0)
    expected = descend(model.users.double().numpy(), cells, draw.values, 0.5)
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
