"""DPMF: what it computes under either accounting, what noise does to it, and what its ledger says."""

import math

import numpy as np
import pytest
import torch

from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.models.ranking import dpmf
from tasks.models.ranking.dpmf import DPMF, DPMFConfig, public_groups
from tasks.privacy import noise
from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import laplace, objective
from tests.models.contract import all_scores, checkerboard, make
from tests.systems import ids

ACCOUNTINGS = ["published", "rigorous"]


def dense(data: TrainingData) -> np.ndarray:
    cells = np.zeros((data.n_users, data.n_items))
    cells[data.users, data.items] = 1
    return cells


def sparse_taste(seed: int = 0) -> TrainingData:
    """Popular and rare items, and two tastes."""
    rng = np.random.default_rng(seed)
    likes = 0.6 / np.sqrt(1 + np.arange(50)) * (1 + 0.9 * (-1.0) ** np.add.outer(np.arange(80), np.arange(50)))
    users, items = np.nonzero(rng.random((80, 50)) < likes)
    return TrainingData(80, 50, users.astype(np.int32), items.astype(np.int32))


def fitted(
    data: TrainingData, accounting: str, epsilon: float, *, dimension: int = 3, ridge: float = 0.5, seed: int = 0
):
    config = DPMFConfig(dimension=dimension, epsilon=epsilon, ridge=ridge, accounting=accounting)
    return DPMF(config).fit(data, rng=np.random.default_rng(seed))


def descend(users: np.ndarray, cells: np.ndarray, noise: np.ndarray, ridge: float) -> np.ndarray:
    """Item vectors by gradient descent on Σ (r_ij - u_iᵀv_j)² + ridge Σ ‖v_j‖² + Σ η_jᵀv_j."""
    items = np.zeros((cells.shape[1], users.shape[1]))
    rate = 0.5 / (np.linalg.eigvalsh(users.T @ users).max() + ridge)
    for _ in range(5_000):
        items -= rate * (2 * (items @ users.T - cells.T) @ users + 2 * ridge * items + noise)
    return items


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_item_vectors_minimise_the_perturbed_objective(accounting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, drawn = sparse_taste(), []
    draw, noisy_counts = objective.draw, laplace.noisy_counts

    def watched_draw(*arguments):
        drawn.append(draw(*arguments))
        return drawn[-1]

    def watched_counts(counts, *arguments):
        noisy = noisy_counts(counts, *arguments)
        drawn.append(-2.0 * (noisy - counts).reshape(data.n_items, -1))
        return noisy

    monkeypatch.setattr(objective, "draw", watched_draw)
    monkeypatch.setattr(laplace, "noisy_counts", watched_counts)
    model = fitted(data, accounting, 2.0)
    (noise,) = drawn
    if accounting == "published":
        users = model.users.double().numpy()
    else:
        users = np.eye(3)[public_groups(data.n_users, 3, np.random.default_rng(0))]
    assert np.abs(noise).max() > 0.5
    np.testing.assert_allclose(model.items.numpy(), descend(users, dense(data), noise, 0.5), atol=1e-5)


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


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_rigorous_spends_its_budget_once(epsilon: float) -> None:
    """One release, a noisy count for each item and group, with noise for ε and sensitivity 1."""
    data = sparse_taste()
    with noise.recording() as draws:
        model = fitted(data, "rigorous", epsilon)
    (draw,) = draws
    assert draw.scale == pytest.approx(1 / -math.expm1(-epsilon))
    assert draw.shape == (data.n_items * model.config.dimension,)


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


def test_more_factors_than_users_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="30 singular vectors need more than 30 users and items"):
        fitted(checkerboard()[0], "published", 1.0, dimension=30)
