"""GERAI and its graph network against the paper's equations written down literally, and against known limits."""

import math

import numpy as np
import pytest
import torch

from tasks.core.training_data import TrainingData
from tasks.models.ranking.gerai.gcn import GCN, GCNConfig
from tasks.models.ranking.gerai.gerai import GERAI, GERAIConfig
from tests.models import literal
from tests.models.contract import of_matrix
from tests.systems import ids

N_USERS, N_ITEMS, N_FEATURES = 12, 17, 5
COMMON = {"epochs": 1, "batch_size": 8, "learning_rate": 0.01, "dimension": 6}


def data(seed: int = 0) -> TrainingData:
    rng = np.random.default_rng(seed)
    has = rng.permutation(N_USERS * N_ITEMS).reshape(N_USERS, N_ITEMS) < 60
    return of_matrix(has, rng.uniform(-1, 1, (N_USERS, N_FEATURES)).astype(np.float32))


def built(model, seed: int = 0):
    """The model at its initial weights, biases made non-zero so that they count."""
    rng = np.random.default_rng(seed)
    model._data, model._rng = data(seed), rng
    model.network = model.build(data(seed), rng)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter += torch.from_numpy(rng.normal(0, 0.1, parameter.shape)).float()
    model.weights_changed()
    return model


def triples(seed: int = 1, n: int = 9):
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.integers(0, high, n)) for high in (N_USERS, N_ITEMS, N_ITEMS)]


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradients_equal_the_literal_equations(seed):
    model = built(GCN(GCNConfig(**COMMON)), seed)
    ours = model.loss(*triples(seed))
    gradients = torch.autograd.grad(ours, model.network.parameters())
    theirs = literal.ranking_loss(model.network, model._neighbourhoods, *triples(seed))
    expected = torch.autograd.grad(theirs, model.network.parameters())
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-5)
    for gradient, reference in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, reference, atol=1e-5, rtol=1e-4)


def test_scores_equal_the_literal_equations():
    model = built(GCN(GCNConfig(**COMMON)))
    z = literal.node_vectors(model.network, model._neighbourhoods)
    for user in range(N_USERS):
        rows = z[user].expand(N_ITEMS, -1)
        expected = torch.relu(literal.pair_vectors(model.network, rows, z[N_USERS:])) @ model.network.project.weight[0]
        torch.testing.assert_close(model.score(np.array([user], np.int32))[0], expected, atol=1e-5, rtol=1e-4)


def test_at_an_infinite_budget_the_loss_is_the_truncated_taylor_series():
    model = built(GERAI(GERAIConfig(**COMMON, epsilon=math.inf)))
    assert not model.network.noise_linear.any()
    assert not model.network.noise_quadratic.any()
    difference = torch.randn(50, 6, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    linear, quadratic = model.coefficients(difference)
    torch.testing.assert_close(linear, -difference.mean(0) / 2)
    torch.testing.assert_close(quadratic, difference.T @ difference / (8 * 50))
    s = difference @ model.network.project.weight[0]
    expected = (math.log(2) - s / 2 + s**2 / 8).mean()
    assert model.objective(difference).item() == pytest.approx(expected.item(), abs=1e-6)


def test_q_is_bounded_by_one():
    for bound in ("clip", "tanh"):
        q = built(GERAI(GERAIConfig(**COMMON, epsilon=1.0, bound=bound))).predictive(torch.linspace(-9, 9, 101))
        assert q.min() >= 0
        assert q.max() <= 1


@pytest.mark.parametrize("ridge", [0.0, 4.0])
def test_the_trimmed_quadratic_is_positive_semidefinite(ridge):
    for epsilon in (1e-3, 0.1, 0.4, math.inf):
        model = built(GERAI(GERAIConfig(**COMMON, epsilon=epsilon, ridge=ridge)))
        difference = torch.rand(50, 6, generator=torch.Generator().manual_seed(0)) * 2 - 1
        _, quadratic = model.coefficients(difference)
        values = torch.linalg.eigvalsh(quadratic)
        assert values.min() > -1e-5 * values.max()
        trimmed = model.diagnostics()["eigenvalues_trimmed"]
        assert trimmed > 0 if epsilon == 1e-3 and not ridge else trimmed >= 0
    assert trimmed == 0  # without noise the form is a sum of squares


def test_directions_that_noise_turned_negative_are_dropped_from_the_linear_term_too():
    model = built(GERAI(GERAIConfig(**COMMON, epsilon=math.inf)))
    model.network.noise_quadratic = -torch.eye(6)
    model.network.noise_linear = torch.ones(6)
    assert model.objective(torch.zeros(5, 6)).item() == pytest.approx(math.log(2))
    assert model.diagnostics() == {"eigenvalues_trimmed": 6.0}


def test_what_the_loss_drops_scores_nothing():
    """The loss says nothing of these directions of h: training leaves them as they began, or moves them at random."""
    model = built(GERAI(GERAIConfig(**COMMON, epsilon=0.05, ridge=0.0)))
    model.loss(*triples())
    users, kept = np.arange(N_USERS, dtype=np.int32), model.network.kept
    assert 0 < torch.linalg.matrix_rank(kept) < COMMON["dimension"]
    model.weights_changed()
    before = model.score(users)
    with torch.no_grad():
        model.network.project.weight += (torch.eye(COMMON["dimension"]) - kept) @ torch.ones(COMMON["dimension"])
    model.weights_changed()
    torch.testing.assert_close(model.score(users), before)


def test_noise_is_drawn_once_per_run_unless_asked_otherwise():
    for redraw, changes in (("run", False), ("step", True)):
        model = built(GERAI(GERAIConfig(**COMMON, epsilon=1.0, redraw=redraw)))
        before = model.network.noise_linear.clone()
        model.objective(torch.rand(4, 6, generator=torch.Generator().manual_seed(0)))
        assert bool((model.network.noise_linear != before).any()) is changes


def test_the_ledger_gives_no_finite_epsilon_for_interactions():
    entry = GERAI(GERAIConfig(**COMMON, epsilon=0.4)).ledger()[0]
    assert entry.claimed_epsilon == 0.4
    assert entry.accounted_epsilon is None
    assert ids(entry.reasons) == {"loss-alone"}
