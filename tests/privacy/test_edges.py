"""The top-m filter: a simple graph of as many edges, of the exact law, and ε per edge where cells are independent."""

import itertools
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import optimize, stats

from tasks.privacy.accounting.account import account
from tasks.privacy.mechanisms import edges

MODES = ["published", "rigorous"]
SPARSE, MIDDLE, DENSE = (120, 500, 1.0), (120, 500, 8.0), (60, 1_600, 1.0)
"""Nodes, edges, ε: θ of 1 or more, between 0 and 1, below 0."""


def graph(n_nodes: int, n_edges: int, seed: int = 0) -> np.ndarray:
    """(n_edges, 2) random edges, rows and their ends in random order."""
    rng = np.random.default_rng(seed)
    cells = np.array(list(itertools.combinations(range(n_nodes), 2)), dtype=np.int32).reshape(-1, 2)
    return rng.permuted(cells[rng.permutation(len(cells))[:n_edges]], axis=1)


def keys(rows: np.ndarray, n_nodes: int) -> np.ndarray:
    return rows.min(axis=1).astype(np.int64) * n_nodes + rows.max(axis=1)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("target", [1, 10, 5_000, 9_999, 10_000, 10_001, 19_990, 19_999])
def test_the_threshold_lets_as_many_cells_pass_on_average_as_there_are_edges(target: int, epsilon: float) -> None:
    """The law of Lap(1/ε) is scipy's here."""
    cells = 20_000
    noise = stats.laplace(scale=1 / epsilon)

    def surplus(theta: float) -> float:
        return float(target * (noise.sf(theta - 1) - 1) + (cells - target) * noise.sf(theta))

    solution = optimize.brentq(surplus, -20 / epsilon - 1, 20 / epsilon + 1, xtol=1e-14)
    assert edges.threshold(target, cells, epsilon) == pytest.approx(solution, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 10.0, 30.0])
@pytest.mark.parametrize("target", [1, 10, 5_000, 10_000, 19_990, 19_999])
def test_no_cell_passes_or_fails_more_than_exp_epsilon_times_as_often_when_it_is_an_edge(
    target: int, epsilon: float
) -> None:
    theta = edges.threshold(target, 20_000, epsilon)
    true, other = edges.pass_probabilities(theta, epsilon)
    dropped, absent = edges.tail(1 - theta, epsilon), edges.tail(-theta, epsilon)
    np.testing.assert_allclose([true + dropped, other + absent], 1, rtol=1e-12)
    assert 0 < math.log(true / other) <= epsilon * (1 + 1e-9)
    assert 0 < math.log(absent / dropped) <= epsilon * (1 + 1e-9)


def sizes(n_nodes: int, n_edges: int, epsilon: float, runs: int) -> np.ndarray:
    """(runs, 2): true and false edges that come out."""
    rows, rng = graph(n_nodes, n_edges), np.random.default_rng(1)
    counts = []
    for _ in range(runs):
        released = edges.filter_towards(rows, n_nodes, n_edges, epsilon, rng, "rigorous")
        true = np.isin(keys(released, n_nodes), keys(rows, n_nodes)).sum()
        counts.append((true, len(released) - true))
    return np.array(counts)


@pytest.mark.parametrize(("n_nodes", "n_edges", "epsilon"), [SPARSE, MIDDLE, DENSE])
def test_as_many_edges_come_out_as_go_in(n_nodes: int, n_edges: int, epsilon: float) -> None:
    """Within 1 %, which is seven standard errors or more; and within five of each kind of edge's own number.

    In `published` mode the number is exactly m̃ unless more true edges than that pass, which none of these graphs does.
    """
    cells, runs = edges.n_cells(n_nodes), 500
    out = sizes(n_nodes, n_edges, epsilon, runs)
    assert out.sum(axis=1).mean() == pytest.approx(n_edges, rel=0.01)
    passes = np.array(edges.pass_probabilities(edges.threshold(n_edges, cells, epsilon), epsilon))
    of_kind = np.array([n_edges, cells - n_edges])
    errors = np.sqrt(of_kind * passes * (1 - passes) / runs)
    assert (np.abs(out.mean(axis=0) - of_kind * passes) <= 5 * errors).all()
    noisy = np.random.default_rng(2)
    for _ in range(5):
        filled = edges.release(graph(n_nodes, n_edges), n_nodes, epsilon, 1.0, noisy, "published")
        assert len(filled.edges) == filled.target
        assert abs(filled.target - n_edges) < 40  # of the noisy count: e^-40


