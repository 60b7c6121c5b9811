import tracemalloc
from difflib import SequenceMatcher

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from tasks.datasets.synthetic import networks
from tasks.datasets.synthetic.foursquare_twitter import FOURSQUARE_TWITTER
from tasks.datasets.synthetic.homophily import People, Taste, by_taste, follow, follow_twice, populate
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


def rewired(edges: Edges) -> Edges:
    """The same degrees, joined at random."""
    return edges[0], np.random.default_rng(0).permutation(edges[1])


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


def test_each_of_two_networks_has_the_edges_asked_for_and_its_celebrities(people: People) -> None:
    """3,000 and 2,500 of the 4,000 people, 1,500 of them on both."""
    rng = np.random.default_rng(4)
    order = rng.permutation(N)
    members = [order[:3000], np.concatenate([order[:1500], order[3000:]])]
    sizes = (40_000, 75_000)
    both = follow_twice(rng, people, (members[0], members[1]), sizes, reciprocity=(0.6, 0.4))
    degrees = []
    for some, (source, target), size in zip(members, both, sizes, strict=True):
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


@pytest.mark.parametrize(
    "taste", [Taste(individual=1.0), Taste(shared=2.0, individual=0.5), Taste(common=1.5, factors=3, individual=0.4)]
)
def test_taste_has_the_parts_asked_for(taste: Taste) -> None:
    people = populate(np.random.default_rng(7), N, 20, taste, 60)
    total = taste.individual**2 + taste.shared**2 + taste.common**2
    assert people.taste.var() == pytest.approx(total, rel=0.3)  # loadings and communities are few
    means = [people.taste[people.community == number].mean(axis=0) for number in np.unique(people.community)]
    assert 0.8 * taste.shared**2 <= np.var(means) < 1.2 * taste.shared**2 + 0.05 * total
    spectrum = np.linalg.eigvalsh(np.cov(people.taste.T))
    assert (spectrum > 3 * np.median(spectrum)).sum() == (taste.factors if taste.common else 0)


@pytest.fixture(scope="module")
def pair() -> Pair:
    described = FOURSQUARE_TWITTER.model_copy(
        update={"users": (3_000, 2_500), "anchors": 1_500, "labelled": {"gender": 0.3, "interest": 0.2}}
    )
    return Pair(described, PairOptions(scale=1.0, seed=9))


def test_two_networks_share_as_many_people_as_asked_for_and_a_persons_place_tells_nothing(pair: Pair) -> None:
    first, second = pair.members
    assert (len(np.unique(first)), len(np.unique(second)), len(pair.people)) == (3000, 2500, 4000)
    _, rows, columns = np.intersect1d(first, second, return_indices=True)
    assert len(rows) == 1500
    assert abs(np.corrcoef(rows, columns)[0, 1]) < 0.1


def test_people_have_interests_that_they_like_one_or_two_occupations_and_a_gender(pair: Pair) -> None:
    number = pair.interests.sum(axis=1)
    np.testing.assert_allclose(np.bincount(number)[1:] / 4000, pair.described.interests, atol=0.03)
    assert pair.interests[np.arange(4000), pair.topic_weights.argmax(axis=1)].mean() > 0.75
    assert pair.occupations[np.arange(4000), pair.occupation].all()
    assert set(pair.occupations.sum(axis=1)) == {1, 2}
    assert 0.47 < pair.gender.mean() < 0.53


def test_posts_come_in_blocks_and_tell_topic_gender_and_occupation(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "BLOCK", 400)
    number = np.zeros(3_000, dtype=np.int64)
    number[[3, 5, 2_999]] = 1_000, 1, 1_000
    posts = list(pair.posts(0, number))
    assert [len(post) for post, _, _ in posts] == [400] * 5 + [1]
    assert np.concatenate([post for post, _, _ in posts]).tolist() == list(range(2_001))
    author = np.concatenate([author for _, author, _ in posts])
    assert np.bincount(author, minlength=3_000).tolist() == number.tolist()
    texts = pl.concat([text for _, _, text in posts]).str.split(" ")
    for user in (3, 2_999):
        words = texts.filter(pl.Series(author == user)).explode().to_list()
        person = pair.members[0][user]
        counts = [sum(words.count(word) for word in some) for some in pair.described.gendered]
        assert counts[pair.gender[person]] > 1.5 * counts[1 - pair.gender[person]] > 0
        topics = np.array([sum(words.count(word) for word in some) for some in pair.described.topics.values()])
        assert np.corrcoef(topics, pair.topic_weights[person])[0, 1] > 0.9


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
