import tracemalloc
from difflib import SequenceMatcher

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from tasks.datasets.synthetic.foursquare_twitter import FOURSQUARE_TWITTER
from tasks.datasets.synthetic.homophily import People, Taste, by_taste, follow, populate
from tasks.datasets.synthetic.networks import HAN, LATIN, Pair, PairOptions, Sounds, handles, vocabulary

TASTE = Taste(shared=1.5, individual=1.0)
N, EDGES, RECIPROCITY = 4_000, 60_000, 0.45
Edges = tuple[NDArray[np.int64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def people() -> People:
    return populate(np.random.default_rng(1), N, 8, TASTE, 60)


@pytest.fixture(scope="module")
def edges(people: People) -> Edges:
    return follow(np.random.default_rng(2), people, EDGES, reciprocity=RECIPROCITY)


def test_there_are_as_many_edges_as_asked_for_without_loops_and_repeats_and_so_many_are_returned(edges: Edges) -> None:
    source, target = edges
    assert len(source) == EDGES
    assert (source != target).all()
    keys = source * N + target
    assert (np.diff(keys) > 0).all()
    assert keys.min() >= 0
    assert max(source.max(), target.max()) < N
    returned = np.isin(source * N + target, target * N + source).mean()
    assert returned == pytest.approx(RECIPROCITY, abs=0.001)


def test_degrees_have_tails(edges: Edges) -> None:
    for end in edges:
        degree = np.bincount(end, minlength=N)
        assert np.quantile(degree, 0.99) > 8 * np.median(degree)
        assert degree.max() > 20 * np.median(degree)


def test_friends_of_a_friend_are_friends(edges: Edges) -> None:
    def transitivity(edges: Edges) -> float:
        graph = csr_array((np.ones(len(edges[0])), edges), shape=(N, N))
        joined = ((graph + graph.T) > 0).astype(float)
        joined.setdiag(0)
        degree = joined.sum(axis=1)
        return float((joined * (joined @ joined)).sum() / (degree * (degree - 1)).sum())

    assert 0.06 < transitivity(edges) < 0.3  # Ciao 0.12, Epinions 0.11, Foursquare 0.05, Twitter 0.12
    rewired = edges[0], np.random.default_rng(0).permutation(edges[1])  # of the same degrees
    assert transitivity(edges) > 1.5 * transitivity(rewired)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 30])
@pytest.mark.parametrize("wanted", [1, 5, 100, 10_000])
@pytest.mark.parametrize("reciprocity", [0.0, 0.5, 1.0])
def test_few_users_have_as_many_edges_as_fit(n: int, wanted: int, reciprocity: float) -> None:
    some = populate(np.random.default_rng(n), n, 2, TASTE, 60)
    source, target = follow(np.random.default_rng(0), some, wanted, reciprocity=reciprocity)
    assert 1 <= len(source) <= wanted
    assert len(source) >= min(wanted, n * (n - 1) // 4)
    assert len(np.unique(source * n + target)) == len(source)
    assert (source != target).all()


def test_memory_grows_with_people_and_edges_and_not_with_their_product() -> None:
    def peak(n: int, n_edges: int) -> int:
        tracemalloc.start()
        some = populate(np.random.default_rng(0), n, 4, TASTE, 60)
        follow(np.random.default_rng(0), some, n_edges, reciprocity=0.4)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(100_000, 400_000) < 12 * peak(10_000, 40_000)
    assert peak(100_000, 400_000) < 100 << 20


def test_attributes_have_their_shares_and_depend_on_taste_as_strongly_as_asked(people: People) -> None:
    shares = (0.6, 0.3, 0.1)
    for strength, low, high in ((0.0, 0.59, 0.61), (2.0, 0.68, 0.98)):
        attribute = by_taste(np.random.default_rng(5), people.taste, shares, strength=strength)
        np.testing.assert_allclose(np.bincount(attribute) / N, shares, atol=0.03)
        accuracy = cross_val_score(LogisticRegression(max_iter=500), people.taste, attribute, cv=3).mean()
        assert low - 0.01 < accuracy < high + 0.01


def test_two_networks_share_as_many_people_as_asked_for_and_a_persons_place_tells_nothing() -> None:
    described = FOURSQUARE_TWITTER.model_copy(update={"users": (3_000, 2_500), "anchors": 1_500})
    pair = Pair(described, PairOptions(scale=1.0, seed=9))
    first, second = pair.members
    assert (len(np.unique(first)), len(np.unique(second)), len(pair.people)) == (3000, 2500, 4000)
    _, rows, columns = np.intersect1d(first, second, return_indices=True)
    assert len(rows) == 1500
    assert abs(np.corrcoef(rows, columns)[0, 1]) < 0.1


@pytest.mark.parametrize("sounds", [LATIN, HAN])
def test_no_word_is_invented_twice(sounds: Sounds) -> None:
    assert len(set(sounds.parts)) == 100
    words = vocabulary([(("a", "b"), 5_000), ((), 4_000)], sounds)
    assert len(set(words.words)) == 9_000
    assert words.words[:2] == ("a", "b")


@pytest.mark.parametrize("sounds", [LATIN, HAN])
def test_a_persons_two_names_are_similar_but_mostly_not_equal_and_no_two_persons_share_one(sounds: Sounds) -> None:
    rng, person = np.random.default_rng(8), np.arange(3000)
    first, second = handles(rng, person, sounds), handles(rng, person, sounds)
    assert first.str.to_lowercase().n_unique() == second.str.to_lowercase().n_unique() == 3000
    assert 0.01 < (first == second).mean() < 0.2

    def likeness(first: pl.Series, second: pl.Series) -> float:
        return float(np.median([SequenceMatcher(None, a, b).ratio() for a, b in zip(first, second, strict=True)]))

    assert likeness(first[:500], second[:500]) > 0.6
    assert likeness(first[:500], second[500:1000]) < 0.45
