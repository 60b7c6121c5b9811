"""Substituted words follow the softmax of distances, and no pair of words differs by more than ε times its distance."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist
from scipy.special import softmax

from tasks.privacy.mechanisms import words
from tasks.privacy.remarks import because

BUDGETS = [1e-3, 0.5, 7.5, 100.0]


def vocabulary(n_words: int, dimension: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_words, dimension))


def probabilities(chosen: np.ndarray, vectors: np.ndarray, epsilon: float) -> np.ndarray:
    """The law that `substitute` draws from, by its own weights: (n_words, |V|), a row per word asked for."""
    centred = words._centre(vectors)
    pieces = words._weights(words._check(chosen, len(centred)), centred, epsilon)
    return np.concatenate([weights / weights.sum(axis=1, keepdims=True) for _, weights in pieces])


def exact(vectors: np.ndarray, epsilon: float) -> np.ndarray:
    """(|V|, |V|), from distances that are differences, component by component."""
    return softmax(-epsilon / 2 * cdist(vectors, vectors), axis=1)


@pytest.mark.parametrize("epsilon", [*BUDGETS, 1e3])
@pytest.mark.parametrize("dimension", [1, 3, 300])
def test_probabilities_are_the_softmax_of_distances(epsilon: float, dimension: int) -> None:
    vectors = vocabulary(50, dimension) + 1e3
    law = probabilities(np.arange(50), vectors, epsilon)
    np.testing.assert_allclose(law, exact(vectors, epsilon), rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-12)


def p_value(observed: np.ndarray, expected: np.ndarray) -> float:
    """Chi-square of outcomes of 5 expected or more, or of too many others, whichever is less probable."""
    common = expected >= 5
    others = stats.poisson.sf(observed[~common].sum() - 1, expected[~common].sum())
    expected = expected[common] * (observed[common].sum() / expected[common].sum())
    return min(float(others), float(stats.chisquare(observed[common], expected).pvalue) if common.sum() > 1 else 1.0)


@pytest.mark.parametrize("epsilon", [*BUDGETS, 1e3])
def test_draws_follow_the_softmax(epsilon: float) -> None:
    """Twelve comparisons at 1e-6: a false alarm in one of 80,000."""
    vectors = vocabulary(6)
    tokens = np.random.default_rng(1).integers(0, 6, 240_000)
    drawn = words.substitute(tokens, vectors, epsilon, np.random.default_rng(2))
    for word, law in enumerate(exact(vectors, epsilon)):
        observed = np.bincount(drawn[tokens == word], minlength=6)
        assert p_value(observed, law * observed.sum()) > 1e-6


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("dimension", [1, 3])
def test_no_two_words_differ_by_more_than_epsilon_times_their_distance(epsilon: float, dimension: int) -> None:
    """All x, x' and y."""
    vectors = vocabulary(40, dimension)
    law = probabilities(np.arange(40), vectors, epsilon)
    distances = cdist(vectors, vectors)
    possible = law.min(axis=0) > 1e-290
    losses = np.log(law[:, None, possible]) - np.log(law[None, :, possible])
    assert losses.size
    allowed = epsilon * distances[:, :, None]
    assert (losses <= allowed * (1 + 1e-6) + 1e-9).all()


def test_the_bound_is_reached() -> None:
    """A word apart from a crowd: numerator and denominator both change by all but e^(½ε d)."""
    crowd = np.array([[0.0], *[[3.0]] * 5_000])
    law = probabilities(np.array([0, 1]), crowd, 0.8)
    assert 0.99 * 0.8 * 3 < math.log(law[0, 0] / law[1, 0]) <= 0.8 * 3