NODES, BUDGET, COUNT_BUDGET = 4, 1.2, 0.7
CELLS = list(itertools.combinations(range(NODES), 2))
SUBSETS = [frozenset(subset) for size in range(7) for subset in itertools.combinations(CELLS, size)]
"""All graphs of four nodes."""


@cache
def laws(true: frozenset, mode: str) -> np.ndarray:
    """(7, 64): probabilities of m̃ and the graph that comes out, by formula."""
    m, cells, span = len(true), len(CELLS), np.arange(-60, 67)
    noise = np.exp(-COUNT_BUDGET * np.abs(span - m)) * np.tanh(COUNT_BUDGET / 2)
    law = np.zeros((cells + 1, len(SUBSETS)))
    for target in range(cells + 1):
        theta = edges.threshold(target, cells, BUDGET)
        passes, false_passes = edges.pass_probabilities(theta, BUDGET)
        for place, out in enumerate(SUBSETS):
            k, false = len(out & true), len(out - true)
            chance = passes**k * (1 - passes) ** (m - k)
            if mode == "rigorous":
                chance *= false_passes**false * (1 - false_passes) ** (cells - m - false)
            elif false == min(max(target - k, 0), cells - m):
                chance /= math.comb(cells - m, false)
            else:
                chance = 0.0
            law[target, place] = noise[np.clip(span, 0, cells) == target].sum() * chance
    return law


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("m", [0, 3, 6])
def test_the_law_on_four_nodes_is_the_formula(mode: str, m: int) -> None:
    """Chi-square at 1e-5 over all graphs of four nodes and noisy counts; cells of less than 5 expected are joined."""
    runs, true = 6_000, SUBSETS[{0: 0, 3: 30, 6: 63}[m]]
    assert len(true) == m
    rows, rng = np.array(sorted(true), dtype=np.int32).reshape(-1, 2), np.random.default_rng(3)
    number = {subset: place for place, subset in enumerate(SUBSETS)}
    observed = np.zeros((7, 64))
    for _ in range(runs):
        filtered = edges.release(rows, NODES, BUDGET, COUNT_BUDGET, rng, mode)
        observed[filtered.target, number[frozenset(map(tuple, filtered.edges.tolist()))]] += 1
    expected = runs * laws(true, mode)
    assert expected.sum() == pytest.approx(runs, rel=1e-9)
    assert not observed[expected == 0].any()
    common = expected >= 5
    observed, expected = (np.append(table[common], table[~common].sum()) for table in (observed, expected))
    assert stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue > 1e-5


def worst_loss(mode: str, of: Callable[[np.ndarray], np.ndarray]) -> float:
    """The largest log-likelihood ratio of neighbouring graphs of four nodes."""
    worst = 0.0
    for without in SUBSETS:
        for edge in set(CELLS) - without:
            first, second = of(laws(without, mode)), of(laws(without | {edge}, mode))
            possible = (first > 0) | (second > 0)
            with np.errstate(divide="ignore"):
                worst = max(worst, np.abs(np.log(first[possible]) - np.log(second[possible])).max())
    return worst


def test_rigorous_releases_cost_what_the_ledger_says_whatever_comes_out() -> None:
    entry = edges.ledger(BUDGET, COUNT_BUDGET, "rigorous", 1)
    assert entry.unit == "edge"
    total = entry.accounted_epsilon
    assert total == pytest.approx(BUDGET + COUNT_BUDGET, rel=1e-12)
    assert 0.95 * total < worst_loss("rigorous", lambda law: law) <= total * (1 + 1e-9)


