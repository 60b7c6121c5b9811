import tracemalloc

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from tasks.datasets.synthetic.homophily import (
    People,
    Population,
    by_taste,
    follow,
    follow_twice,
    gather,
    label_table,
    populate,
)

N, EDGES, RECIPROCITY = 4_000, 60_000, 0.45
Edges = tuple[NDArray[np.int64], NDArray[np.int64]]


@pytest.fixture(scope="module")
def people() -> People:
    return populate(np.random.default_rng(1), N, [3, 2, 2, 1, 1, 1, 1, 1], community_size=60)


@pytest.fixture(scope="module")
def edges(people: People) -> Edges:
    return follow(np.random.default_rng(2), people, EDGES, reciprocity=RECIPROCITY)


def rewired(edges: Edges) -> Edges:
    """The same degrees, joined at random."""
    return edges[0], np.random.default_rng(0).permutation(edges[1])


def test_there_are_as_many_edges_as_asked_for_and_none_is_a_loop_or_a_repeat(edges: Edges) -> None:
    source, target = edges
    assert len(source) == EDGES
    assert (source != target).all()
    keys = source * N + target
    assert (np.diff(keys) > 0).all()
    assert keys.min() >= 0
    assert max(source.max(), target.max()) < N


def test_the_share_of_edges_that_are_returned_is_as_asked_for(edges: Edges) -> None:
    source, target = edges
    returned = np.isin(source * N + target, target * N + source).mean()
    assert returned == pytest.approx(RECIPROCITY, abs=0.001)


def test_degrees_have_tails(edges: Edges) -> None:
    for end in edges:
        degree = np.bincount(end, minlength=N)
        assert np.quantile(degree, 0.99) > 8 * np.median(degree)
        assert degree.max() > 20 * np.median(degree)


def test_friends_are_alike(people: People, edges: Edges) -> None:
    def alike(edges: Edges) -> tuple[float, float]:
        unit = people.taste / np.linalg.norm(people.taste, axis=1, keepdims=True)
        cosine = np.einsum("ij,ij->i", unit[edges[0]], unit[edges[1]])
        return float((people.community[edges[0]] == people.community[edges[1]]).mean()), float(cosine.mean())

    (community, taste), (chance_community, chance_taste) = alike(edges), alike(rewired(edges))
    assert community > 20 * chance_community
    assert taste > chance_taste + 0.15


def test_friends_of_a_friend_are_friends(edges: Edges) -> None:
    def transitivity(edges: Edges) -> float:
        graph = csr_array((np.ones(len(edges[0])), edges), shape=(N, N))
        joined = ((graph + graph.T) > 0).astype(float)
        joined.setdiag(0)
        degree = joined.sum(axis=1)
        return float((joined * (joined @ joined)).sum() / (degree * (degree - 1)).sum())

    assert 0.06 < transitivity(edges) < 0.3  # Ciao 0.12, Epinions 0.11, Foursquare 0.05, Twitter 0.12
    assert transitivity(edges) > 1.5 * transitivity(rewired(edges))


def test_a_seed_gives_the_same_people_and_edges_and_another_seed_others(people: People, edges: Edges) -> None:
    again = populate(np.random.default_rng(1), N, [3, 2, 2, 1, 1, 1, 1, 1], community_size=60)
    for field in ("community", "activity", "attraction", "taste"):
        np.testing.assert_array_equal(getattr(again, field), getattr(people, field))
    np.testing.assert_array_equal(follow(np.random.default_rng(2), again, EDGES, reciprocity=RECIPROCITY), edges)
    other = follow(np.random.default_rng(3), again, EDGES, reciprocity=RECIPROCITY)
    assert not np.array_equal(other, edges)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 30])
