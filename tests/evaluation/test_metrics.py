"""Classification metrics equal scikit-learn's; ranking metrics stay in range and grow with the cut-off."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from tasks.evaluation.metrics import catalogue_metrics, micro_f1, ranking_metrics, sampled_metrics
from tasks.evaluation.ranking import Seen, full_values, tie_order, top_k


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(1, 6), n=st.integers(1, 40))
def test_micro_f1_equals_scikit_learns_and_is_accuracy(seed: int, n_classes: int, n: int) -> None:
    truth, predicted = np.random.default_rng(seed).integers(0, n_classes, (2, n))
    assert micro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert micro_f1(truth, predicted) == pytest.approx(accuracy_score(truth, predicted))


def test_catalogue_metrics_are_as_they_are_worded() -> None:
    rng = np.random.default_rng(4)
    lists = np.stack([rng.permutation(9)[:4] for _ in range(20)])
    lists[0, 2:] = -1
    counts = rng.integers(0, 12, 12)
    metrics = catalogue_metrics(lists, counts, 12, [1, 4])
    for k in (1, 4):
        kept = [[int(item) for item in row[:k] if item >= 0] for row in lists]
        exposure = np.bincount(np.concatenate(kept), minlength=12)
        assert metrics["coverage"][k] == pytest.approx((exposure > 0).sum() / 12)
        assert metrics["gini"][k] == pytest.approx(
            abs(exposure[:, None] - exposure).mean() / (2 * exposure.mean()), abs=1e-12
        )
        assert metrics["popularity"][k] == pytest.approx(np.mean([np.mean(counts[row]) for row in kept]))
        shares = np.maximum(counts, 1) / 12
        assert metrics["novelty"][k] == pytest.approx(np.mean([np.mean(-np.log2(shares[row])) for row in kept]))


HITS, SINGLE = np.array([[1, 0, 1]], bool), np.array([1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda seen: seen.contains(np.array([[0]]), np.array([[1, 1, 1]])), "item 1 is in one list more than once"),
        (lambda seen: seen.contains(np.array([[0, 0]]), np.array([[1, 1]])), "item 1 is in one list more than once"),
        (lambda seen: seen.contains(np.array([[0]]), np.array([[1, -2]])), "items must lie in -1"),
        (lambda seen: seen.contains(np.array([[1]]), np.array([[0, 2**62]])), "items must lie in -1"),
        (lambda seen: seen.contains(np.array([2]), SINGLE), r"users must lie in 0\.\.1, not 2"),
        (lambda seen: full_values(np.array([[0, 2, 2], [0, 1, 2]]), seen, [3]), "item 2 is in one list"),
        (lambda _: ranking_metrics(np.array([[3, 2, 3, 0, 1, 2]]), np.array([9]), [6]), "hits must be 0 or 1"),
        (lambda _: ranking_metrics(HITS * np.nan, SINGLE, [3]), "hits must be 0 or 1"),
        (lambda _: ranking_metrics(HITS, SINGLE, [3]), "user 0 has 2 hits, but 1 held-out items"),
        (lambda _: ranking_metrics(HITS, np.array([2, 2]), [3]), "hits of shape"),
        (lambda _: ranking_metrics(HITS, np.array([0]), [3]), "n_relevant must lie in 1"),
        (lambda _: ranking_metrics(HITS, np.array([2.5]), [3]), "must be integers"),
        (lambda _: sampled_metrics(np.array([0.0, np.nan]), [1]), "ranks must be integers"),
        (lambda _: sampled_metrics(np.array([0, -1]), [1]), r"ranks must lie in 0\.\.∞, not -1"),
        (lambda _: sampled_metrics(np.array([[0, 1]]), [1]), "one rank of each"),
        (lambda _: ranking_metrics(HITS, np.array([2]), [3], recall=cast(Any, "all")), "'relevant' or 'reachable'"),
        (lambda _: catalogue_metrics(np.array([[3]]), np.array([1, 2]), 2, [1]), r"items must lie in -1\.\.1, not 3"),
        (lambda _: catalogue_metrics(np.array([[0, 0]]), SINGLE, 2, [1]), "item 0 is in one list"),
        (lambda _: catalogue_metrics(np.array([[-1]]), SINGLE, 2, [1]), "must have an item"),
        (lambda _: catalogue_metrics(np.array([[0, -1, 1]]), np.array([1, 1]), 2, [1]), "padded at its end"),
        (lambda _: catalogue_metrics(np.zeros((0, 2), int), SINGLE, 2, [1]), "must be one or more"),
        (lambda _: catalogue_metrics(np.array([[0]]), np.array([[1, 1]]), 2, [1]), "must be one or more"),
        (lambda _: catalogue_metrics(np.array([[0]]), SINGLE, cast(Any, np.nan), [1]), "users must be integers"),
        (lambda _: catalogue_metrics(np.array([[0]]), SINGLE, 0, [1]), r"users must lie in 1\.\.∞, not 0"),
        (lambda _: catalogue_metrics(np.array([[0]]), 2 * SINGLE, 1, [1]), r"counts must lie in 0\.\.1, not 2"),
        (lambda _: micro_f1(np.array([1, 2]), SINGLE), "one guess for each"),
        (lambda _: micro_f1(np.array([1, np.nan]), np.array([1, 1])), "classes must be integers"),
        (lambda _: micro_f1(-SINGLE, -SINGLE), "classes must lie in 0"),
        (lambda _: Seen(np.array([0, 2]), np.int32([1, 1])), "item 1 does not"),
        (lambda _: Seen(np.array([0, 1, 3]), np.int32([3, 2, 1])), "item 1 does not"),
        (lambda _: Seen(np.array([0, 3]), np.int32([1])), "indptr must ascend"),
        (lambda seen: seen.contains(np.array([0, 1]), np.array([[1, 3], [0, 1]])), "do not fit"),
        (lambda seen: top_k(np.zeros, np.array([0]), seen, 0, tie_order(4, 0)), "k must be 1 or more"),
        (lambda seen: top_k(np.zeros, np.array([0]), seen, 1, tie_order(2, 0)), "seen items must lie in"),
        (lambda seen: top_k(np.zeros, np.array([0]), seen, 1, np.array([0, 1, 1, 3])), "every item once"),
        (lambda seen: top_k(np.zeros, np.array([-1]), seen, 1, tie_order(4, 0)), "users must lie in"),
        (lambda _: Seen.from_pairs(SINGLE, np.array([2**31]), 2), "items must lie in"),
    ],
)
def test_what_no_ranking_can_have_is_refused(call: Callable[[Seen], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(Seen.from_pairs(np.array([0, 0, 1]), np.array([1, 3, 0]), 2))


def test_padding_is_never_a_hit() -> None:
    """The key of user 1 and item -1 was that of user 0 and the last item."""
    seen = Seen.from_pairs(np.array([0, 1]), np.array([3, 3]), 2)
    assert seen.contains(np.array([[1], [0]]), np.array([[3, -1, -1], [-1, 0, 3]])).tolist() == [
        [True, False, False], [False, False, True]
    ]  # fmt: skip
