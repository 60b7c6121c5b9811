"""What no ranking, class, rating, score, run or embedding can be is refused, and by what error."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from tasks.core.errors import DataError, DivergenceError
from tasks.evaluation.alignment import chance, precision
from tasks.evaluation.classification import UNKNOWN, decision_tree, predict_classes, predict_labels
from tasks.evaluation.detection import Scored
from tasks.evaluation.metrics import catalogue_metrics, micro_f1, ranking_metrics, sampled_metrics
from tasks.evaluation.pairs import difference, interval
from tasks.evaluation.ranking import Seen, full_values, sampled_negatives, sampled_ranks, tie_order, top_k
from tasks.evaluation.rating import mae
from tasks.evaluation.statistics import crossed_interval, holm, paired_tests, summary
from tests.evaluation.test_pairs import KNOWN, ONE_SPLIT
from tests.evaluation.test_ranking import constant, draws, scorer

SEEN = Seen.from_pairs(np.array([0, 0, 1]), np.array([1, 3, 0]), 2)
FIRST = Seen.from_pairs(np.array([0]), np.array([0]), 1)
NO_ONE, NONE_SEEN = np.zeros((2, 0), int), Seen.from_pairs(*np.zeros((2, 0), int), 3)
HITS, SINGLE, TWO = np.array([[1, 0, 1]], bool), np.array([1]), np.int32([[0, 1]])
TABLE, ONES = np.random.default_rng(8).random((4, 5)), np.ones((4, 5), np.int64)
VECTORS, USERS = np.ones((5, 2)), np.arange(5)
BROKEN = np.where(USERS[:, None] == 3, np.nan, VECTORS)
ALONE = np.array([UNKNOWN, 1, UNKNOWN, UNKNOWN, UNKNOWN])


BOTH, NEGATIVES = np.int32([0, 2]), np.int32([[1, 2], [1, 2]])


def scored(row: int, column: Any, value: float) -> Callable[[np.ndarray], Any]:
    """Scores of 1 but for one."""
    scores = np.ones((3, 4), np.float32)
    scores[row, column] = value
    return scorer(scores)


def lists_of(*given: float) -> object:
    """The best of all items for three users, of whom user 1 has this score."""
    return [top_k(scored(1, slice(None), bad), np.int32([0, 1, 2]), NONE_SEEN, 2, tie_order(4, 0)) for bad in given]


def compared(first: list[float], second: list[float], **more: Any) -> object:
    return paired_tests({"claim": (first, second)}, **more)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SEEN.contains(np.array([[0]]), np.array([[1, 1, 1]])), "item 1 is in one list more than once"),
        (lambda: SEEN.contains(np.array([[0, 0]]), np.array([[1, 1]])), "item 1 is in one list more than once"),
        (lambda: SEEN.contains(np.array([[0]]), np.array([[1, -2]])), "items must lie in -1"),
        (lambda: SEEN.contains(np.array([[1]]), np.array([[0, 2**62]])), "items must lie in -1"),
        (lambda: SEEN.contains(np.array([2]), SINGLE), r"users must lie in 0\.\.1, not 2"),
        (lambda: SEEN.contains(np.array([0, 1]), np.array([[1, 3], [0, 1]])), "do not fit"),
        (lambda: Seen(np.array([0, 2]), np.int32([1, 1])), "item 1 does not"),
        (lambda: Seen(np.array([0, 1, 3]), np.int32([3, 2, 1])), "item 1 does not"),
        (lambda: Seen(np.array([0, 3]), np.int32([1])), "indptr must ascend"),
        (lambda: Seen.from_pairs(SINGLE, np.array([2**31]), 2), "items must lie in"),
        (lambda: Seen.from_pairs(np.array([2]), np.array([0]), 2), r"0\.\.1"),
        (lambda: full_values(np.array([[0, 2, 2], [0, 1, 2]]), SEEN, [3]), "item 2 is in one list"),
        (lambda: full_values(TWO, FIRST, [3]), "cut-offs"),
        (lambda: full_values(TWO, FIRST, []), "cut-offs"),
        (lambda: full_values(TWO, Seen.from_pairs(*NO_ONE, 1), [1]), "user"),
        (lambda: full_values(np.int32([[0], [1]]), FIRST, [1]), "user"),
        (lambda: ranking_metrics(np.array([[3, 2, 3, 0, 1, 2]]), np.array([9]), [6]), "hits must be 0 or 1"),
        (lambda: ranking_metrics(HITS * np.nan, SINGLE, [3]), "hits must be 0 or 1"),
        (lambda: ranking_metrics(HITS, SINGLE, [3]), "user 0 has 2 hits, but 1 held-out items"),
        (lambda: ranking_metrics(HITS, np.array([2, 2]), [3]), "hits of shape"),
        (lambda: ranking_metrics(HITS, np.array([0]), [3]), "n_relevant must lie in 1"),
        (lambda: ranking_metrics(HITS, np.array([2.5]), [3]), "must be integers"),
        (lambda: ranking_metrics(HITS, np.array([2]), [3], recall=cast(Any, "all")), "'relevant' or 'reachable'"),
        (lambda: sampled_metrics(np.array([0.0, np.nan]), [1]), "ranks must be integers"),
        (lambda: sampled_metrics(np.array([0, -1]), [1]), r"ranks must lie in 0\.\.∞, not -1"),
        (lambda: sampled_metrics(np.array([[0, 1]]), [1]), "one rank of each"),
        (lambda: sampled_metrics(np.array([1]), [0]), "cut-offs"),
        (lambda: sampled_metrics(np.array([], int), [1]), "positive"),
        (lambda: catalogue_metrics(np.array([[3]]), np.array([1, 2]), 2, [1]), r"items must lie in -1\.\.1, not 3"),
        (lambda: catalogue_metrics(np.array([[0, 0]]), SINGLE, 2, [1]), "item 0 is in one list"),
        (lambda: catalogue_metrics(np.array([[-1]]), SINGLE, 2, [1]), "must have an item"),
        (lambda: catalogue_metrics(np.array([[0, -1, 1]]), np.array([1, 1]), 2, [1]), "padded at its end"),
        (lambda: catalogue_metrics(np.zeros((0, 2), int), SINGLE, 2, [1]), "must be one or more"),
        (lambda: catalogue_metrics(np.array([[0]]), np.array([[1, 1]]), 2, [1]), "must be one or more"),
        (lambda: catalogue_metrics(np.array([[0]]), SINGLE, cast(Any, np.nan), [1]), "users must be integers"),
        (lambda: catalogue_metrics(np.array([[0]]), SINGLE, 0, [1]), r"users must lie in 1\.\.∞, not 0"),
        (lambda: catalogue_metrics(np.array([[0]]), 2 * SINGLE, 1, [1]), r"counts must lie in 0\.\.1, not 2"),
        (lambda: micro_f1(np.array([1, 2]), SINGLE), "one guess for each"),
        (lambda: micro_f1(np.array([1, np.nan]), np.array([1, 1])), "classes must be integers"),
        (lambda: micro_f1(-SINGLE, -SINGLE), "classes must lie in 0"),
        (lambda: top_k(np.zeros, np.array([0]), SEEN, 0, tie_order(4, 0)), "k must be 1 or more"),
        (lambda: top_k(np.zeros, np.array([0]), SEEN, 1, tie_order(2, 0)), "seen items must lie in"),
        (lambda: top_k(np.zeros, np.array([0]), SEEN, 1, np.array([0, 1, 1, 3])), "every item once"),
        (lambda: top_k(np.zeros, np.array([-1]), SEEN, 1, tie_order(4, 0)), "users must lie in"),
        (lambda: mae([], [], 1, 5), "1 or more"),
        (lambda: mae([1.0, 2.0], [1.0], 1, 5), "equal length"),
        (lambda: mae([[1.0]], [[1.0]], 1, 5), "1-D"),
        (lambda: mae([1.0], [np.nan], 1, 5), "not finite"),
        (lambda: mae([np.inf], [1.0], 1, 5), "not finite"),
        (lambda: chance(0, 5), "at least 1"),
        (lambda: Scored(np.array([1.0, np.nan]), SINGLE), "finite"),
        (lambda: Scored(USERS, USERS, (np.arange(2), USERS)), "groups"),
        *((lambda rate=rate: Scored(USERS, USERS).tpr(rate), "false positive rate") for rate in (-1, 2, np.nan)),
        (lambda: difference(np.where(TABLE > 0.9, np.nan, TABLE), TABLE, ONES, ONE_SPLIT), "not finite"),
        (lambda: difference(TABLE, TABLE, ONES * (USERS > 0), ONE_SPLIT), "no examples"),
        (lambda: difference(TABLE, TABLE[:, 1:], ONES, ONE_SPLIT), "sums of"),
        (lambda: interval(KNOWN, overlap=-1.0), "the overlap must"),
        (lambda: interval(replace(KNOWN, mean=math.nan)), "not a difference"),
        (lambda: interval(replace(KNOWN, var_users=math.inf)), "not a difference"),
        (lambda: interval(replace(KNOWN, var_runs=-0.1)), "not a difference"),
        *((lambda bad=bad: summary(bad), "finite") for bad in ([], [1.0, math.nan], [math.inf], [[1.0]])),
        (lambda: holm([1.2]), "p-values"),
        *(
            (lambda off=off: compared([1.0, 2.0], [1.0, 3.0], overlap=off), "overlap")
            for off in (-0.1, math.nan, math.inf)
        ),
        (lambda: compared([1.0], [2.0]), "claim: a paired test needs the same"),
        (lambda: compared([1.0, 2.0], [1.0, 2.0, 3.0]), "claim: a paired test needs the same"),
        (lambda: crossed_interval(np.ones(4)), "a table of finite values"),
    ],
)
def test_impossible_arguments_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: top_k(constant(5), np.int32([0, 1]), SEEN, 4, tie_order(5, 0)),
            "user 0 has only 3 of 5 items .* k = 4",
        ),
        (lambda: sampled_negatives(np.int32([0]), SINGLE, SEEN, 9, draws(2, 10)), "user 0 has only 8 unobserved items"),
        (lambda: precision(constant(5), np.empty((0, 2), np.int64), (1,)), "none to judge"),
        (lambda: predict_labels(VECTORS, USERS[:0], np.empty((0, 3), int), seed=0), "known of 0 users"),
        (lambda: predict_classes(VECTORS, np.full(5, UNKNOWN), decision_tree, seed=0), "known of 0 users"),
        (lambda: predict_classes(VECTORS, ALONE, decision_tree, seed=0), "known of 1 users"),
        (lambda: predict_labels(VECTORS, USERS[:3], np.full((3, 2), -1), seed=0), "neither 0 nor 1"),
        (lambda: predict_labels(VECTORS, np.array([1, 1, 2]), np.ones((3, 2), int), seed=0), "there twice"),
        (lambda: predict_labels(VECTORS, np.array([1, 5]), np.ones((2, 2), int), seed=0), "user 5 is none of the 5"),
        (lambda: predict_labels(BROKEN, USERS, np.ones((5, 1)), seed=0), "first user 3"),
    ],
)
def test_data_that_cannot_be_judged_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda bad=bad: lists_of(bad), "user 1 are not finite") for bad in (np.nan, np.inf, -np.inf)),
        (lambda: sampled_ranks(scored(2, 1, np.nan), BOTH, 0 * BOTH, NEGATIVES, draws(3, 4)), "user 2 are not numbers"),
        (lambda: precision(BROKEN.__getitem__, np.array([[3, 1]]), (1,)), "source user 3 are not numbers"),
    ],
)
def test_scores_that_are_not_finite_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(DivergenceError, match=message):
        call()