@pytest.mark.parametrize("wanted", [1, 5, 100, 10_000])
@pytest.mark.parametrize("reciprocity", [0.0, 0.5, 1.0])
def test_few_users_have_as_many_edges_as_fit(n: int, wanted: int, reciprocity: float) -> None:
    some = populate(np.random.default_rng(n), n, [1, 1], community_size=60)
    source, target = follow(np.random.default_rng(0), some, wanted, reciprocity=reciprocity)
    assert 1 <= len(source) <= wanted
    assert len(source) >= min(wanted, n * (n - 1) // 4)
    assert len(np.unique(source * n + target)) == len(source)
    assert (source != target).all()


def test_memory_grows_with_people_and_edges_and_not_with_their_product() -> None:
    def peak(n: int, n_edges: int) -> int:
        tracemalloc.start()
        some = populate(np.random.default_rng(0), n, [1] * 4, community_size=60)
        follow(np.random.default_rng(0), some, n_edges, reciprocity=0.4)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert peak(100_000, 400_000) < 12 * peak(10_000, 40_000)
    assert peak(100_000, 400_000) < 100 << 20


@pytest.fixture(scope="module")
def networks(people: People) -> tuple[list[NDArray[np.int64]], tuple[Edges, Edges]]:
    """Two networks of 3,000 and 2,500 of the 4,000 people, 1,500 of them on both."""
    rng = np.random.default_rng(4)
    order = rng.permutation(N)
    members = [order[:3000], np.concatenate([order[:1500], order[3000:]])]
    sizes = (40_000, 75_000)
    return members, follow_twice(rng, people, (members[0], members[1]), sizes, reciprocity=(0.6, 0.4))


def test_an_anchor_users_neighbourhoods_overlap_across_networks_but_are_not_the_same(
    networks: tuple[list[NDArray[np.int64]], tuple[Edges, Edges]],
) -> None:
    _, both = networks
    anchors = 1500  # users 0 to 1499 of either network

    def among_anchors(edges: Edges) -> NDArray[np.int64]:
        inside = (edges[0] < anchors) & (edges[1] < anchors)
        return edges[0][inside] * anchors + edges[1][inside]

    first, second = (among_anchors(edges) for edges in both)
    common = np.isin(first, second).mean()
    renamed = np.random.default_rng(0).permutation(anchors)
    chance = np.isin(renamed[first // anchors] * anchors + renamed[first % anchors], second).mean()
    assert 0.4 < common < 0.75  # IONE's Foursquare-Twitter: 0.50
    assert common > 10 * chance


def test_each_of_two_networks_has_the_edges_asked_for_and_its_own_celebrities(
    networks: tuple[list[NDArray[np.int64]], tuple[Edges, Edges]],
) -> None:
    members, both = networks
    degrees = []
    for some, (source, target), size in zip(members, both, (40_000, 75_000), strict=True):
        assert len(source) == size
        assert max(source.max(), target.max()) < len(some)
        assert (source != target).all()
        degrees.append(np.bincount(target, minlength=len(some))[:1500])
    assert 0.3 < np.corrcoef(np.log1p(degrees))[0, 1] < 0.9


def test_attributes_have_their_shares_and_depend_on_taste_as_strongly_as_asked(people: People) -> None:
    shares = (0.6, 0.3, 0.1)
    for strength, low, high in ((0.0, 0.59, 0.61), (2.0, 0.68, 0.98)):
        attribute = by_taste(np.random.default_rng(5), people.taste, shares, strength=strength)
        np.testing.assert_allclose(np.bincount(attribute) / N, shares, atol=0.03)
        accuracy = cross_val_score(LogisticRegression(max_iter=500), people.taste, attribute, cv=3).mean()
        assert low - 0.01 < accuracy < high + 0.01


@pytest.fixture(scope="module")
def population() -> Population:
    rng = np.random.default_rng(9)
    sizes = {"interests": (0.5, 0.3, 0.2), "occupations": (4, 3, 2, 1), "topics": (3, 2, 2, 1, 1, 1)}
    return gather(rng, (3000, 2500), 1500, **sizes, community_size=60)  # type: ignore[arg-type]


def test_two_networks_share_as_many_people_as_asked_for_and_a_persons_place_tells_nothing(
    population: Population,
) -> None:
    first, second = population.members
    assert (len(np.unique(first)), len(np.unique(second)), len(population.people)) == (3000, 2500, 4000)
    _, rows, columns = np.intersect1d(first, second, return_indices=True)
    assert len(rows) == 1500
    assert abs(np.corrcoef(rows, columns)[0, 1]) < 0.1


def test_people_have_interests_that_they_like_one_or_two_occupations_and_a_gender(population: Population) -> None:
    number = population.interests.sum(axis=1)
    np.testing.assert_allclose(np.bincount(number)[1:] / 4000, (0.5, 0.3, 0.2), atol=0.03)
    favourite = population.people.taste.argmax(axis=1)
    assert population.interests[np.arange(4000), favourite].mean() > 0.75
    assert population.occupations[np.arange(4000), population.occupation].all()
    assert set(population.occupations.sum(axis=1)) == {1, 2}
    assert 0.47 < population.gender.mean() < 0.53


def test_labels_are_known_of_so_many_users_and_are_whole_where_they_are() -> None:
    users = pl.Series("user", np.arange(100, 200))
    values = {"gender": (np.arange(100) % 2, 30), "interest": (np.arange(200).reshape(100, 2) % 2, 20)}
    table = label_table(np.random.default_rng(0), users, values)
    assert table.columns == ["user", "gender", "interest_0", "interest_1"]
    assert table["gender"].count() == 30
    assert table["interest_0"].count() == table["interest_1"].count() == 20
    assert 30 <= len(table) <= 50
    known = table.drop_nulls("gender")
    assert (known["gender"] == known["user"] % 2).all()
    assert set(table["interest_1"].drop_nulls()) == {1}
