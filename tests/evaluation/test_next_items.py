"""Rankings after every prefix equal a slow loop's, metrics scikit-learn's; equals are ranked without favour."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import label_ranking_average_precision_score, top_k_accuracy_score

from tasks.core.errors import DivergenceError
from tasks.core.sequences import Sequences
from tasks.evaluation.metrics import means
from tasks.evaluation.next_items import BATCH, NextItems, Scorer, next_items, next_values
from tasks.evaluation.ranking import Seen, tie_order

N_ITEMS = 12


def scores_after(user: int, prefix: list[int]) -> NDArray[np.float32]:
    """Scores that depend on the user and the prefix alone, with many ties."""
    seed = [user, len(prefix), *prefix]
    return np.random.default_rng(seed).integers(0, 6, N_ITEMS).astype(np.float32)


def scorer(sequences: Sequences) -> torch.Tensor:
    rows = [
        scores_after(int(user), sequences.items[start : start + end + 1].tolist())
        for user, start, length in zip(sequences.users, sequences.indptr, sequences.lengths, strict=False)
        for end in range(length)
    ]
    return torch.from_numpy(np.stack(rows))


def random_sequences(rng: np.random.Generator, n_users: int) -> Sequences:
    lengths = rng.integers(1, 7, n_users)
    lengths[0] = 2  # at least one example
    users = np.repeat(rng.permutation(n_users), lengths).astype(np.int32)
    return Sequences.from_events(users, rng.integers(0, N_ITEMS, len(users)).astype(np.int32))


def random_before(rng: np.random.Generator, n_users: int) -> Seen:
    users, items = rng.integers(0, n_users, 2 * n_users), rng.integers(0, N_ITEMS // 3, 2 * n_users)
    return Seen.from_pairs(users.astype(np.int32), items.astype(np.int32), n_users)


def slow(sequences: Sequences, k: int, order: NDArray[np.int64], had: dict[int, set[int]] | None) -> list[Any]:
    """(user, position, best items, target, counted) of every example."""
    metrics = []
    for row, user in enumerate(sequences.users.tolist()):
        items = sequences.items[sequences.indptr[row] : sequences.indptr[row + 1]].tolist()
        for position in range(len(items) - 1):
            prefix, target = items[: position + 1], items[position + 1]
            hidden = set() if had is None else had[user] | set(prefix)
            scores = scores_after(user, prefix)
            best = sorted(set(range(N_ITEMS)) - hidden, key=lambda item: (-scores[item], order[item]))[:k]
            metrics.append((user, position, best, target, target not in hidden))
    return metrics


@given(seed=st.integers(0, 2**32 - 1), n_users=st.integers(1, 20), new=st.booleans())
def test_it_equals_a_slow_loop(seed: int, n_users: int, new: bool) -> None:
    rng = np.random.default_rng(seed)
    sequences, order = random_sequences(rng, n_users), tie_order(N_ITEMS, 3)
    before = random_before(rng, n_users)
    had = {user: set(before.items[before.indptr[user] : before.indptr[user + 1]].tolist()) for user in range(n_users)}
    ranked = next_items(scorer, sequences, 2, order, before if new else None)
    columns = (ranked.users, ranked.positions, ranked.items, ranked.targets, ranked.counted)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == slow(
        sequences, 2, order, had if new else None
    )


def test_batches_do_not_show() -> None:
    rng = np.random.default_rng(0)
    sequences, order = random_sequences(rng, 2 * BATCH + 3), tie_order(N_ITEMS, 3)
    full = next_items(scorer, sequences, 3, order)
    halves = [next_items(scorer, part, 3, order) for part in sequences.batches(BATCH // 2)]
    assert np.array_equal(full.items, np.concatenate([half.items for half in halves]))
    assert np.array_equal(full.scores, np.concatenate([half.scores for half in halves]))


def test_metrics_equal_those_of_scikit_learn() -> None:
    """Over the whole ranking, MRR is its average precision: each example has one right item."""
    ranked = next_items(scorer, random_sequences(np.random.default_rng(1), 40), N_ITEMS, tie_order(N_ITEMS, 0))
    actual = means(next_values(ranked, [1, 5, N_ITEMS])[1])
    scores = np.empty(ranked.items.shape)
    np.put_along_axis(scores, ranked.items.astype(np.int64), -np.arange(N_ITEMS)[None], axis=1)
    for k in (1, 5):
        expected = top_k_accuracy_score(ranked.targets, scores, k=k, labels=range(N_ITEMS))
        assert actual["recall"][k] == pytest.approx(expected)
    right = np.eye(N_ITEMS)[ranked.targets]
    assert actual["mrr"][N_ITEMS] == pytest.approx(label_ranking_average_precision_score(right, scores))
    assert actual["mrr"][5] == pytest.approx(np.mean([1 / place if place <= 5 else 0 for place in places(ranked)]))


def places(ranked: NextItems) -> list[int]:
    """Rank of the right item of every example, from 1."""
    return [row.index(target) + 1 for row, target in zip(ranked.items.tolist(), ranked.targets.tolist(), strict=True)]


def test_examples_that_do_not_count_decide_nothing() -> None:
    rng = np.random.default_rng(2)
    ranked = next_items(scorer, random_sequences(rng, 30), 5, tie_order(N_ITEMS, 0))
    counted = rng.random(len(ranked.users)) < 0.5
    kept = [getattr(ranked, name)[counted] for name in ("users", "positions", "items", "scores", "targets", "counted")]
    some = NextItems(ranked.users, ranked.positions, ranked.items, ranked.scores, ranked.targets, counted)
    first, second = (means(next_values(each, [1, 5])[1]) for each in (some, NextItems(*kept)))
    assert first == second
    with pytest.raises(ValueError, match=r"1\.\.5"):
        next_values(ranked, [6])


def test_scores_that_are_not_finite_are_refused() -> None:
    nothing: Scorer = lambda sequences: torch.full((sequences.n_events, N_ITEMS), float("nan"))  # noqa: E731
    with pytest.raises(DivergenceError, match="finite"):
        next_items(nothing, random_sequences(np.random.default_rng(0), 3), 2, tie_order(N_ITEMS, 0))
