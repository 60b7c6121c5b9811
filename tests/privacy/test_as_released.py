"""DP-CroSUE's perturbation as its authors' code has it: the law of every part, and that it keeps no budget.

Seeds are fixed; each test of a law would fail once in a thousand times by chance, were they drawn again.
"""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tasks.core.contracts import Feature
from tasks.privacy import noise
from tasks.privacy.mechanisms import as_released, edges, piecewise
from tasks.privacy.mechanisms.posts import Vocabulary
from tasks.privacy.remarks import because

ALARM = 1e-3
BITS = tuple(Feature(name=f"bit {place}", kind="numeric", low=0, high=1) for place in range(32))
COUNTS = tuple(Feature(name=f"count {place}", kind="numeric", low=0, high=9, bounds="fitted") for place in range(3))
GENDER = Feature(name="gender", kind="categorical", categories=("0", "1", "?"), sensitive=True, unknown="?")
JOBS = Feature(name="job", kind="categorical", categories=("a", "b", "c", "?"), sensitive=True, unknown="?")
FEATURES = (*BITS, *COUNTS, JOBS, GENDER)
N_PERTURBED = 2 + 3 + 3
EPSILON = 5.0


def people(n: int, seed: int = 0) -> np.ndarray:
    """(n, 42) encoded attributes."""
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([rng.choice([-1.0, 1.0], (n, 32)), rng.uniform(-1, 1, (n, 3))], axis=1)
    return np.concatenate([numbers, np.eye(4)[rng.integers(0, 4, n)], np.eye(3)[rng.integers(0, 3, n)]], axis=1)


def as_shares(matrix: np.ndarray) -> np.ndarray:
    """What the code perturbs: numbers in [0, 1], and nothing where a category is not known."""
    shares = matrix.copy()
    shares[:, :35] = (shares[:, :35] + 1) / 2
    shares[:, [38, 41]] = 0
    return shares


def test_gender_and_all_but_two_bits_pass_as_they_are() -> None:
    matrix = people(500)
    released = as_released.attributes(matrix, FEATURES, EPSILON, np.random.default_rng(1))
    same = (released == as_shares(matrix).astype(np.float32)).all(axis=0)
    assert same[:32].sum() == 30
    assert not same[32:38].any()
    assert same[38:].all()
    assert as_released.n_perturbed(FEATURES) == N_PERTURBED


def test_the_perturbed_bits_are_any_two_for_everybody() -> None:
    matrix, shares = people(20), as_shares(people(20)).astype(np.float32)
    n = 2_000
    changed = np.zeros(32)
    for seed in range(n):
        released = as_released.attributes(matrix, FEATURES, EPSILON, np.random.default_rng(seed))
        which = (released != shares)[:, :32].any(axis=0)
        assert which.sum() == 2
        changed += which
    # two of 32 without repeats: variances are smaller than of a multinomial by the factor 30/31 · 31/32
    statistic = ((changed - n / 16) ** 2).sum() / (n / 16 * (15 / 16)) * (31 / 32)
    assert stats.chi2(31).sf(statistic) > ALARM


@pytest.mark.parametrize("x", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("epsilon", [EPSILON / 23, 2.0])
def test_the_outer_pieces_have_each_others_probabilities(x: float, epsilon: float) -> None:
    n = 60_000
    drawn = as_released.exchanged_pieces(np.full(n, x), epsilon, np.random.default_rng(3))
    limit = piecewise.bound(epsilon)
    left = (limit + 1) / 2 * x - (limit - 1) / 2
    right = left + limit - 1
    inner = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)
    share = (limit - right) / (limit + 1)  # of the right piece's length, given to the left one
    seen = np.histogram(drawn, [-limit, left, right, limit])[0]
    assert stats.chisquare(seen, n * np.array([(1 - inner) * share, inner, (1 - inner) * (1 - share)])).pvalue > ALARM
    for low, high in ((-limit, left), (left, right), (right, limit)):
        part = drawn[(drawn > low) & (drawn < high)]
        assert stats.kstest(part, stats.uniform(low, high - low).cdf).pvalue > ALARM


def test_a_one_becomes_the_largest_value_and_nothing_else_does() -> None:
    """Which is why no ε bounds the ratio, however much noise there is."""
    epsilon, n = 0.1, 20_000
    limit = piecewise.bound(epsilon)
    ones, zeros = (
        as_released.exchanged_pieces(np.full(n, value), epsilon, np.random.default_rng(4)) for value in (1.0, 0.0)
    )
    at_the_end = (ones >= limit * (1 - 1e-12)).sum()
    assert stats.binomtest(int(at_the_end), n, 1 / (math.exp(epsilon / 2) + 1)).pvalue > ALARM
    assert not (zeros >= limit * (1 - 1e-12)).any()
    assert ones.min() >= 1 - 1e-9


