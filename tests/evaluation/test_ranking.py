"""Rankings equal the obvious slow ones, never show a seen item, and know no favourites among equals."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tasks.core.hashing import Uniforms
from tasks.evaluation.metrics import means, ranking_metrics, sampled_metrics
from tasks.evaluation.ranking import (
    MEASURED,
    Scorer,
    Seen,
    full_values,
    item_order,
    sampled_negatives,
    sampled_ranks,
    tie_order,
    top_k,
)


def scorer(scores: NDArray[np.float32]) -> Scorer:
    table = torch.from_numpy(scores)
    return lambda users: table[torch.from_numpy(users).long()]


def constant(n_items: int) -> Scorer:
    return lambda users: torch.zeros(1, n_items).expand(len(users), -1)


def draws(n_users: int, n_items: int, seed: int = 0) -> Uniforms:
    return Uniforms.of(seed, range(n_users), range(n_items))


def random_seen(rng: np.random.Generator, n_users: int, n_items: int, most: int) -> Seen:
    items = [rng.choice(n_items, rng.integers(0, most + 1), replace=False) for _ in range(n_users)]
    users = np.repeat(np.arange(n_users), [len(row) for row in items])
    return Seen.from_pairs(users, np.concatenate(items), n_users)


def slow_top_k(scores: NDArray[np.float32], seen: Seen, k: int, order: NDArray[np.int64]) -> list[list[int]]:
    result = []
    for user, row in enumerate(scores):
        hidden = set(seen.items[seen.indptr[user] : seen.indptr[user + 1]].tolist())
        unseen = [item for item in range(len(row)) if item not in hidden]
        result.append(sorted(unseen, key=lambda item: (-row[item], order[item]))[:k])
    return result


@given(
    seed=st.integers(0, 2**32 - 1),
    n_users=st.integers(1, 12),
    n_items=st.integers(2, 60),
    levels=st.sampled_from([1, 2, 5, 1000]),
    batch=st.integers(1, 13),
)
def test_top_k_equals_a_full_sort_with_ties_in_the_fixed_order(
    seed: int, n_users: int, n_items: int, levels: int, batch: int
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (n_users, n_items)).astype(np.float32)
    k = int(rng.integers(1, n_items + 1))
    seen = random_seen(rng, n_users, n_items, n_items - k)
    users, order = rng.permutation(n_users).astype(np.int32), tie_order(n_items, seed)
    items, values = top_k(scorer(scores), users, seen, k, order, batch)
    assert items.tolist() == [slow_top_k(scores, seen, k, order)[user] for user in users]
    np.testing.assert_array_equal(values, scores[users[:, None], items])


def test_top_k_leaves_the_scorers_own_tensor_untouched() -> None:
    scores = np.arange(12, dtype=np.float32).reshape(2, 6)
    table = torch.from_numpy(scores.copy())
    seen = Seen.from_pairs(np.array([0, 1]), np.array([5, 5]), 2)
    top_k(lambda _: table, np.arange(2, dtype=np.int32), seen, 3, tie_order(6, 0))
    np.testing.assert_array_equal(table.numpy(), scores)


def test_seen_counts_a_repeated_pair_once() -> None:
    seen = Seen.from_pairs(np.array([2, 0, 2, 2]), np.array([3, 1, 3, 0]), 3)
    assert seen.counts.tolist() == [1, 0, 2]
    assert seen.items.tolist() == [1, 0, 3]
    assert seen.contains(np.array([[0], [1], [2]]), np.array([0, 1, 3])).tolist() == [
        [False, True, False],
        [False, False, False],
        [True, False, True],
    ]


@pytest.mark.parametrize("n_items", [40, 130])
def test_negatives_are_distinct_unobserved_and_independent_of_the_order_of_rows(n_items: int) -> None:
    rng = np.random.default_rng(5)
    seen = random_seen(rng, 30, n_items, n_items - 25)
    users, items = np.repeat(np.arange(30), seen.counts).astype(np.int32), seen.items
    negatives = sampled_negatives(users, items, seen, 25, draws(30, n_items, 7))
    assert negatives.shape == (len(users), 25)
    assert not seen.contains(users[:, None], negatives).any()
    assert negatives.min() >= 0
    assert negatives.max() < n_items
    assert all(len(set(row)) == 25 for row in negatives.tolist())
    shuffle = rng.permutation(len(users))
    again = sampled_negatives(users[shuffle], items[shuffle], seen, 25, draws(30, n_items, 7))
    np.testing.assert_array_equal(again, negatives[shuffle])
    assert (sampled_negatives(users, items, seen, 25, draws(30, n_items, 8)) != negatives).any()


def test_negatives_are_uniform_over_the_unobserved_items() -> None:
    """Chi-square over 20 unobserved items, 8,000 draws of 5; false alarm 1e-4. Draws of 5 without repeats vary less
    than independent ones, by 15/19, which the statistic is divided by."""
    seen = Seen.from_pairs(np.repeat(np.arange(8000), 4), np.tile([0, 7, 8, 23], 8000), 8000)
    users = np.arange(8000, dtype=np.int32)
    negatives = sampled_negatives(users, np.zeros(8000, np.int32), seen, 5, draws(8000, 24, 1))
    counts = np.delete(np.bincount(negatives.ravel(), minlength=24), [0, 7, 8, 23])
    expected = 8000 * 5 / 20
    statistic = ((counts - expected) ** 2 / expected).sum() / (15 / 19)
    assert stats.chi2.sf(statistic, 19) > 1e-4


def test_a_positive_s_negatives_and_its_rank_among_equals_do_not_depend_on_other_users() -> None:
    rng = np.random.default_rng(2)
    seen, published = random_seen(rng, 12, 60, 20), rng.permutation(1000)[:12]
    users, items = np.repeat(np.arange(12), seen.counts).astype(np.int32), seen.items
    every = Uniforms.of(1, published, range(60))
    negatives = sampled_negatives(users, items, seen, 25, every)
    ranks = sampled_ranks(constant(60), users, items, negatives, every)
    left = users >= 5
    fewer = Seen.from_pairs(users[left] - 5, items[left], 7)
    without = Uniforms.of(1, published[5:], range(60))
    again = sampled_negatives(users[left] - 5, items[left], fewer, 25, without)
    np.testing.assert_array_equal(again, negatives[left])
    np.testing.assert_array_equal(
        sampled_ranks(constant(60), users[left] - 5, items[left], again, without), ranks[left]
    )


def test_which_of_two_items_goes_first_does_not_depend_on_other_items() -> None:
    names = [f"item {n}" for n in range(50)]
    order, fewer = (item_order(Uniforms.of(3, [], chosen)) for chosen in (names, names[10:]))
    assert sorted(order) == list(range(50))
    np.testing.assert_array_equal(order[10:].argsort(), fewer.argsort())


def test_sampled_ranks_count_the_negatives_above_and_ignore_the_order_of_rows() -> None:
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((40, 90)).astype(np.float32)
    users, positives = rng.integers(0, 40, 300).astype(np.int32), rng.integers(0, 90, 300).astype(np.int32)
    negatives = rng.integers(0, 90, (300, 20)).astype(np.int32)
    negatives[negatives == positives[:, None]] = 0
    positives[positives == 0] = 1  # a positive is never among its negatives
    negatives[negatives == positives[:, None]] = 0
    ranks = sampled_ranks(scorer(scores), users, positives, negatives, draws(40, 90), batch=7)
    above = scores[users[:, None], negatives] > scores[users, positives][:, None]
    np.testing.assert_array_equal(ranks, above.sum(1))
    tied = np.round(scores)
    pairs = np.unique(np.stack([users, positives]), axis=1, return_index=True)[1]
    users, positives, negatives = users[pairs], positives[pairs], negatives[pairs]
    shuffle = rng.permutation(len(users))
    ranks = sampled_ranks(scorer(tied), users, positives, negatives, draws(40, 90, 4))
    again = sampled_ranks(scorer(tied), users[shuffle], positives[shuffle], negatives[shuffle], draws(40, 90, 4))
    np.testing.assert_array_equal(again, ranks[shuffle])


def test_a_constant_scorer_has_uniform_sampled_ranks() -> None:
    """Chi-square over the 101 possible ranks of 20,200 positives; false alarm 1e-4."""
    users = np.repeat(np.arange(202, dtype=np.int32), 100)
    positives = np.tile(np.arange(100, dtype=np.int32), 202)
    negatives = np.broadcast_to(np.arange(100, 200, dtype=np.int32), (20_200, 100))
    ranks = sampled_ranks(constant(200), users, positives, negatives, draws(202, 200, 11))
    assert stats.chisquare(np.bincount(ranks, minlength=101)).pvalue > 1e-4


@pytest.fixture
def rankings() -> tuple[NDArray[np.int32], Seen]:
    rng = np.random.default_rng(9)
    recommended = np.stack([rng.permutation(40)[:12] for _ in range(60)]).astype(np.int32)
    return recommended, random_seen(rng, 60, 40, 15)


RANX = """
import json, sys, ranx
truth, run, metrics = json.load(sys.stdin)
print(json.dumps(ranx.evaluate(ranx.Qrels(truth), ranx.Run(run), metrics)))
"""


def test_full_metrics_equal_ranx(rankings: tuple[NDArray[np.int32], Seen]) -> None:
    """In a process of its own without its just-in-time compiler: compiling takes most of a minute, running 2 s."""
    pytest.importorskip("ranx")
    recommended, test = rankings
    users = np.flatnonzero(test.counts)
    truth = {str(u): {str(i): 1 for i in test.items[test.indptr[u] : test.indptr[u + 1]]} for u in users}
    run = {str(u): {str(i): 12.0 - rank for rank, i in enumerate(recommended[u])} for u in users}
    names = {"hit": "hit_rate"} | {name: name for name in ("ndcg", "recall", "mrr", "precision", "map")}
    metrics = [f"{name}@{k}" for name in names.values() for k in (3, 12)]
    process = subprocess.run(
        [sys.executable, "-c", RANX],
        input=json.dumps([truth, run, metrics]),
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(process.stdout)
    ours = ranking_metrics(test.contains(users[:, None], recommended[users]), test.counts[users], [3, 12])
    assert means(full_values(recommended, test, [3, 12])[1]) == {name: ours[name] for name in MEASURED}
    for name, other in names.items():
        for k in (3, 12):
            assert ours[name][k] == pytest.approx(theirs[f"{other}@{k}"], abs=1e-9)


def test_sampled_metrics_of_known_ranks() -> None:
    metrics = sampled_metrics(np.array([0, 1, 4, 99]), [1, 5])
    assert metrics["hit"] == {1: 0.25, 5: 0.75}
    assert metrics["mrr"] == {1: 0.25, 5: pytest.approx((1 + 1 / 2 + 1 / 5) / 4)}
    assert metrics["ndcg"] == {1: 0.25, 5: pytest.approx((1 + 1 / np.log2(3) + 1 / np.log2(6)) / 4)}
