"""Classification metrics equal scikit-learn's; ranking metrics stay in range and grow with the cut-off."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from tasks.evaluation.metrics import micro_f1, ranking_metrics


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(1, 6), n=st.integers(1, 40))
def test_micro_f1_equals_scikit_learns_and_is_accuracy(seed: int, n_classes: int, n: int) -> None:
    truth, predicted = np.random.default_rng(seed).integers(0, n_classes, (2, n))
    assert micro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="micro"))
    assert micro_f1(truth, predicted) == pytest.approx(accuracy_score(truth, predicted))


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), n_users=st.integers(1, 20), length=st.integers(1, 15))
def test_ranking_metrics_stay_in_range_and_do_not_fall_with_the_cutoff(seed: int, n_users: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    hits = rng.random((n_users, length)) < 0.3
    n_relevant = np.maximum(hits.sum(1), rng.integers(1, 20, n_users))
    metrics = ranking_metrics(hits, n_relevant, list(range(1, length + 1)))
    for name, by_cutoff in metrics.items():
        values = list(by_cutoff.values())
        assert all(0 <= value <= 1 for value in values)
        if name != "ndcg":  # its ideal grows with the cut-off too
            assert values == sorted(values)
    assert all(metrics["mrr"][k] <= metrics["hit"][k] + 1e-12 for k in metrics["hit"])


def test_a_perfect_ranking_scores_one() -> None:
    metrics = ranking_metrics(np.ones((3, 5), bool), np.array([5, 5, 5]), [5])
    assert {name: by_cutoff[5] for name, by_cutoff in metrics.items()} == dict.fromkeys(metrics, 1.0)
