"""Links are stolen where the embedding has them and not elsewhere; rates and intervals are what they should be."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tasks.attacks.embeddings.links import FALSE_POSITIVES, Pairs, Similarity, auc, draw, similarities, steal, tpr
from tasks.core.errors import DataError

CHANCE = {"auc": 0.5, "tpr": FALSE_POSITIVES}


def network(n: int, seed: int, groups: int = 6) -> np.ndarray:
    """Links within groups with probability 0.5, between them 0.02; (n_links, 2)."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    chance = np.where(group[:, None] == group, 0.5, 0.02)
    return np.argwhere(np.triu(rng.random((n, n)) < chance, 1))


def adjacency(links: np.ndarray, n: int) -> np.ndarray:
    dense = np.zeros((n, n))
    dense[links[:, 0], links[:, 1]] = dense[links[:, 1], links[:, 0]] = 1
    return dense


def test_the_adjacencys_own_rows_give_links_away_and_random_vectors_do_not() -> None:
    links = network(150, 0)
    rows = adjacency(links, 150) + np.eye(150)
    noise = np.random.default_rng(1).standard_normal((150, 8))
    actual, control = (
        {result.attacker: result for result in steal(vectors, links, pairs=900, known_share=0.4, seed=0)}
        for vectors in (rows, noise)
    )
    assert set(actual) == {"cosine", "dot", "hadamard"}
    for result in actual.values():
        assert result.auc.low > 0.7
        assert result.auc.low > control[result.attacker].auc.value + 0.1
    assert actual["cosine"].tpr.low > CHANCE["tpr"]


def test_auc_is_scikit_learns_also_with_ties_and_its_interval_is_delongs() -> None:
    rng = np.random.default_rng(0)
    actual = Similarity(rng.integers(0, 8, 40) + 1.0, rng.integers(0, 8, 55) * 1.0)
    truth = np.repeat([1, 0], [40, 55])
    estimate = auc(actual)
    assert estimate.value == pytest.approx(roc_auc_score(truth, np.concatenate(actual)))
    wins = (actual.links[:, None] > actual.others) + 0.5 * (actual.links[:, None] == actual.others)
    error = np.sqrt(wins.mean(axis=1).var(ddof=1) / 40 + wins.mean(axis=0).var(ddof=1) / 55)
    assert (estimate.high - estimate.low) / 2 == pytest.approx(1.96 * error, rel=1e-3)


def test_constant_scores_are_exactly_at_chance_and_certainty_keeps_an_interval() -> None:
    constant = Similarity(np.zeros(500), np.zeros(500))
    assert auc(constant) == (0.5, 0.5, 0.5)
    rate = tpr(constant, np.random.default_rng(0))
    assert rate.value == pytest.approx(0.01)
    assert rate.low <= 0.01 <= rate.high
    perfect = Similarity(np.ones(30), np.zeros(50))
    assert auc(perfect)[::2] == (1, 1)
    assert auc(perfect).low == pytest.approx(0.025 ** (1 / 30))
    assert tpr(perfect, np.random.default_rng(0)).value == 1


