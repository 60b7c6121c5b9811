"""LightGCN: scores are those of dense matrix powers, and of gradient steps on the paper's loss."""

import numpy as np
import pytest
import torch

from tasks.core.training_data import TrainingData
from tasks.models.base import Progress
from tasks.models.ranking.lightgcn import LightGCN, LightGCNConfig
from tests.models.contract import all_scores, checkerboard, of_matrix

SETTINGS = {"epochs": 1, "batch_size": 16, "learning_rate": 0.01, "dimension": 5}


def sparse_graph(seed: int = 0, n_users: int = 9, n_items: int = 14) -> TrainingData:
    """A random graph in which the last user and the last item have no edge."""
    edges = np.zeros((n_users, n_items), bool)
    edges[:-1, :-1].flat[np.random.default_rng(seed).choice((n_users - 1) * (n_items - 1), 40, replace=False)] = True
    return of_matrix(edges)


def built(data: TrainingData, **override) -> LightGCN:
    """A model at its initial weights."""
    model = LightGCN(LightGCNConfig.model_validate(SETTINGS | {"layers": 3} | override))
    model.network = model.build(data, np.random.default_rng(1))
    return model


def mean_of_powers(data: TrainingData, layers: int) -> np.ndarray:
    """(E + E^2 + ...) / (L + 1) with E the normalised adjacency of users, then items: (n_nodes, n_nodes)."""
    n = data.n_users + data.n_items
    adjacency = np.zeros((n, n))
    for user, item in zip(data.users, data.items, strict=True):
        adjacency[user, data.n_users + item] = adjacency[data.n_users + item, user] = 1
    degrees = adjacency.sum(1)
    normalised = np.zeros((n, n))
    for a, b in np.argwhere(adjacency):
        normalised[a, b] = 1 / np.sqrt(degrees[a] * degrees[b])
    return sum(np.linalg.matrix_power(normalised, k) for k in range(layers + 1)) / (layers + 1)


@pytest.mark.parametrize("layers", [0, 1, 2, 4])
def test_scores_equal_dense_matrix_powers(layers):
    data = sparse_graph()
    model = built(data, layers=layers)
    vectors = mean_of_powers(data, layers) @ model.network.embeddings.detach().double().numpy()
    expected = vectors[: data.n_users] @ vectors[data.n_users :].T
    np.testing.assert_allclose(all_scores(model, data).numpy(), expected, atol=1e-6)


def test_the_loss_and_its_gradient_are_those_of_the_dense_model():
    """−log σ of the difference, and half the squares of layer 0's rows of each triple, both averaged over triples."""
    data = sparse_graph()
    model = built(data, row_regularization=0.3)
    users, items, negatives = torch.tensor([0, 2, 2]), torch.tensor([3, 3, 12]), torch.tensor([13, 0, 1])
    loss = model.loss(users, items, negatives)
    loss.backward()
    layer0 = model.network.embeddings.detach().double().requires_grad_()
    final = torch.from_numpy(mean_of_powers(data, 3)) @ layer0
    slow = torch.zeros((), dtype=torch.float64)
    for u, i, j in zip(users, 9 + items, 9 + negatives, strict=True):
        slow = slow - torch.log(torch.sigmoid(final[u] @ final[i] - final[u] @ final[j])) / 3
        slow = slow + 0.3 / 2 * (layer0[u] @ layer0[u] + layer0[i] @ layer0[i] + layer0[j] @ layer0[j]) / 3
    slow.backward()
    assert loss.item() == pytest.approx(slow.item(), rel=1e-5)
    torch.testing.assert_close(model.network.embeddings.grad.double(), layer0.grad, atol=1e-6, rtol=1e-4)


def test_scores_follow_the_weights():
    """Propagated vectors are kept between calls, and dropped after each epoch."""
    data, _ = checkerboard()
    seen = []

    class Watch(Progress):
        def epoch(self, model, loss):
            seen.append(all_scores(model, data))
            assert model.released() is model.released()
            vectors = mean_of_powers(data, 2) @ model.network.embeddings.detach().double().numpy()
            expected = vectors[: data.n_users] @ vectors[data.n_users :].T
            np.testing.assert_allclose(seen[-1].numpy(), expected, atol=1e-5)
            return super().epoch(model, loss)

    config = LightGCNConfig.model_validate(SETTINGS | {"layers": 2, "epochs": 3})
    LightGCN(config).fit(data, rng=np.random.default_rng(0), progress=Watch())
    assert len(seen) == 3
    assert not torch.equal(seen[0], seen[1])
