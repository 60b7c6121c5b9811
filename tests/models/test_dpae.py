"""DPAE's clipped sums equal those of gradients per user, its noise is what was promised, and all of it is counted."""

import math

import numpy as np
import pytest
import torch
from torch.func import grad, vmap

from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT
from tasks.models.ranking.dpae import DPAE, DPAEConfig, DPAENetwork
from tests.models.contract import of_matrix

N_USERS, N_ITEMS = 40, 25
CONFIG = {
    "epochs": 3, "batch_size": N_USERS, "learning_rate": 0.1, "momentum": 0.5, "dimension": 3,
    "epsilon": 2.0, "delta": 1e-3, "clip_norm": 1.0,
}  # fmt: skip


def data(seed: int = 0) -> TrainingData:
    return of_matrix(np.random.default_rng(seed).random((N_USERS, N_ITEMS)) < 0.3)


def make(**override) -> DPAE:
    return DPAE(DPAEConfig.model_validate(CONFIG | override))


def fitted(seed: int = 0, progress=SILENT, **override) -> DPAE:
    return make(**override).fit(data(), rng=np.random.default_rng(seed), progress=progress)


def built(**override) -> DPAE:
    """The model at its initial weights, ready for steps."""
    model = make(**override)
    model._data, model._rng = data(), np.random.default_rng(0)
    model.network = model.build(model._data, model._rng)
    return model


def user_loss(items: torch.Tensor, biases: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """−Σ_i x_i log softmax(W tanh(Wᵀ x/‖x‖) + b)_i for one user."""
    hidden = torch.tanh(items.T @ (row / row.norm().clamp(min=1.0)))
    return -(row * torch.log_softmax(items @ hidden + biases, 0)).sum()


@pytest.mark.parametrize(("n", "n_items", "dimension"), [(0, 5, 2), (1, 1, 1), (7, 9, 3), (20, 4, 6), (3, 50, 11)])
@pytest.mark.parametrize("seed", range(3))
def test_norms_and_clipped_sums_equal_those_of_gradients_per_user(n, n_items, dimension, seed):
    rng = np.random.default_rng(seed)
    network = DPAENetwork(torch.from_numpy(rng.normal(0, 0.7, (n_items, dimension))).double())
    biases = torch.from_numpy(rng.normal(0, 1, n_items))
    network.biases.data = biases
    rows = torch.from_numpy((rng.random((n, n_items)) < 0.4).astype(float))
    rows[: n // 4] = 0.0  # users without interactions
    with torch.no_grad():
        ours = network.gradients(rows)
    if n == 0:
        assert ours.squared_norms().shape == (0,)
        assert all(not total.any() for total in ours.weighted_sum(torch.zeros(0, dtype=torch.float64)))
        return
    weights = network.items.detach()
    of_items, of_biases = vmap(grad(user_loss, argnums=(0, 1)), in_dims=(None, None, 0))(weights, biases, rows)
    norms = of_items.flatten(1).square().sum(1) + of_biases.square().sum(1)
    torch.testing.assert_close(ours.squared_norms(), norms, rtol=1e-5, atol=1e-10)
    torch.testing.assert_close(ours.losses, vmap(user_loss, in_dims=(None, None, 0))(weights, biases, rows))
    factors = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    sum_items, sum_biases = ours.weighted_sum(factors)
    torch.testing.assert_close(sum_items, (factors[:, None, None] * of_items).sum(0))
    torch.testing.assert_close(sum_biases, (factors[:, None] * of_biases).sum(0))
    inner = torch.einsum("uid,id->u", of_items, weights) + of_biases @ biases
    torch.testing.assert_close(ours.inner([weights, biases]), inner)
    torch.testing.assert_close(ours.scale(factors).inner([weights, biases]), factors * inner)
    torch.testing.assert_close(ours.scale(factors).squared_norms(), factors.square() * norms, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize(("momentum", "regularization"), [(0.0, 0.01), (0.5, 0.0)])
def test_without_noise_and_clipping_it_is_gradient_descent(momentum, regularization):
    override = {"epsilon": math.inf, "clip_norm": math.inf, "momentum": momentum, "epochs": 4}
    model = fitted(**override, regularization=regularization)
    initial = np.random.default_rng(0).normal(0.0, 0.1, (N_ITEMS, CONFIG["dimension"]))
    parameters = [torch.from_numpy(initial).float().requires_grad_(), torch.zeros(N_ITEMS, requires_grad=True)]
    settings = {"lr": CONFIG["learning_rate"], "momentum": momentum, "weight_decay": 2 * regularization}
    optimiser = torch.optim.SGD(parameters, **settings)
    rows = model.rows(np.arange(N_USERS))
    for _ in range(4):
        optimiser.zero_grad()
        vmap(user_loss, in_dims=(None, None, 0))(*parameters, rows).mean().backward()
        optimiser.step()
    for actual, expected in zip((model.network.items, model.network.biases), parameters, strict=True):
        torch.testing.assert_close(actual.data, expected.data, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_gradient_that_is_not_finite_counts_nothing(value):
    """The others add up as if they were alone, and a step releases finite sums."""
    model, rows = built(), torch.zeros(3, N_ITEMS)
    rows[0, 0] = rows[1, 1] = rows[2, 2] = 1.0
    gradients = model.network.gradients
    expected = model.clipped_gradients(rows[1:], np.arange(2)).weighted_sum(torch.ones(2))

    def broken(rows):
        parts = gradients(rows)
        parts.errors[0, 3] = parts.hidden[0, 1] = value
        return parts

    model.network.gradients = broken
    for total, other in zip(
        model.clipped_gradients(rows, np.arange(3)).weighted_sum(torch.ones(3)), expected, strict=True
    ):
        torch.testing.assert_close(total, other)
    model.rows = lambda _: rows
    released = []
    model.watch = lambda sums, _: released.extend(sums)
    model.private_step(np.arange(3))
    assert all(total.isfinite().all() for total in released)


def test_what_is_watched_is_what_moves_the_weights_and_watching_changes_nothing():
    seen = []
    for epochs in (1, 3):
        plain, watched = make(epochs=epochs, momentum=0.0), make(epochs=epochs, momentum=0.0)
        watched.watch = lambda released, probability: seen.append((released, probability))
        for model in (plain, watched):
            model.fit(data(), rng=np.random.default_rng(3))
        assert torch.equal(plain.network.items, watched.network.items)
        assert torch.equal(plain.network.biases, watched.network.biases)
    assert [probability for _, probability in seen] == [1.0] * 4
    moved = -CONFIG["learning_rate"] / N_USERS * sum(released[1] for released, _ in seen[1:])
    torch.testing.assert_close(watched.network.biases.data, moved)  # they begin at 0