def test_published_releases_cost_more_than_they_claim() -> None:
    """Infinitely much besides the noisy count, and more than both budgets if only the graph is seen."""
    assert worst_loss("published", lambda law: law) == math.inf
    assert BUDGET + COUNT_BUDGET < worst_loss("published", lambda law: law.sum(axis=0)) < math.inf
    entry = edges.ledger(BUDGET, COUNT_BUDGET, "published", 1)
    assert entry.accounted_epsilon is None
    assert entry.claimed_epsilon == BUDGET
    assert account(edges.events(BUDGET, COUNT_BUDGET, "published")).epsilon is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("n_nodes", "n_edges", "epsilon"), [SPARSE, MIDDLE, DENSE])
def test_what_comes_out_is_a_simple_graph_in_order(mode: str, n_nodes: int, n_edges: int, epsilon: float) -> None:
    rows = edges.top_m_filter(graph(n_nodes, n_edges), n_nodes, epsilon, 1.0, np.random.default_rng(4), mode)
    assert (rows[:, 0] < rows[:, 1]).all()
    assert rows.min() >= 0
    assert rows.max() < n_nodes
    assert (np.diff(keys(rows, n_nodes)) > 0).all()


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_edges_and_of_their_ends_does_not_matter(mode: str) -> None:
    rows, shuffle = graph(120, 500), np.random.default_rng(5)
    other = shuffle.permuted(rows[shuffle.permutation(len(rows))], axis=1).astype(np.uint8)
    first, second = (
        edges.top_m_filter(given, 120, 2.0, 1.0, np.random.default_rng(6), mode) for given in (rows, other)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("n_nodes", "n_edges", "count"), [(40, 30, 20), (40, 700, 60), (41, 100, 500), (7, 3, 5)])
def test_every_non_edge_is_as_likely_to_be_added(n_nodes: int, n_edges: int, count: int) -> None:
    """In sparse graphs and dense ones, of odd and even numbers of nodes; chi-square, false alarms in one of 50,000."""
    rows, rng, runs = graph(n_nodes, n_edges), np.random.default_rng(7), 400
    true, cells = np.sort(keys(rows, n_nodes)), edges.n_cells(n_nodes)
    drawn = np.concatenate([edges._non_edges(true, n_nodes, count, rng) for _ in range(runs)])
    assert not np.isin(drawn, true).any()
    values, times = np.unique(drawn, return_counts=True)
    times = np.append(times, np.zeros(cells - n_edges - len(values)))
    # Every draw is without repeats: counts vary less than a multinomial's, by the factor (n - count)/(n - 1).
    scaled = ((times - times.mean()) ** 2).sum() / (times.mean() * (len(times) - count) / (len(times) - 1))
    assert 1e-5 < stats.chi2.sf(scaled, len(times) - 1) < 1 - 1e-5
    assert times.max() <= runs


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_nodes", [0, 1, 2, 5])
@pytest.mark.parametrize("complete", [False, True])
def test_graphs_without_edges_or_with_all(mode: str, n_nodes: int, complete: bool) -> None:
    cells = edges.n_cells(n_nodes)
    rows, rng = graph(n_nodes, cells if complete else 0), np.random.default_rng(8)
    sharp = edges.release(rows, n_nodes, 2.0, 50.0, rng, mode)  # the noisy count is the true one but for e^-50
    np.testing.assert_array_equal(keys(sharp.edges, n_nodes), np.sort(keys(rows, n_nodes)))
    assert abs(sharp.threshold) == math.inf
    for _ in range(20):
        blurred = edges.release(rows, n_nodes, 0.5, 0.1, rng, mode)
        assert 0 <= blurred.target <= cells
        assert len(blurred.edges) <= cells
        if blurred.target in (0, cells) and (mode == "rigorous" or cells == 0):
            assert len(blurred.edges) == blurred.target


def test_budgets_far_apart_stay_finite() -> None:
    rows, rng = graph(120, 500), np.random.default_rng(9)
    np.testing.assert_array_equal(
        edges.top_m_filter(rows, 120, 1e3, 1e3, rng, "rigorous"), np.sort(rows, axis=1)[keys(rows, 120).argsort()]
    )
    assert 400 < len(edges.top_m_filter(rows, 120, 1e-9, 1e3, rng, "rigorous")) < 600
    assert len(edges.top_m_filter(rows, 120, 1.0, 1e-9, rng, "rigorous")) in (0, edges.n_cells(120))
