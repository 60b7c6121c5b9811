"""DPMF over listed cells: which cells count, what it computes without noise, what noise is added, and its ledger."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpmf import ListedFactors
from tasks.privacy.mechanisms import objective
from tests.models import contract
from tests.models.contract import all_scores

KINDS = ["implicit", "explicit"]
SETTINGS = {"dimension": 3, "epsilon": 5.0, "ridge": 0.5, "alternations": 2}


def rated(seed: int = 0) -> TrainingData:
    """Popular and rare items, two tastes, ratings of 1 to 5 that follow them; the last user and item have nothing."""
    rng = np.random.default_rng(seed)
    taste = (-1.0) ** np.add.outer(np.arange(40), np.arange(30))
    likes = 0.9 / np.sqrt(1 + np.arange(30)) * (1 + 0.5 * taste)
    likes[-1] = likes[:, -1] = 0
    has = rng.random((40, 30)) < likes
    return contract.of_matrix(
        has, ratings=np.clip(3 + taste[has] + rng.integers(-1, 2, has.sum()), 1, 5).astype(np.float32)
    )


def made(kind: str, **override) -> ListedFactors:
    return contract.make(f"dpmf-{kind}", **SETTINGS | override)


def fitted(kind: str, data: TrainingData, seed: int = 0, **override) -> ListedFactors:
    return made(kind, **override).fit(data, rng=np.random.default_rng(seed))


def listed(kind: str, data: TrainingData, seed: int = 0) -> list[tuple[int, int, float]]:
    """The cells that count, as a fit from `seed` lists them first of all."""
    cells = made(kind).listing(data, np.random.default_rng(seed)).tocoo()
    return [(int(u), int(i), float(r)) for u, i, r in zip(*cells.coords, cells.data, strict=True)]


def ridge_regressions(factors: np.ndarray, cells: list[tuple[int, float]], ridge: float) -> np.ndarray:
    """The v with the least Σ (r - fᵀv)² + ridge ‖v‖², cells being (row of `factors`, r)."""
    rows = np.vstack([*(factors[row] for row, _ in cells), math.sqrt(ridge) * np.eye(factors.shape[1])])
    return np.linalg.lstsq(rows, np.r_[[value for _, value in cells], np.zeros(factors.shape[1])], rcond=None)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_item_vectors_are_ridge_regressions_on_listed_cells(kind: str) -> None:
    data = rated()
    model = fitted(kind, data, epsilon=math.inf)
    cells, users = listed(kind, data), model.users.double().numpy()
    for item in range(data.n_items):
        mine = [(u, r) for u, i, r in cells if i == item]
        np.testing.assert_allclose(model.items[item].numpy(), ridge_regressions(users, mine, 0.5), atol=1e-5)
    torch.testing.assert_close(all_scores(model, data), model.users @ model.items.T)


@pytest.mark.parametrize("kind", KINDS)
def test_user_vectors_are_ridge_regressions_in_turn_scaled_to_length_one(kind: str) -> None:
    data = rated()
    cells = listed(kind, data)
    before = fitted(kind, data, epsilon=math.inf, alternations=1)  # its item vectors follow from its user vectors
    after = fitted(kind, data, epsilon=math.inf, alternations=2)
    for user in range(data.n_users):
        mine = [(i, r) for u, i, r in cells if u == user]
        expected = ridge_regressions(before.items.double().numpy(), mine, 0.5)
        length = np.linalg.norm(expected)
        np.testing.assert_allclose(after.users[user].numpy(), expected / (length or 1), atol=1e-4)
    assert not after.users[-1].any()  # no one knows anything about that user


def test_explicit_cells_are_the_ratings_on_the_public_scale() -> None:
    data = rated()
    expected = {
        (int(u), int(i)): (float(r) - 1) / 4 for u, i, r in zip(data.users, data.items, data.ratings, strict=True)
    }
    assert {(u, i): r for u, i, r in listed("explicit", data)} == expected
    assert 0.0 in expected.values()  # the lowest rating counts as well


def test_implicit_cells_are_the_interactions_and_as_many_others_of_the_same_users() -> None:
    data = rated()
    cells = listed("implicit", data)
    taken = set(zip(data.users.tolist(), data.items.tolist(), strict=True))
    assert {(u, i) for u, i, r in cells if r == 1} == taken
    negatives = [(u, i) for u, i, r in cells if r == 0]
    assert len(negatives) + len(taken) == len(cells)
    assert not taken & set(negatives)
    drawn = np.bincount([u for u, _ in negatives], minlength=data.n_users)
    assert (drawn <= np.bincount(data.users, minlength=data.n_users)).all()  # fewer where one was drawn twice
    assert len(negatives) > 0.7 * len(taken)
    assert listed("implicit", data, seed=1) != cells


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_laplace_of_the_scale_that_one_cell_needs(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """η is found back from the solution, as the gradient it cancels: scale 2√d/ε. Kolmogorov-Smirnov, at 1e-5."""
    data = rated()
    actual = []
    for seed in range(30):
        model = fitted(kind, data, seed=seed)
        cells, users, items = listed(kind, data, seed), model.users.double().numpy(), model.items.double().numpy()
        noise = -2 * 0.5 * items
        for u, i, r in cells:
            noise[i] += 2 * (r - users[u] @ items[i]) * users[u]
        actual.append(noise)
    scale = 2 * math.sqrt(3) / 5.0
    assert stats.kstest(np.ravel(actual), stats.laplace(scale=scale).cdf).pvalue > 1e-5
    assert np.abs(np.array(actual)[:, -1]).min() > 0  # an item without any cell gets its noise as well
    monkeypatch.setattr(objective, "draw", lambda n, dim, *_: np.zeros((n, dim)))
    exact = fitted(kind, data, epsilon=math.inf)
    assert torch.equal(fitted(kind, data).items, exact.items)  # noise is all that a budget decides


@pytest.mark.parametrize("kind", KINDS)
def test_one_cells_value_moves_the_gradient_by_no_more_than_the_noise_is_made_for(kind: str) -> None:
    """Of the fitted user vectors; how far a cell can move them is what the claim leaves out."""
    users = fitted(kind, rated()).users.double().numpy()
    assert np.abs(2 * users).sum(1).max() <= 2 * math.sqrt(3) + 1e-6
    assert np.linalg.norm(users, axis=1).max() <= 1 + 1e-6
