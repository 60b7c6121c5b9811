"""Objective perturbation: the noise follows from the loss, and the solution minimises the perturbed objective."""

import numpy as np
import pytest
from scipy import sparse, stats

from tasks.audits.releases import ROUNDING
from tasks.privacy.audits.audit import audit
from tasks.privacy.mechanisms import objective

CONFIDENCE = 0.999
DRAWS = 5_000_000
"""Most components of item vectors that one audit draws per input."""


def unit_rows(n: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    rows = rng.normal(size=(n, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def linear_term(v: np.ndarray, users: np.ndarray, cells: np.ndarray, ridge: float) -> np.ndarray:
    """The η with which v is the minimum: minus the gradient of the objective without η, differentiated by hand."""
    return 2 * users.T @ (cells - users @ v) - 2 * ridge * v


def worst_case(dim: int, epsilon: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One user's cell is 1 or 0, and the user's vector is of length 1 with equal components. All else is the same.

    Every sample is an item's released vector.
    """
    scale = objective.noise_scale(dim, epsilon, 1.0)
    n = min(n, DRAWS // dim)
    user = np.full((1, dim), 1 / np.sqrt(dim))
    curvature = user.T @ user + np.eye(dim)

    def outputs(cell: int) -> np.ndarray:
        noise = objective.draw(n, dim, scale, rng)
        items = objective.perturbed_least_squares(user, np.full((1, n), float(cell)), noise, ridge=1.0)
        sums = items @ curvature  # user * cell - η/2
        ratios = (np.abs(sums) - np.abs(sums - user)).sum(axis=1) * 2 / scale
        # The low digits of a sum tell what was added to the noise; audited is the law, as of real numbers.
        return np.round(ratios / (ROUNDING * epsilon)) * (ROUNDING * epsilon)

    return outputs(1), outputs(0)


@pytest.mark.parametrize("dim", [1, 4, 30])
@pytest.mark.parametrize("sensitivity", [1.0, 3.5])
def test_the_scale_is_what_one_cell_can_move_the_gradient_by(dim: int, sensitivity: float) -> None:
    """At ε = 1 the scale is the L1 sensitivity: no random user vector exceeds it, the one of equal components attains
    it, wherever v is."""
    rng = np.random.default_rng(0)
    scale = objective.noise_scale(dim, 1.0, sensitivity)
    v, ridge = rng.normal(size=dim), 0.7
    for users, attained in ((unit_rows(50, dim, rng), dim == 1), (np.full((50, dim), dim**-0.5), True)):
        before = rng.uniform(0, sensitivity, 50)
        before[3] = 0
        after = before.copy()
        after[3] = sensitivity
        moved = np.abs(linear_term(v, users, after, ridge) - linear_term(v, users, before, ridge)).sum()
        assert moved <= scale * (1 + 1e-12)
        assert not attained or moved == pytest.approx(scale)


def test_the_noise_is_laplace() -> None:
    """Kolmogorov-Smirnov at 1e-5, over all components, and per component over items."""
    noise = objective.draw(20_000, 3, 0.7, np.random.default_rng(1))
    assert noise.shape == (20_000, 3)
    for part in (noise.ravel(), *noise.T):
        assert stats.kstest(part, stats.laplace(scale=0.7).cdf).pvalue > 1e-5
    assert not objective.draw(5, 3, objective.noise_scale(3, np.inf, 1.0), np.random.default_rng(1)).any()


@pytest.mark.parametrize("as_matrix", [np.asarray, sparse.csr_array])
def test_the_solution_equals_gradient_descent_on_the_perturbed_objective(as_matrix) -> None:
    rng = np.random.default_rng(2)
    users, cells, ridge = unit_rows(30, 4, rng) * 0.8, (rng.random((30, 7)) < 0.3).astype(float), 0.5
    noise = objective.draw(7, 4, 2.0, rng)
    items = np.zeros((7, 4))
    for _ in range(500):
        for j in range(7):
            gradient = 2 * ridge * items[j] + noise[j]
            for i in range(30):
                gradient = gradient - 2 * (cells[i, j] - users[i] @ items[j]) * users[i]
            items[j] -= 0.05 * gradient
    solved = objective.perturbed_least_squares(users, as_matrix(cells), noise, ridge)
    np.testing.assert_allclose(solved, items, atol=1e-5)


def test_stored_cells_alone_count_and_stored_zeros_do() -> None:
    """Every item by itself, as least squares with rows for the ridge; the linear term moves its right side."""
    rng = np.random.default_rng(5)
    users, ridge, noise = unit_rows(30, 4, rng), 0.5, objective.draw(7, 4, 2.0, rng)
    stored = rng.random((30, 7)) < 0.4
    stored[:, 2] = False
    values = rng.random((30, 7)) * (rng.random((30, 7)) < 0.5)
    cells = sparse.csr_array((values[stored], np.nonzero(stored)), shape=stored.shape)
    solved = objective.perturbed_least_squares_of_stored(users, cells, noise, ridge)
    for j in range(7):
        rows = np.vstack([users[stored[:, j]], np.sqrt(ridge) * np.eye(4)])
        target = np.concatenate([values[stored[:, j], j], -noise[j] / (2 * np.sqrt(ridge))])
        np.testing.assert_allclose(solved[j], np.linalg.lstsq(rows, target, rcond=None)[0], atol=1e-10)
    everything = sparse.csr_array((values.ravel(), np.nonzero(np.ones_like(stored))), shape=stored.shape)
    np.testing.assert_allclose(
        objective.perturbed_least_squares_of_stored(users, everything, noise, ridge),
        objective.perturbed_least_squares(users, values, noise, ridge),
        atol=1e-10,
    )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5])
def test_released_vectors_prove_no_more_than_the_budget(epsilon: float) -> None:
    """Six audits, each of which accuses a sound mechanism with probability 1e-3 or less."""
    rng = np.random.default_rng(3)
    single = audit(*worst_case(1, epsilon, 50_000, rng), CONFIDENCE)
    assert 0.75 * epsilon < single.epsilon <= epsilon
    many = audit(*worst_case(20, epsilon, 50_000, rng), CONFIDENCE)
    assert 0 < many.epsilon <= epsilon
