"""Every mechanism and every audit refuses impossible budgets, sizes and values, before it touches data."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tasks.audits import releases
from tasks.core.contracts import Feature
from tasks.privacy import secure, units
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.audits import one_run
from tasks.privacy.audits.audit import audit
from tasks.privacy.mechanisms import (
    aggregation,
    as_released,
    dpsgd,
    edges,
    functional,
    laplace,
    multidimensional,
    objective,
    optimal_clip,
    piecewise,
    unary,
    user_sgd,
    words,
)

RNG = np.random.default_rng(0)
NUMBER = Feature(name="number", kind="numeric", low=0, high=1)
COLOUR = Feature(name="colour", kind="categorical", categories=("red", "green", "blue"))
AGE = Feature(name="age", kind="numeric", low=7, high=73, bounds="fitted")
FRIENDS = np.array([[0, 1]])
MECHANISMS: dict[str, Callable[[float], object]] = {
    "aggregation, published": lambda epsilon: aggregation.sigma(1, 0.4, epsilon, 1e-5),
    "aggregation, rigorous": lambda epsilon: aggregation.rigorous_sigma(1, 0.4, epsilon, 1e-5),
    "dpsgd": lambda epsilon: dpsgd.noise_multiplier(epsilon, 1e-3, 0.5, 1),
    "edges": lambda epsilon: edges.top_m_filter(FRIENDS, 9, epsilon, 1.0, RNG, "rigorous"),
    "number of edges": lambda epsilon: edges.top_m_filter(FRIENDS, 9, 1.0, epsilon, RNG, "rigorous"),
    "counts": lambda epsilon: laplace.noisy_counts(np.zeros(3, int), epsilon, 1, RNG),
    "features": lambda epsilon: multidimensional.perturb(np.zeros((2, 1)), [NUMBER], epsilon, RNG),
    "piecewise": lambda epsilon: piecewise.perturb(np.zeros(3), epsilon, RNG),
    "unary": lambda epsilon: unary.perturb(np.eye(3), epsilon, RNG),
    "words": lambda epsilon: words.substitute(np.zeros(1, int), np.eye(3), epsilon, RNG),
}
NOISELESS: dict[str, Callable[[float], object]] = {
    "functional": lambda epsilon: functional.noise_scale(60, epsilon, 80_000),
    "objective": lambda epsilon: objective.noise_scale(4, epsilon, 1.0),
    "personal": lambda epsilon: optimal_clip.sigma(epsilon, 0.1),
}
"""Those that draw nothing at an infinite budget."""


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, 1e-310])
@pytest.mark.parametrize("mechanism", MECHANISMS | NOISELESS)
def test_impossible_budgets_are_refused(mechanism: str, epsilon: float) -> None:
    message = "the budget is too small" if epsilon == 1e-310 else "epsilon must be a positive finite number"
    with pytest.raises(ValueError, match=message):
        (MECHANISMS | NOISELESS)[mechanism](epsilon)


@pytest.mark.parametrize("mechanism", MECHANISMS | NOISELESS)
def test_an_infinite_budget_is_none_or_no_noise(mechanism: str) -> None:
    if mechanism in NOISELESS:
        assert NOISELESS[mechanism](math.inf) == 0
    else:
        with pytest.raises(ValueError, match="epsilon must be a positive finite number"):
            MECHANISMS[mechanism](math.inf)


Refused = tuple[Callable[..., object], tuple[Any, ...], str]
"""A call, its arguments, and what is said of them."""
NOT_POSITIVE, NOT_SCALES = (0.0, -1.0, math.nan, math.inf), (-1.0, math.nan, math.inf)
NOTHING, PAIR = np.zeros(0, int), np.zeros((0, 2), np.int32)


def changed(matrix: np.ndarray, value: Any, *place: Any) -> np.ndarray:
    """A copy with one value, or one part, that is another."""
    matrix = matrix.copy()
    matrix[place] = value
    return matrix


def of_sums() -> Iterator[Refused]:
    zeros, ones = np.zeros(3, int), np.array([1.0, np.inf])
    yield laplace.noisy_counts, (zeros, 1.0, 0, RNG), "contribution must be at least 1"
    yield laplace.noisy_counts, (np.zeros(3), 1.0, 1, RNG), "counts must be integers"
    yield laplace.cap, (zeros, zeros, 0, RNG), "contribution must be at least 1"
    yield laplace.cap, (zeros, zeros[:2], 1, RNG), "differ in length"
    for delta in (0.0, 1.0):
        yield dpsgd.noise_multiplier, (1.0, delta, 0.5, 1), "delta"
    for probability in (0.0, 1.1, 1.5, math.nan):
        yield dpsgd.noise_multiplier, (1.0, 1e-3, probability, 1), "sampling probability"
        yield dpsgd.poisson_sample, (5, probability, RNG), "must"
    yield dpsgd.noise_multiplier, (1.0, 1e-3, 0.5, 0), "steps"
    yield dpsgd.poisson_sample, (-1, 0.5, RNG), "must"
    yield optimal_clip.optimal_clip, (NOTHING, NOTHING, 1.0), "no gradient"
    yield optimal_clip.optimal_clip, (ones, np.ones(2), 1.0), "not finite"
    for budgets, message in (
        (np.ones(3), "3 budgets for 4 users"),
        (np.array([1.0, np.nan, 1.0, 1.0]), "user 1 has a budget of nan"),
        (np.array([1.0, 1.0, 2.5, 0.0]), r"user 2 has a budget of 2.5, outside \(0, 2\] \(2 such users\)"),
    ):
        yield user_sgd.check_budgets, (budgets, 4, 2.0), message
    for value, scale, sensitivity, message in (
        (0.0, 0.0, 1.0, "scale of secure noise must be a positive finite number"),
        (0.0, math.inf, 1.0, "scale of secure noise must be a positive finite number"),
        (0.0, 1.0, 0.0, "sensitivity must be a positive finite number"),
        (math.nan, 1.0, 1.0, "values that noise is added to must be finite"),
        (math.inf, 1.0, 1.0, "values that noise is added to must be finite"),
    ):
        yield secure.add, (secure.SecureGenerator(), "gaussian", np.array([value]), scale, sensitivity), message


def of_objectives() -> Iterator[Refused]:
    yield functional.noise_scale, (0, 1.0, 10), "dim must be at least 1"
    yield functional.noise_scale, (60, 1.0, 0), "n_triples must be at least 1"
    yield functional.draw, (0, 1.0, RNG), "dim must be at least 1"
    yield objective.noise_scale, (0, 1.0, 1.0), "dim must be at least 1"
    yield objective.draw, (3, 0, 1.0, RNG), "dim must be at least 1"
    yield objective.draw, (-1, 3, 1.0, RNG), "n_items must be at least 0"
    for scale in NOT_SCALES:
        yield functional.draw, (3, scale, RNG), "scale must be a finite number"
        yield objective.draw, (3, 3, scale, RNG), "scale must be a finite number"
    for value in NOT_POSITIVE:
        yield objective.noise_scale, (4, 1.0, value), "sensitivity must be a positive finite number"
    users, cells, noise = np.full((5, 2), 0.5), np.zeros((5, 3)), np.zeros((3, 2))
    for solve, given in (
        (objective.perturbed_least_squares, cells),
        (objective.perturbed_least_squares_of_stored, sparse.csr_array(cells)),
    ):
        for value in NOT_POSITIVE:
            yield solve, (users, given, noise, value), "ridge must be a positive finite number"
        for row in (2, math.nan):
            yield solve, (changed(users, row, 1), given, noise, 1.0), "1 of 5 user vectors are longer than 1 or NaN"


def of_aggregates() -> Iterator[Refused]:
    """Also where nothing is released."""
    for function in (aggregation.epsilon, aggregation.sigma, aggregation.rigorous_sigma):
        for place, value, message in (
            (0, -1, "must be a finite number, 0 or more"),
            (1, -0.1, "clip must be"),
            (1, math.inf, "clip must be"),
            (2, -1.0, "(sigma|epsilon) must be"),
            (2, math.inf, "(sigma|epsilon) must be"),
            (3, 0.0, "delta must be"),
            (3, 1.0, "delta must be"),
        ):
            for steps in (1, 0):
                arguments = [steps, 0.4, 1.0, 1e-5]
                arguments[place] = value
                yield function, (*arguments,), message


def of_features_and_words() -> Iterator[Refused]:
    users, features = np.tile([0.25, 0.0, 1.0, 0.0, -0.5], (10, 1)), (NUMBER, COLOUR, AGE)
    for matrix, of, message in (
        (
            changed(users, 1.5, [3, 7], 4),
            features,
            r"'age': 2 of 10 rows are outside \[-1, 1\] \(first: row 3, value 1.5",
        ),
        (changed(users, 1, slice(4, 7), 1), features, r"'colour': 3 of 10 rows are not one-hot \(first: row 4\)"),
        (users[:, 1:], features, r"features have 5 columns, but the matrix has shape \(10, 4\)"),
        (users[:, :0], (), "n_features must be at least 1"),
    ):
        yield multidimensional.perturb, (matrix, of, 5.0, RNG), message
    yield multidimensional.perturb, (users, features, 1e-38, RNG), "the budget is too small"  # outputs were infinite
    for wrong in (1.01, -2.0, math.nan, math.inf):
        values, message = (
            changed(np.zeros((5, 3)), wrong, [2, 4], 1),
            r"'1': 2 of 5 rows are outside \[-1, 1\] \(first: row 2",
        )
        yield piecewise.perturb, (values, 1.0, RNG), message
    for row in ([0, 0, 0], [1, 1, 0], [0.5, 0.5, 0], [2, -1, 0], [math.nan, 1, 0]):
        block = changed(np.eye(3)[[0, 1, 2, 0]], row, [1, 3])
        yield unary.perturb, (block, 1.0, RNG), r"2 of 4 rows are not one-hot \(first: row 1\)"
    vectors = np.random.default_rng(0).normal(size=(5, 3))
    for tokens, given, message in (
        ([0, 5, -1], vectors, r"word_ids: 2 of 3 rows are outside 0\.\.4 \(first: row 1, value 5\)"),
        ([0.0], vectors, "word_ids must be integers"),
        ([[0]], vectors, r"word_ids must be integers of shape \(n,\)"),
        ([0], changed(vectors, math.nan, 3, 1), r"component 1 of 1 of 5 rows is not finite \(first: row 3\)"),
        ([0], changed(vectors, math.inf, 3, 1), "is not finite"),
        ([0], changed(vectors, 1e200, 3, 1), "distances do not fit in float64"),
    ):
        yield words.substitute, (np.array(tokens), given, 1.0, RNG), message
    for n_words, span in ((-1, 1.0), (3, -1.0), (3, math.nan), (3, math.inf)):
        yield words.epsilon_total, (n_words, 1.0, span), "must be finite and not negative"
        yield words.epsilon_per_distance, (1.0, n_words, span), "must be finite and not negative"
    for nothing in ((0, 1.0), (3, 0.0)):
        yield words.epsilon_per_distance, (1.0, *nothing), "n_words and diameter must be positive"
        yield words.ledger, (1.0, *nothing, "public", "published", 1), "n_words and diameter must be positive"


def of_edges() -> Iterator[Refused]:
    for rows, message in (
        ([[0, 1], [0, 9], [8, 9]], r"column 'target': 2 of 3 rows are outside 0\.\.8 \(first: row 1, 0 - 9\)"),
        ([[0, 1], [-1, 2]], r"column 'source': 1 of 2 rows are outside 0\.\.8 \(first: row 1, -1 - 2\)"),
        ([[0, 1], [3, 3]], r"edges: 1 of 2 rows are loops \(first: row 1, 3 - 3\)"),
        ([[0, 1], [2, 1], [1, 0], [1, 2]], r"edges: 2 of 4 rows are repeated \(first: row 2, 1 - 0\)"),
        ([[0.0, 1.0]], "edges must be integers"),
        ([[0, 1, 2]], r"edges must be integers of shape \(n, 2\)"),
    ):
        yield edges.top_m_filter, (np.array(rows), 9, 1.0, 1.0, RNG, "rigorous"), message
    yield edges.top_m_filter, (PAIR, 9, 1.0, 1e-13, RNG, "rigorous"), "epsilon_count must be at least 1e-12"
    yield edges.top_m_filter, (PAIR, 9, 1.0, 1.0, RNG, "filled"), "mode must be one of published, rigorous"
    for n_nodes in (-1, 2**32):
        yield edges.top_m_filter, (PAIR, n_nodes, 1.0, 1.0, RNG, "rigorous"), "n_nodes must be in 0"
    for target in (-1, 37):
        yield edges.filter_towards, (PAIR, 9, target, 1.0, RNG, "rigorous"), r"target must be in 0\.\.36"
    for target in (0, 19_900):  # at which the authors' code stops
        yield as_released.threshold, (target, 200, 1.0), r"target must be in 1\.\.19899"
    yield as_released.follows, (FRIENDS, 10, 1.0, 1e-13, RNG), "at least 1e-12"
    for epsilon in (60.0, 100.0):  # a graph that no 64 bits can name
        yield releases.cells, (0, 1000, epsilon), "64-bit"


def of_audits() -> Iterator[Refused]:
    for delta in (-0.1, 1.0, math.nan):
        yield account, ([Event(kind="pure-local", parameters={"epsilon": 1.0})], delta), "delta must be in"
    yield units.group_event, (Event(kind="unknown"), 2), "no group privacy is known"
    ones = np.ones(10)
    for a, b in ((ones, ones[:5]), (ones[:3], ones[:3]), (np.ones((4, 2)), np.ones((4, 2)))):
        yield audit, (a, b, 0.9), "two 1-D arrays of equal length"
    yield audit, (ones, np.full(10, np.nan), 0.9), "10 of 20 samples are NaN"
    yield audit, (ones, ones, 1.0), "confidence must be in"
    yield audit, (ones, ones, 0.9, 1.0), "delta must be in"
    for given, message in (
        ((10, 5, 6, 0.0, 0.95), "correct"),
        ((10, 11, 5, 0.0, 0.95), "canaries"),
        ((10, 5, -1, 0.0, 0.95), "correct"),
        ((10, 5, 5, 1.0, 0.95), "delta"),
        ((10, 5, 5, -0.1, 0.95), "delta"),
        ((10, 5, 5, 0.0, 1.0), "confidence"),
        ((10, 5, 5, 0.0, 0.4), "confidence"),
    ):
        yield one_run.lower_bound, given, message
    yield one_run.audit, (np.array([0.0, math.nan]), np.ones(2, bool), 1, 0.0, 0.95), "finite"
    yield one_run.audit, (np.zeros(3), np.ones(3, bool), 4, 0.0, 0.95), "number of guesses"
    for included in (np.ones(4, bool), np.array([-1, 1, 1]), np.array([1, 0, 1]), np.array(["in", "out", "in"])):
        yield one_run.audit, (np.zeros(3), included, 2, 0.0, 0.95), "booleans"
    yield one_run.p_value, (10, 5, 5, -1.0, 0.0), "epsilon"


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [*of_sums(), *of_objectives(), *of_aggregates(), *of_features_and_words(), *of_edges(), *of_audits()],
)
def test_impossible_arguments_are_refused(
    call: Callable[..., object], arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(*arguments)