def test_the_threshold_is_that_of_the_exchanged_branches() -> None:
    """0.95 of the true ones pass at ε = 5, on as many users and follows as Foursquare has, where 0.44 should."""
    n_nodes, n_follows = 5_392, 76_972
    theta = as_released.threshold(n_follows, n_nodes, 5.0)
    assert theta == pytest.approx(0.5235, abs=1e-4)
    assert edges.tail(theta - 1, 5.0) == pytest.approx(0.954, abs=5e-4)
    right = edges.threshold(n_follows, edges.n_cells(n_nodes), 5.0)
    assert edges.tail(right - 1, 5.0) == pytest.approx(0.44, abs=5e-3)
    assert as_released.threshold(n_follows, n_nodes, 10.0) == pytest.approx(
        math.log(n_nodes * (n_nodes - 1) / (4 * n_follows + (math.exp(10) - 1) / 2)) / 10
    )


def follow_pairs(n_nodes: int, n: int) -> np.ndarray:
    """(n, 2) random follows."""
    rng = np.random.default_rng(5)
    keys = rng.permutation(n_nodes**2)
    pairs = np.stack(np.divmod(keys, n_nodes), axis=1)
    return pairs[pairs[:, 0] != pairs[:, 1]][:n]


@pytest.mark.parametrize("epsilon", [3.0, 8.0])
def test_as_many_follows_pass_as_the_threshold_says_and_false_ones_fill_up(epsilon: float) -> None:
    n_nodes, n, runs = 200, 900, 40
    pairs = follow_pairs(n_nodes, n)
    theta = as_released.threshold(n, n_nodes, epsilon)
    true = set(map(tuple, pairs.tolist()))
    kept = totals = 0
    for seed in range(runs):
        released = as_released.follows(pairs, n_nodes, epsilon, 1e9, np.random.default_rng(seed))
        rows = set(map(tuple, released.tolist()))
        assert len(rows) == len(released)
        assert (n_nodes - 1, n_nodes - 1) in rows
        totals += len(rows)
        kept += len(rows & true)
    passes = edges.tail(theta - 1, epsilon)
    # one less than there are fill up, and the last user's own; a false one may be a true one that did not pass
    assert n - 1 <= totals / runs <= n + 30
    back = (1 - passes) * n * (n * (1 - passes)) / n_nodes**2
    assert kept / runs == pytest.approx(n * passes + back, abs=4 * math.sqrt(n * passes * (1 - passes) / runs) + 0.5)


def test_false_follows_are_any_pair_in_order_and_of_a_user_with_itself() -> None:
    n_nodes, seen = 30, np.zeros(900)
    pairs = follow_pairs(n_nodes, 80)
    kept = pairs @ np.array([n_nodes, 1])
    for seed in range(3_000):
        released = as_released.follows(pairs, n_nodes, 1.0, 1e9, np.random.default_rng(seed))
        seen[released @ np.array([n_nodes, 1])] += 1
    others = np.delete(seen[:-1], kept)  # the last is always there
    assert stats.chisquare(others).pvalue > ALARM


def test_the_noise_of_the_number_of_follows_is_cut_off_towards_zero() -> None:
    pairs, loop = follow_pairs(200, 900), 200**2 - 1
    for seed in range(50):
        with noise.recording() as drawn:
            released = as_released.follows(pairs, 200, 1.0, 0.1, np.random.default_rng(seed))
        [number] = [draw for draw in drawn if draw.release == "number-of-follows"]
        assert (number.law, number.scale) == ("laplace", 10.0)
        others = (released @ np.array([200, 1]) != loop).sum()
        assert 900 + math.trunc(number.values[0]) - 1 - others in (0, 1)  # the last user's own may be a false one


def test_frequent_words_pass_and_rare_ones_become_one_another() -> None:
    n, vectors = 30_000, np.array([[0.0], [1.0], [3.0], [0.2]])
    tokens = [[0] * 4 + [1] * 3 + [2] * 2 + [3]] * n
    table = pl.DataFrame({"user": np.arange(n, dtype=np.int32), "tokens": tokens})
    vocabulary = Vocabulary.from_vectors(list("abcd"), vectors)
    rng = np.random.default_rng(6)
    released = as_released.texts(table, vocabulary, 1.0, 0.4, 0.2, rng)["tokens"].to_list()
    words = np.array(released)
    assert as_released.sensitive_words(np.array(tokens[0]), 4, 0.4).tolist() == [False, False, True, True]
    for columns, true in ((slice(0, 4), 0), (slice(4, 7), 1), (slice(7, 9), 2), (slice(9, 10), 3)):
        law = np.exp(-0.5 * np.abs(vectors[[2, 3], 0] - vectors[true, 0]))
        expected = np.zeros(4)
        expected[[2, 3]] = law / law.sum()
        if true < 2:
            expected *= 0.2
            expected[true] = 0.8
        seen = np.bincount(words[:, columns].ravel(), minlength=4)
        assert not seen[expected == 0].any()
        part = expected > 0
        assert stats.chisquare(seen[part], seen.sum() * expected[part]).pvalue > ALARM


def test_every_entry_claims_what_the_paper_says_and_accounts_for_nothing() -> None:
    of_attributes = as_released.attributes_entry(FEATURES, EPSILON, 1)
    of_follows = as_released.follows_entry(EPSILON, 1.0, 1)
    assert because("hash-passes", bits=30, hashed=32) in of_attributes.reasons
    assert because("gender-passes") in of_attributes.reasons
    for entry in (of_attributes, of_follows):
        assert (entry.accounting, entry.claimed_epsilon, entry.accounted_epsilon) == ("released", EPSILON, None)
