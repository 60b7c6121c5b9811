"""Who is recognised, among how many, and how sure the attacker was."""

import numpy as np
import pytest

from tasks.attacks.embeddings.anchors import Matches, choose, evaluate, name_confidently, nearest_accounts, reidentify
from tasks.core.errors import DataError
from tasks.evaluation.alignment import AlignmentResult, Anchors, similarity_scorer


def people(n: int, others: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors of two networks and anchors: n people in both, `others` in one alone, in random order."""
    rng = np.random.default_rng(seed)
    source, target = (rng.standard_normal((n + others, 12)) for _ in range(2))
    anchors = np.stack([rng.permutation(n + others)[:n] for _ in range(2)], axis=1)
    target[anchors[:, 1]] = source[anchors[:, 0]] + noise * target[anchors[:, 1]]
    return source, target, anchors


def test_equal_vectors_identify_everybody_also_among_those_without_an_account() -> None:
    source, target, anchors = people(60, 20, 0.0, 0)
    actual = reidentify(similarity_scorer(source, target), anchors, 80, seed=0)
    assert actual.at[1].value == actual.at[10].value == 1
    assert actual.at[1].low == pytest.approx(0.025 ** (1 / 60))
    assert actual.chance == {1: 1 / 80, 10: 10 / 80}
    assert actual.confident.share.value > 0.9
    assert actual.confident.precision > 0.8


def test_random_vectors_are_at_chance_and_nobody_is_named_with_confidence() -> None:
    """1,000 anchors among 100 targets each, ten times: hits at 10 are 10 % with a standard error of 0.0095 (anchors of
    one draw share targets and are nearly independent), within 4 of these (6e-5)."""
    rng = np.random.default_rng(1)
    shares, named = [], []
    for seed in range(10):
        anchors = np.stack([rng.permutation(100), rng.permutation(100)], axis=1)
        source, target = rng.standard_normal((2, 100, 20))
        actual = reidentify(similarity_scorer(source, target), anchors, 100, seed=seed)
        shares.append(actual.at[10].value)
        named.append(actual.confident.share.value)
    assert np.mean(shares) == pytest.approx(0.1, abs=0.038)
    assert np.mean(named) < 0.01


def test_a_map_and_bits_are_scored_as_a_slow_loop_would() -> None:
    rng = np.random.default_rng(0)
    source, target, w = rng.standard_normal((5, 3)), rng.standard_normal((7, 4)), rng.standard_normal((3, 4))
    scores = similarity_scorer(source @ w, target)(np.arange(5))
    for i in range(5):
        for j in range(7):
            mapped = source[i] @ w
            cosine = mapped @ target[j] / np.linalg.norm(mapped) / np.linalg.norm(target[j])
            assert scores[i, j] == pytest.approx(cosine)
    left, right = rng.integers(0, 2, (6, 32)), rng.integers(0, 2, (8, 32))
    equal = (left[:, None] == right).sum(axis=2)
    dots = similarity_scorer(2.0 * left - 1, 2.0 * right - 1, cosine=False)(np.arange(6))
    assert dots == pytest.approx(2 * equal - 32)


def test_a_constant_scorer_is_at_chance_and_its_claims_are_spread() -> None:
    anchors = np.stack([np.arange(400)] * 2, axis=1)
    actual = reidentify(lambda users: np.zeros((len(users), 400)), anchors, 400, seed=0)
    assert {k: precision.value for k, precision in actual.at.items()} == pytest.approx(actual.chance)
    named = nearest_accounts(lambda users: np.zeros((len(users), 400)), anchors, 400, np.random.default_rng(0))
    assert named.right.sum() == 1, "all are equally near to everyone: one account for all of them"
    assert not named.confidence["margin"].any()


def test_the_threshold_is_the_lowest_that_keeps_the_precision() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        confidence, right = rng.integers(0, 9, 40) * 1.0, rng.random(40) < 0.7
        threshold, actual = choose(confidence, right, 0.75)
        fine = [t for t in range(9) if (confidence >= t).any() and right[confidence >= t].mean() >= 0.75]
        if fine:
            assert actual == right[confidence >= min(fine)].sum()
            assert ((confidence >= threshold) == (confidence >= min(fine))).all()
        else:
            assert (threshold, actual) == (float("inf"), 0)


def test_the_confident_attacker_keeps_the_precision_where_confidence_tells() -> None:
    """Right with the probability that confidence says, uniform: precision 0.9 is reached above 0.8, a fifth of all.
    4,000 users: the share of those right above is 0.18; thresholds move it by a few hundredths."""
    rng = np.random.default_rng(4)
    sure = rng.random(4000)
    right = rng.random(4000) < sure
    actual = name_confidently(Matches(right, {"nearest": sure, "margin": rng.random(4000)}), 4000, 0.9, rng)
    assert actual.precision == pytest.approx(0.9, abs=0.03)
    assert actual.share.value == pytest.approx(0.18, abs=0.05)
    assert actual.share.low < actual.share.value < actual.share.high


def test_those_without_an_account_can_only_be_named_wrongly() -> None:
    source, target, anchors = people(40, 60, 0.1, 2)
    alone = nearest_accounts(similarity_scorer(source, target), anchors, 100, np.random.default_rng(0))
    assert not alone.right[np.setdiff1d(np.arange(100), anchors[:, 0])].any()
    assert alone.right.sum() > 30


def test_equal_seeds_give_equal_results_and_fractions_of_ties_widen_the_interval() -> None:
    source, target, anchors = people(40, 10, 1.0, 5)
    first, again = (reidentify(similarity_scorer(source, target), anchors, 50, seed=7) for _ in range(2))
    assert first == again
    tied = reidentify(lambda users: np.zeros((len(users), 3)), np.array([[0, 0], [1, 1]]), 2, seed=0, ks=(1,))
    assert tied.at[1].value == pytest.approx(1 / 3)
    assert tied.at[1].low == 0
    assert tied.at[1].high > 0.95


def test_one_target_no_anchors_and_people_twice() -> None:
    only = reidentify(lambda users: np.ones((len(users), 1)), np.array([[1, 0]]), 2, seed=0, ks=(1,))
    assert only.at[1].value == only.chance[1] == 1
    score = similarity_scorer(np.ones((3, 2)), np.ones((3, 2)))
    with pytest.raises(DataError, match="none to judge"):
        reidentify(score, np.empty((0, 2), int), 3, seed=0)
    with pytest.raises(DataError, match="target user 2 is in several"):
        reidentify(score, np.array([[0, 2], [1, 2]]), 3, seed=0)
    with pytest.raises(DataError, match="none of the 3"):
        reidentify(score, np.array([[3, 2]]), 3, seed=0)
    with pytest.raises(DataError, match="2 and 3 numbers"):
        similarity_scorer(np.ones((3, 2)), np.ones((3, 3)))
    with pytest.raises(DataError, match="source: not finite for 1 users"):
        similarity_scorer(np.array([[np.inf, 1.0]]), np.ones((3, 2)))


@pytest.mark.parametrize(
    ("wrong", "n_finds", "precision"), [(None, 60, 1.0), ([[0, 1]], 49, 0.0)], ids=["all are found", "what is given is"]
)
def test_naming_given_anchors_is_no_mistake_and_no_find(wrong, n_finds: int, precision: float) -> None:
    """Everyone is their own nearest; a way may know 48 pairs, and finds all, or these again and a wrong one."""
    pairs, eye = np.stack([np.arange(60)] * 2, axis=1), np.eye(60)
    anchors = Anchors(pairs[:12], pairs[12:], pairs)
    finds = pairs if wrong is None else np.append(pairs[12:], wrong, axis=0)
    way = AlignmentResult(lambda users: eye[users], finds, 1.0, pairs[12:], {})
    rows = {record["metric"]: record["value"] for record in evaluate("way", way, anchors, (60, 60), [1], 0)}
    assert rows["alignment/way/confident/precision"] == rows["alignment/way/confident/share"] == 1
    assert (rows["alignment/way/found"], rows["alignment/way/found/precision"]) == (n_finds, precision)