@pytest.mark.parametrize("block", [1, 37, 100, 10_000])
def test_blocks_do_not_change_what_is_drawn(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, tokens = vocabulary(60, 20), np.random.default_rng(4).integers(0, 60, 5_000)
    expected = words.substitute(tokens, vectors, 1.0, np.random.default_rng(5))
    monkeypatch.setattr(words, "BLOCK", block)
    np.testing.assert_array_equal(words.substitute(tokens, vectors, 1.0, np.random.default_rng(5)), expected)


def test_what_a_word_becomes_depends_on_no_other() -> None:
    vectors, tokens = vocabulary(60, 20), np.random.default_rng(4).integers(0, 60, 2_000)
    other = tokens.copy()
    other[:1_000] = 59
    first, second = (
        words.substitute(given, vectors, 1.0, np.random.default_rng(6))[1_000:] for given in (tokens, other)
    )
    np.testing.assert_array_equal(first, second)


def test_draws_are_the_inverse_of_the_sums() -> None:
    """Bisection by rows equals numpy's search row by row, at ends and ties as well."""
    rng = np.random.default_rng(7)
    weights = rng.random((5, 13)) * (rng.random((5, 13)) < 0.6)
    weights[0, :2] = weights[0, -4:] = 0
    weights[:, 4], weights[0, 8] = 1, 0.5
    sums = np.cumsum(weights, axis=1)
    rows = np.concatenate([[0, 0], rng.integers(0, 5, 500)])
    uniform = np.concatenate([[0.0, np.nextafter(1, 0)], rng.random(500)])
    actual = words._invert_cumulative(sums, rows, uniform)
    slow = [np.searchsorted(sums[r], u * sums[r, -1], side="right") for r, u in zip(rows, uniform, strict=True)]
    slow[1] = 8  # the last that has a weight, even where u × the total rounds up to it
    np.testing.assert_array_equal(actual, slow)
    assert (weights[rows, actual] > 0).all()


@pytest.mark.parametrize("dimension", [0, 2, 300])
def test_words_of_equal_vectors_are_equally_likely(dimension: int) -> None:
    vectors = np.repeat(vocabulary(4, dimension) + 7, 3, axis=0)
    law = probabilities(np.arange(12), vectors, 1e3)
    own = law.reshape(12, 4, 3)[np.arange(12), np.arange(12) // 3]
    np.testing.assert_array_equal(own, np.broadcast_to(own[:, :1], own.shape))
    if dimension:
        np.testing.assert_allclose(own, 1 / 3, rtol=1e-12)
    else:
        np.testing.assert_allclose(law, 1 / 12, rtol=1e-12)


def test_nothing_and_one_word() -> None:
    rng = np.random.default_rng(8)
    for vectors in (vocabulary(5), np.zeros((0, 3))):
        assert words.substitute(np.zeros(0, np.int32), vectors, 1.0, rng).shape == (0,)
    np.testing.assert_array_equal(words.substitute(np.zeros(4, np.int32), vocabulary(1), 1.0, rng), np.zeros(4))
    assert words.diameter(vocabulary(1)) == words.diameter(np.zeros((0, 3))) == 0


def test_budgets_of_words_and_texts() -> None:
    vectors = vocabulary(200, 5)
    span = words.diameter(vectors)
    assert span == pytest.approx(cdist(vectors, vectors).max(), rel=1e-12)
    law = np.log(probabilities(np.arange(200), vectors, 0.3))
    assert (law.max(axis=0) - law.min(axis=0)).max() <= words.epsilon_total(1, 0.3, span)
    assert words.epsilon_total(12, words.epsilon_per_distance(5.0, 12, span), span) == pytest.approx(5.0, rel=1e-12)


def test_the_ledger_accounts_for_texts_only_where_vectors_are_public() -> None:
    per_distance, word, text = words.ledger(0.5, 40, 8.0, "public", "rigorous", 1)
    assert (per_distance.claimed_epsilon, word.claimed_epsilon, text.claimed_epsilon) == (0.5, None, 160.0)
    spent = [entry.accounted_epsilon for entry in (per_distance, word, text)]
    np.testing.assert_allclose(spent, [0.5, 4.0, 160.0], rtol=1e-12)
    assert words.ledger(0.5, 40, 8.0, "public", "published", 1)[2].claimed_epsilon is None
    for entry in words.ledger(0.5, 40, 8.0, "fitted", "published", 1):
        assert entry.accounted_epsilon is None
        assert entry.reasons == (because("fitted-vectors"),)
