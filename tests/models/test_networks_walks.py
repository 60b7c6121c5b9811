"""Random walks, co-occurrences, and skip-gram, trained and in closed form."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

from tasks.models.user_networks.base import NetworkData, Posts
from tasks.models.user_networks.friendship import cooccurrences, nearby_pairs, neighbourhoods, random_walks, walks_of
from tasks.models.user_networks.skipgram import SkipgramConfig, factorise, mean_of_words, shifted_ppmi, skipgram
from tests.models.contract import fitted, make
from tests.models.naive_networks import friends_of, network

FALSE_ALARM = 1e-3


def test_walks_follow_edges_and_stay_where_there_are_none():
    data = network()
    graph = neighbourhoods(data.links, data.n_users)
    walks = random_walks(graph, np.arange(9), 12, np.random.default_rng(0))
    friends = [friends_of(data.links, user) for user in range(9)]
    for walk in walks:
        if not friends[walk[0]]:
            assert walk.tolist() == [walk[0]] + [-1] * 11
        else:
            assert all(there in friends[here] for here, there in pairwise(walk))


def test_every_step_goes_to_each_neighbour_equally_often():
    links = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]], np.int32)
    graph = neighbourhoods(links, 5)
    walks = random_walks(graph, np.zeros(4000, np.int64), 6, np.random.default_rng(0))
    chances = []
    for step in (1, 5):
        for user in (0, 1, 3):
            steps = walks[walks[:, step - 1] == user, step]
            if len(steps):
                counts = [int((steps == friend).sum()) for friend in friends_of(links, user)]
                chances.append(chisquare(counts).pvalue)
    assert len(chances) == 4
    assert min(chances) > FALSE_ALARM / len(chances)


def test_pairs_nearby_equal_a_loop():
    rows = np.array([[0, 1, 2, 3], [4, -1, 5, 5]])
    slow = [
        (row[i], row[j])
        for row in rows
        for i in range(4)
        for j in range(4)
        if i != j and abs(i - j) <= 2 and row[i] >= 0 and row[j] >= 0
    ]
    assert sorted(map(tuple, nearby_pairs(rows, 2))) == sorted(slow)


def test_cooccurrences_equal_a_loop_over_sequences():
    tokens, sequences = np.array([0, 1, 0, 2, 2, 1, -1, 0]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    slow = np.zeros((3, 3))
    for i in range(8):
        for j in range(8):
            distance = abs(i - j)
            if 0 < distance <= 3 and sequences[i] == sequences[j] and min(tokens[i], tokens[j]) >= 0:
                slow[tokens[i], tokens[j]] += (4 - distance) / 3
    np.testing.assert_allclose(cooccurrences(tokens, sequences, 3, 3).toarray(), slow)


def test_shifted_ppmi_equals_its_formula():
    counts = np.array([[0, 4, 1], [4, 2, 0], [1, 0, 5]], float)
    slow = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            if counts[i, j]:
                pmi = np.log(counts[i, j] * counts.sum() / (counts[i].sum() * counts[j].sum()))
                slow[i, j] = max(0.0, pmi - np.log(1.5))
    np.testing.assert_allclose(shifted_ppmi(csr_array(counts), 1.5).toarray(), slow, atol=1e-12)


@pytest.mark.parametrize("dimension", [3, 12, 20])
def test_factors_multiply_back_to_the_best_approximation(dimension):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 5))
    matrix = root @ root.T  # positive: U √Σ is then its root
    vectors = factorise(csr_array(matrix), dimension, np.random.default_rng(1))
    values, directions = np.linalg.eigh(matrix)
    best = (directions[:, -dimension:] * values[-dimension:]) @ directions[:, -dimension:].T
    assert vectors.shape == (12, dimension)
    np.testing.assert_allclose(vectors @ vectors.T, best, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("netmf", {"dimension": 2, "walks": 20}), ("deepwalk", {"dimension": 8, "walks": 80, "passes": 20})],
)
def test_walks_tell_two_communities_apart(name, settings):
    pairs = np.stack(np.triu_indices(30, 1), axis=1)
    links = np.concatenate([pairs[(pairs < 15).all(1)], pairs[(pairs >= 15).all(1)], [[0, 15]]]).astype(np.int32)
    rows = fitted(name, NetworkData(30, links), **{"length": 10, "window": 3} | settings).embed()
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    alike = units @ units.T
    assert alike[:15, :15].min() > 0.5 > alike[:15, 15:].max()


@pytest.mark.parametrize("name", ["netmf", "deepwalk"])
def test_users_without_friends_have_no_place_on_walks(name):
    rows = fitted(name, network(), dimension=3).embed()
    assert not rows[8].any()
    assert rows[:8].any()


def test_every_user_with_friends_starts_as_often_and_once_before_anybody_starts_again():
    data = network()
    walks = np.concatenate([*walks_of(data.links, data.n_users, 3, 4, np.random.default_rng(0))])
    with_friends = sorted(set(data.links.ravel().tolist()))
    starts = walks[:, 0].reshape(3, len(with_friends))
    assert [sorted(row) for row in starts.tolist()] == [with_friends] * 3
    assert not (starts[0] == starts[1]).all()


def test_skipgram_is_the_same_whatever_python_hashes_by():
    """gensim's own promise is for one thread; names of tokens must not decide where vectors start."""
    code = (
        "import numpy as np, hashlib; from tasks.models.user_networks.skipgram import SkipgramConfig, skipgram; "
        "rows = np.random.default_rng(0).integers(-1, 40, (300, 20)); "
        "vectors = skipgram(rows, 50, SkipgramConfig(dimension=6, window=4), np.random.default_rng(1)); "
        "digest = hashlib.sha256(vectors.tobytes()).hexdigest()"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # this process has another, which is random if unset
    other = subprocess.run(
        [sys.executable, "-c", f"{code}; print(digest)"],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    here: dict[str, str] = {}
    exec(code, here)
    assert other.stdout.strip() == here["digest"]


def test_trained_skipgram_comes_near_its_closed_form():
    """Dot products with contexts' vectors are the shifted PMI, so friends of the same users are alike in both."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 400)
    rows = groups[:, None] * 6 + rng.integers(0, 6, (400, 12))
    trained = skipgram(rows, 20, SkipgramConfig(dimension=8, window=5, passes=30), rng)
    counts = cooccurrences(rows.ravel(), np.repeat(np.arange(400), 12), 20, 5)
    closed = factorise(shifted_ppmi(counts, 1.0), 8, rng)
    assert not trained[18:].any()
    similar = [
        units[:18] @ units[:18].T
        for units in (of / np.maximum(np.linalg.norm(of, axis=1, keepdims=True), 1e-9) for of in (trained, closed))
    ]
    assert np.corrcoef(similar[0].ravel(), similar[1].ravel())[0, 1] > 0.9


@pytest.mark.parametrize(("name", "more"), [("word2vec", {"passes": 20}), ("word2vec-closed", {"negatives": 1.0})])
def test_users_who_write_of_the_same_are_close_and_silent_users_are_zero(name, more):
    """Thirty posts each of six users, of one topic of two; user 6 wrote nothing."""
    rng = np.random.default_rng(0)
    topics = np.repeat([0, 0, 0, 1, 1, 1], 30)
    tokens = (topics[:, None] * 5 + rng.integers(0, 5, (180, 6))).ravel().astype(np.int32)
    posts = Posts(np.repeat(np.arange(6, dtype=np.int32), 30), np.arange(181) * 6, tokens, 10)
    data = NetworkData(7, np.empty((0, 2), np.int32), posts=posts)
    rows = make(name, dimension=4, **more).fit(data, rng=rng).embed()
    assert not rows[6].any()
    units = rows[:6] / np.linalg.norm(rows[:6], axis=1, keepdims=True)
    same = units @ units.T
    assert min(same[:3, :3].min(), same[3:, 3:].min()) > same[:3, 3:].max() + 0.1


def test_a_user_is_the_mean_of_all_words_and_zero_without_any():
    data = network()
    expected = np.zeros((9, 4))
    for user in range(9):
        of_user = data.posts.users[data.posts.of_tokens] == user
        if of_user.any():
            expected[user] = data.word_vectors[data.posts.tokens[of_user]].mean(0)
    np.testing.assert_allclose(mean_of_words(data, data.word_vectors), expected, atol=1e-6)
    assert not expected[8].any()


def test_vectors_of_whole_texts_are_taken_as_they_are():
    vectors, known = np.full((3, 2), np.nan, np.float32), np.array([True, False, True])
    vectors[known] = [[1, 2], [3, 4]]
    data = NetworkData(3, np.empty((0, 2), np.int32), text_vectors=vectors, has_text=known)
    for name in ("word2vec", "word2vec-closed"):
        assert fitted(name, data).embed().tolist() == [[1, 2], [0, 0], [3, 4]]
