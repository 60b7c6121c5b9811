"""DPALS without noise is iALS; one user moves its statistics as the proof says; the noise is what it promises."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array, vstack

from tasks.core.training_data import TrainingData
from tasks.models.ranking.dpals import DPALS, Budget, DPALSConfig
from tasks.models.ranking.symmetric import positive_part, shrink
from tasks.privacy import noise
from tests.models.contract import of_matrix

N_USERS, N_ITEMS = 60, 25
PLAIN = {
    "epsilon": math.inf, "delta": 1e-3, "dimension": 3, "iterations": 2, "user_ridge": 0.5, "item_ridge": 0.7,
    "clip": math.inf, "contribution": math.inf,
}  # fmt: skip
PRIVATE = PLAIN | {"epsilon": 2.0, "clip": 0.8, "contribution": 5.0, "gramian_share": 0.1}
LOCAL = {"unobserved_weight": 0.3, "local_share": 0.3}
COUNTS = {"counts_share": 0.3}
VARIANTS = [{}, LOCAL, COUNTS, LOCAL | COUNTS, COUNTS | {"lengthen": True}, LOCAL | COUNTS | {"lengthen": True}]


def rows(seed: int = 0, n_users: int = N_USERS, n_items: int = N_ITEMS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((n_users, n_items)) < rng.uniform(0.05, 0.9, (n_users, 1))).astype(float)


def make(base=PRIVATE, **override) -> DPALS:
    return DPALS(DPALSConfig.model_validate(base | override))


def fitted(base=PRIVATE, seed: int = 0, matrix: np.ndarray | None = None, **override) -> DPALS:
    return make(base, **override).fit(of_matrix(rows() if matrix is None else matrix), rng=np.random.default_rng(seed))


def slow_side(matrix: np.ndarray, other: np.ndarray, alpha: float | None, ridge: float) -> np.ndarray:
    """Least squares cell by cell: one vector for each row of `matrix`."""
    solved = []
    for row in matrix:
        left, right = ridge * np.eye(other.shape[1]), np.zeros(other.shape[1])
        for value, vector in zip(row, other, strict=True):
            weight = 1.0 if alpha is None else alpha + value  # α (u·v)² and, in the row's own cells, (1 - u·v)²
            left += weight * np.outer(vector, vector)
            right += value * vector
        solved.append(np.linalg.solve(left, right))
    return np.array(solved)


@pytest.mark.parametrize("alpha", [None, 0.1, 2.0])
def test_without_noise_and_bounds_it_is_ials(alpha):
    model = fitted(PLAIN, unobserved_weight=alpha)
    items = np.random.default_rng(0).normal(size=(N_ITEMS, 3))
    for _ in range(2):
        items = slow_side(rows().T, slow_side(rows(), items, alpha, 0.5), alpha, 0.7)
    users = slow_side(rows(), items, alpha, 0.5)
    np.testing.assert_allclose(model.score(np.arange(N_USERS)).numpy(), users @ items.T, rtol=1e-4, atol=1e-5)


def test_blocks_change_nothing(monkeypatch):
    full = fitted(PLAIN, unobserved_weight=0.1)
    monkeypatch.setattr("tasks.models.ranking.dpals.BLOCK", 7 * 9)
    parts = fitted(PLAIN, unobserved_weight=0.1)
    np.testing.assert_allclose(parts.items.numpy(), full.items.numpy(), rtol=1e-5, atol=1e-6)


def test_noise_of_blocks_of_items_is_their_own(monkeypatch):
    """Blocks that shared noise would show how their matrices differ."""
    monkeypatch.setattr("tasks.models.ranking.dpals.BLOCK", 7 * 9)
    with noise.recording() as draws:
        fitted(**LOCAL)
    blocks = [draw.values for draw in draws if draw.release == "own-matrices"]
    assert len(blocks) == 2 * math.ceil(N_ITEMS / 7)  # iterations
    values = np.concatenate([block.ravel() for block in blocks])
    assert len(np.unique(values)) == len(values)


@pytest.mark.parametrize("alpha", [None, 0.3])
def test_items_minimise_the_weighted_loss_of_what_popularity_leaves_over(alpha):
    """The gradient by V of Σ_u w_u Σ_j loss(a_u p_j + û_u·v_j) + ridge, written cell by cell, is 0."""
    model = make(PLAIN, counts_share=0.3, clip=0.8, contribution=5.0, unobserved_weight=alpha)
    model._budget = Budget(0.0)
    rng = np.random.default_rng(1)
    matrix, popularity, start = rows(), rng.uniform(0, 2, N_ITEMS), rng.normal(size=(N_ITEMS, 3))
    terms = model.terms(csr_array(matrix), popularity, start)
    items = model._solve_items(lambda _: terms, terms.cells, rng)
    gradient = 0.7 * items
    for user, (weight, a, vector) in enumerate(zip(terms.weights, terms.coefficients, terms.vectors, strict=True)):
        for item in range(N_ITEMS):
            predicted = a * popularity[item] + vector @ items[item]
            own = matrix[user, item]
            error = predicted - own if alpha is None else alpha * predicted + own * (predicted - 1)
            gradient[item] += weight * error * vector
    assert np.abs(gradient).max() < 1e-9
    joint = np.column_stack([popularity, start])
    np.testing.assert_allclose(terms.coefficients, slow_side(matrix, joint, alpha, 0.5)[:, 0], rtol=1e-8)


def changes(model: DPALS, matrix: np.ndarray, user: int, popularity: np.ndarray, items: np.ndarray) -> list[float]:
    """Norms of what a user changes in b, G and all A_j together, each over its bound."""
    without = matrix.copy()
    without[user] = 0.0
    sums = []
    for cells in (matrix, without):
        terms = model.terms(csr_array(cells), popularity, items)
        sums.append((terms.rhs(), terms.gramian(), terms.local_gramians(0, len(items))))
    clip, contribution = model.config.clip, model.config.contribution
    bounds = (math.sqrt(contribution) * clip, clip**2, math.sqrt(contribution) * clip**2)
    return [float(np.linalg.norm(a - b)) / bound for a, b, bound in zip(*sums, bounds, strict=True)]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_no_user_changes_the_statistics_by_more_than_the_bounds(variant, scale):
    model, rng = make(**variant), np.random.default_rng(3)
    items = rng.normal(0, scale, (N_ITEMS, 3))
    popularity = rng.uniform(0, scale, N_ITEMS) * ("counts_share" in variant)
    matrix = rows(4)
    matrix[0], matrix[1], matrix[2] = 1.0, 0.0, 0.0
    matrix[2, 7] = 1.0
    actual = np.array([changes(model, matrix, user, popularity, items) for user in range(12)])
    assert actual[:, :2].max() <= 1 + 1e-9
    if "unobserved_weight" in variant:
        assert actual[:, 2].max() <= 1 + 1e-9
    assert (actual[1] == 0).all()  # a user without interactions is as if not there


@pytest.mark.parametrize("alpha", [None, 0.3, 3.0])
@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
def test_a_user_is_weighed_down_to_the_contribution_and_no_further(alpha, scale):
    """Against rows of targets written out cell by cell."""
    model, rng = make(PLAIN, contribution=5.0, counts_share=0.3, unobserved_weight=alpha), np.random.default_rng(2)
    matrix, popularity, items = rows(), rng.uniform(0, scale, N_ITEMS), rng.normal(size=(N_ITEMS, 3))
    terms = model.terms(csr_array(matrix), popularity, items)
    explained = np.outer(terms.coefficients, popularity)
    targets = matrix - explained if alpha is None else matrix * (1 - explained) - alpha * explained
    squares = (targets**2).sum(1)
    if alpha is not None:
        squares = np.maximum(squares, matrix.sum(1))
    np.testing.assert_allclose(terms.weights, np.sqrt(5.0 / np.maximum(squares, 5.0)), rtol=1e-9)
    np.testing.assert_allclose(terms.rhs(), (terms.weights[:, None] * targets).T @ terms.vectors, atol=1e-9)
    assert terms.weights.min() < 1


def test_long_vectors_are_clipped_and_short_ones_lengthened_only_if_asked():
    matrix, items = rows(), np.random.default_rng(0).normal(size=(N_ITEMS, 3))
    matrix[5] = 0.0
    free, clipped, scaled = (
        np.linalg.norm(make(**override).terms(csr_array(matrix), np.zeros(N_ITEMS), items).vectors, axis=1)
        for override in ({"epsilon": math.inf, "clip": math.inf}, {"clip": 0.3}, {"clip": 0.3, "lengthen": True})
    )
    assert free.min() == 0 < 0.3 < free.max()
    np.testing.assert_allclose(clipped, np.minimum(free, 0.3))
    np.testing.assert_allclose(scaled, np.where(free > 0, 0.3, 0.0))


@pytest.mark.parametrize("local", [False, True])
def test_the_bounds_are_attained(local):
    """A clipped user with exactly `contribution` items attains all three bounds at once."""
    model = make(**(LOCAL if local else {}), user_ridge=1e-6)
    matrix = rows(4)
    matrix[0] = 0.0
    matrix[0, :5] = 1.0
    items = np.random.default_rng(0).normal(0, 1e-3, (N_ITEMS, 3))
    rhs, gramian, locals_ = changes(model, matrix, 0, np.zeros(N_ITEMS), items)
    assert rhs == pytest.approx(1, abs=1e-6)
    assert gramian == pytest.approx(1, abs=1e-6)
    assert not local or locals_ == pytest.approx(1, abs=1e-6)


def released(model: DPALS) -> list[tuple[float, tuple[int, ...]]]:
    """Runs one iteration: standard deviation and shape of everything that was drawn to hide something."""
    model._budget = Budget(3.0)
    cells, rng = csr_array(rows()), np.random.default_rng(0)
    with noise.recording() as draws:
        if model.config.counts_share:
            model._popularity(cells, rng)
        model._solve_items(lambda of: model.terms(of, np.zeros(N_ITEMS), np.ones((N_ITEMS, 3))), cells, rng)
    return [(draw.scale, draw.shape) for draw in draws]


@pytest.mark.parametrize("variant", [{}, LOCAL, COUNTS, LOCAL | COUNTS])
def test_noise_over_bounds_adds_up_to_the_whole_budget(variant):
    """Σ of (bound / standard deviation)² over the releases of all iterations is 1/multiplier²; so says the ledger."""
    model = make(**variant)
    config = model.config
    draws = released(model)
    bounds = {
        (N_ITEMS,): math.sqrt(config.contribution),
        (N_ITEMS, 3): math.sqrt(config.contribution) * config.clip,
        (3, 3): config.clip**2,
        (N_ITEMS, 3, 3): math.sqrt(config.contribution) * config.clip**2,
    }
    spent = sum((bounds[shape] / std) ** 2 * (1 if shape == (N_ITEMS,) else 2) for std, shape in draws)
    assert spent == pytest.approx(1 / 9, rel=1e-9)
    assert len(draws) == 2 + ("unobserved_weight" in variant) + ("counts_share" in variant)
    events = model._budget.events()
    assert sum(event.count for event in events) == len(draws)
    once = sum(event.count / event.parameters["noise_multiplier"] ** 2 for event in events)
    assert once == pytest.approx(sum((bounds[shape] / std) ** 2 for std, shape in draws), rel=1e-9)


def test_noise_on_counts_is_normal_with_the_promised_deviation():
    """One release of 4,000 counts; false alarm in 1 of 1,000 seeds, the seed is fixed."""
    model = make(**COUNTS, contribution=4.0)
    model._budget = Budget(1.5)
    matrix = np.ones((200, 4000))  # every user adds √(4/4000) to every count: no noise reaches 0
    matrix[:, 2000:] = 0.0
    counts = model._popularity(vstack([csr_array(matrix)] * 40, format="csr"), np.random.default_rng(2))
    signal, std = 8000 * math.sqrt(4 / 2000), 1.5 / math.sqrt(0.3) * 2
    noisy = counts[:2000] / counts[:2000].mean() * signal
    assert stats.kstest((noisy - signal) / std, "norm").pvalue > 1e-3
    assert (counts[2000:] == 0).mean() == pytest.approx(0.5, abs=3.3 * 0.5 / math.sqrt(2000))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_accounted_total_meets_the_budget(variant):
    entry = fitted(**variant).ledger()[0]
    assert entry.accounting == "rigorous"
    assert 0.99 * 2.0 < entry.accounted_epsilon <= 2.0
    assert entry.claimed_epsilon == 2.0
    assert sum(event.count for event in entry.events) == 4 + 2 * ("local_share" in variant) + (
        "counts_share" in variant
    )


def test_same_seed_same_numbers_whatever_the_order():
    given = of_matrix(rows())
    order = np.random.default_rng(1).permutation(len(given.users))
    other = TrainingData(N_USERS, N_ITEMS, given.users[order], given.items[order])
    again = make(**LOCAL, **COUNTS).fit(other, rng=np.random.default_rng(0))
    first = fitted(**LOCAL, **COUNTS)
    assert (first.items == again.items).all()
    assert (first.users == again.users).all()
    assert not (first.items == fitted(seed=1, **LOCAL, **COUNTS).items).all()


def test_items_outside_the_head_are_ranked_by_their_counts():
    model = fitted(**COUNTS, head=10)
    items = model.items.numpy()
    tail = (items[:, 1:] == 0).all(1)
    assert tail.sum() == N_ITEMS - 10
    assert items[tail, 0].max() <= items[~tail, 0].min()


def test_a_user_without_interactions_gets_the_noisy_counts():
    matrix = rows()
    matrix[5] = 0.0
    model = fitted(matrix=matrix, **COUNTS)
    assert (model.score(np.array([5]))[0] == model.items[:, 0]).all()
    assert (fitted(matrix=matrix).score(np.array([5])) == 0).all()


def test_a_users_vector_is_solved_from_released_items_and_the_own_row_alone():
    model = fitted(**LOCAL, **COUNTS)
    for user in range(3):
        solved = slow_side(rows()[user : user + 1], model.items.numpy().astype(float), 0.3, 0.5)
        np.testing.assert_allclose(model.users.numpy()[user], solved[0], rtol=1e-3, atol=1e-4)


def test_the_projection_is_the_nearest_positive_semi_definite_matrix():
    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(20, 4, 4))
    matrices += np.swapaxes(matrices, 1, 2)
    projected = positive_part(matrices)
    assert np.linalg.eigvalsh(projected).min() > -1e-9
    # Nearest on a cone: what was taken away is orthogonal to what is left, and has no positive direction.
    rest = matrices - projected
    np.testing.assert_allclose((rest * projected).sum((1, 2)), 0, atol=1e-9)
    assert np.linalg.eigvalsh(rest).max() < 1e-9


def test_shrinking_takes_noise_away_and_leaves_alone_what_has_none():
    rng = np.random.default_rng(0)
    signal = np.outer(rng.normal(size=400), [1.0, 2.0, -1.0, 0.5])
    np.testing.assert_allclose(shrink(signal, 0.0), signal, atol=1e-9)
    assert not shrink(np.zeros((400, 4)), 1.0).any()
    noisy = signal + rng.normal(size=signal.shape)
    # Of four directions one holds signal: three quarters of the noise can go, and the filter cannot know which part.
    assert np.square(shrink(noisy, 1.0) - signal).sum() < 0.5 * np.square(noisy - signal).sum()
