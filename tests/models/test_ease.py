"""EASE is the ridge regression of every item on all others."""

import numpy as np
import pytest
import torch

from tasks.core.training_data import TrainingData
from tasks.models.ranking import ease
from tasks.models.ranking.ease import EASE
from tests.models import contract

REGULARIZATION = 3.0


def random_data(n_users: int = 30, n_items: int = 12, seed: int = 0) -> tuple[TrainingData, np.ndarray]:
    """The last user and the last item have no interaction; also X, (n_users, n_items)."""
    matrix = (np.random.default_rng(seed).random((n_users, n_items)) < 0.3).astype(np.float64)
    matrix[-1] = matrix[:, -1] = 0
    return contract.of_matrix(matrix), matrix


@pytest.fixture
def fitted() -> tuple[EASE, np.ndarray]:
    data, matrix = random_data()
    return contract.fitted("ease", data, regularization=REGULARIZATION), matrix


def test_each_column_is_the_ridge_regression_of_its_item_on_all_other_items(fitted):
    model, matrix = fitted
    n_items = matrix.shape[1]
    for item in range(n_items):
        others = np.delete(np.arange(n_items), item)
        # Ridge regression as least squares on √λ more rows, which shares nothing with the closed form.
        rows = np.concatenate([matrix[:, others], REGULARIZATION**0.5 * np.eye(n_items - 1)])
        targets = np.concatenate([matrix[:, item], np.zeros(n_items - 1)])
        expected = np.linalg.lstsq(rows, targets, rcond=None)[0]
        np.testing.assert_allclose(model.weights[others, item], expected, atol=1e-6)
    assert not model.weights.diagonal().any()


def test_blocks_of_columns_give_what_one_block_gives(monkeypatch):
    data, _ = random_data(n_users=200, n_items=23)
    models = []
    for block in (23, 5):
        monkeypatch.setattr(ease, "BLOCK", block)
        models.append(contract.fitted("ease", data, regularization=REGULARIZATION))
    np.testing.assert_allclose(models[1].weights, models[0].weights, rtol=1e-5, atol=1e-8)


def test_scores_are_the_users_items_times_the_weights_in_whatever_order_users_are_asked_for(fitted):
    model, matrix = fitted
    users = np.array([29, 3, 3, 17], np.int32)
    scores = model.score(users)
    np.testing.assert_allclose(scores.numpy(), matrix[users] @ model.weights, atol=1e-6)
    assert torch.equal(scores, model.score(np.arange(30, dtype=np.int32))[torch.from_numpy(users).long()])
    assert (scores[0] == 0).all()