def test_the_rate_is_that_of_the_best_threshold_and_its_interval_covers_the_true_one() -> None:
    """A shift of 2 between normals: the true rate at 1 % is Φ(2 - 2.326) = 0.372. Of 200 draws, intervals of at least
    95 % miss 10 on average at most; 20 or more have a probability of 0.002."""
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(200):
        actual = Similarity(rng.standard_normal(300) + 2, rng.standard_normal(1000))
        estimate = tpr(actual, rng)
        threshold = np.sort(actual.others)[-11]  # of 1,000 non-links just 1 % are above it
        assert estimate.value == pytest.approx((actual.links > threshold).mean())
        missed += not estimate.low <= 0.3722 <= estimate.high
    assert missed < 20


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9])
def test_drawn_pairs_are_all_links_and_all_others_when_all_are_asked_for(n: int) -> None:
    every = np.argwhere(np.triu(np.ones((n, n)), 1))
    rng = np.random.default_rng(n)
    links = every[rng.permutation(len(every))[: len(every) // 2]]
    others = {tuple(pair) for pair in every} - {tuple(pair) for pair in links}
    follows = np.concatenate([links, links[:, ::-1], np.stack([np.arange(n)] * 2, axis=1)])
    if len(links) < 2:
        with pytest.raises(DataError, match="at least 2"):
            draw(follows, n, 100, 0.0, rng)
        return
    drawn = draw(follows, n, 100, 0.0, rng)
    drawn_links, drawn_others = ({tuple(sorted(pair)) for pair in some} for some in (drawn.links, drawn.others))
    assert drawn_links == {tuple(pair) for pair in links}
    assert len(drawn_others) == len(drawn.others) == len(links)
    assert drawn_others <= others
    assert len(drawn.known_links) == len(drawn.known_others) == 0


def test_non_links_are_drawn_uniformly() -> None:
    """6 users, 4 links, 11 others, 2 drawn 3,000 times: each is drawn 545 times on average, standard deviation 21; a
    deviation of 5 of these has a probability of 11 × 6e-7."""
    links = np.array([[0, 1], [2, 5], [0, 3], [4, 5]])
    rng = np.random.default_rng(0)
    counts = np.zeros((6, 6))
    for _ in range(3000):
        low, high = np.sort(draw(links, 6, 2, 0.0, rng).others, axis=1).T
        counts[low, high] += 1
    assert (counts > 0).sum() == 11
    assert np.abs(counts[counts > 0] - 6000 / 11).max() < 105


def test_similarities_are_those_of_a_slow_loop_and_nobody_learns_from_tested_pairs() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((30, 4)).astype(np.float32)
    vectors[3] = 0
    pairs = Pairs(*(rng.integers(0, 30, (12, 2)) for _ in range(4)))
    actual = similarities(vectors, pairs)
    for (a, b), cosine, dot in zip(pairs.links, actual["cosine"].links, actual["dot"].links, strict=True):
        product = float(vectors[a].astype(float) @ vectors[b].astype(float))
        length = np.linalg.norm(vectors[a].astype(float)) * np.linalg.norm(vectors[b].astype(float))
        assert dot == pytest.approx(product, abs=1e-6)
        assert cosine == pytest.approx(product / length if length else 0, abs=1e-6)
    fewer = similarities(vectors, Pairs(pairs.known_links, pairs.known_others, pairs.links[:5], pairs.others[:2]))
    assert fewer["hadamard"].links == pytest.approx(actual["hadamard"].links[:5])


def test_known_pairs_are_not_tested_and_equal_seeds_draw_equal_pairs() -> None:
    links = network(40, 4)
    drawn = draw(links, 40, 60, 0.25, np.random.default_rng(1))
    every = np.sort(np.concatenate([drawn.known_links, drawn.known_others, drawn.links, drawn.others]), axis=1)
    assert len(np.unique(every, axis=0)) == len(every) == 120
    assert (len(drawn.known_links), len(drawn.links)) == (15, 45)
    vectors = np.random.default_rng(0).standard_normal((40, 3))
    arguments = {"pairs": 60, "known_share": 0.25, "seed": 2}
    assert steal(vectors, links, **arguments) == steal(vectors, links[::-1, ::-1], **arguments)
    assert [result.attacker for result in steal(vectors, links, pairs=60, known_share=0, seed=2)] == ["cosine", "dot"]


def test_networks_without_links_or_without_others_and_nonsense_are_refused() -> None:
    vectors = np.ones((6, 2))
    every = np.argwhere(np.triu(np.ones((6, 6)), 1))
    for links in (np.empty((0, 2), int), every, np.array([[1, 1]])):
        with pytest.raises(DataError, match="at least 2 are needed"):
            steal(vectors, links, pairs=10, known_share=0.5, seed=0)
    with pytest.raises(DataError, match="at least 2 are needed"):
        steal(np.ones((2, 2)), np.array([[0, 1]]), pairs=10, known_share=0, seed=0)
    with pytest.raises(DataError, match="none of the 6"):
        steal(vectors, np.array([[0, 6]]), pairs=10, known_share=0, seed=0)
    with pytest.raises(DataError, match="leaves nothing to test"):
        steal(vectors, every[:5], pairs=10, known_share=1, seed=0)
