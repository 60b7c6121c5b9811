"""The numbers of a ranking or of a classifier, as pure functions of what was hit and what was guessed.

Sources: docs/methods.md §8; NDCG with binary gain and log2 discount as in Järvelin & Kekäläinen (2002).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.checks import PADDING, require_ids, require_lists

Record = dict[str, Any]
"""A metric without what it is of: `metric`, `k` (None where it has no cut-off) and `value`."""
ByCutoff = dict[str, dict[int, float]]
"""Metric name -> cut-off k -> value."""
Values = dict[str, dict[int, NDArray[Any]]]
"""Metric name -> cut-off k -> (n_examples,) values, bool or float64, whose mean is the metric."""


class Measured(NamedTuple):
    """One metric of one run, before it is averaged over examples (users, held-out positives, prefixes or ratings)."""

    metric: str
    k: int | None
    """Cut-off; None where it has none."""
    users: NDArray[np.integer]
    """(n_examples,) the user of each example."""
    values: NDArray[Any]
    """(n_examples,) bool or float64."""


def means(values: Values) -> ByCutoff:
    """The metrics that values of examples are of."""
    return {metric: {k: float(each.mean()) for k, each in by_k.items()} for metric, by_k in values.items()}


def ranking_metrics(
    hits: NDArray[np.bool_],
    n_relevant: NDArray[np.integer],
    ks: Sequence[int],
    *,
    recall: Literal["relevant", "reachable"] = "relevant",
) -> ByCutoff:
    """Hit, NDCG, recall, MRR, precision and MAP at each cut-off, averaged over users (docs/methods.md §8).

    Precision is hits / k. MAP sums the precision at the rank of each hit, and divides as recall does.

    Args:
        hits: (n_users, K) whether the item at rank 1..K is one of the user's held-out items.
        n_relevant: (n_users,) number of held-out items of each user, at least 1.
        ks: cut-offs, each in 1..K.
        recall: what the hits are divided by: `relevant` all held-out items, `reachable` min(held-out items, k), as
            DP-VAE does.

    Raises:
        ValueError: a cut-off outside 1..K, no users, hits that are not 0 or 1, a user without held-out items or with
            fewer than hits, or another word for `recall`.
    """
    return means(ranking_values(hits, n_relevant, ks, recall=recall))


def ranking_values(
    hits: NDArray[np.bool_],
    n_relevant: NDArray[np.integer],
    ks: Sequence[int],
    *,
    recall: Literal["relevant", "reachable"] = "relevant",
) -> Values:
    """What `ranking_metrics` averages, and its errors: (n_users,) values of each metric and cut-off."""
    hits, n_relevant = np.asarray(hits), np.asarray(n_relevant)
    if hits.ndim != 2 or n_relevant.shape != hits.shape[:1] or not len(hits):
        raise ValueError(f"hits of shape {hits.shape} need one or more users, not {n_relevant.shape} of n_relevant")
    require_ids("n_relevant", n_relevant, first=1)
    if hits.dtype != np.bool_ and not np.isin(hits, (0, 1)).all():
        raise ValueError("hits must be 0 or 1: relevance is not graded")
    if (impossible := np.flatnonzero(hits.sum(axis=1) > n_relevant)).size:
        user = impossible[0]
        raise ValueError(f"user {user} has {hits[user].sum()} hits, but {n_relevant[user]} held-out items")
    if recall not in ("relevant", "reachable"):
        raise ValueError(f"recall must be of what is 'relevant' or 'reachable', not {recall!r}")
    length = hits.shape[1]
    _check_cutoffs(ks, length)
    discount = 1.0 / np.log2(np.arange(2, length + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discount)])
    gain = np.cumsum(hits * discount, axis=1)
    hits_within = np.cumsum(hits, axis=1)
    first = np.where(hits.any(axis=1), hits.argmax(axis=1), length)
    precision = np.cumsum(hits * hits_within / np.arange(1, length + 1), axis=1)
    result: Values = {"hit": {}, "ndcg": {}, "recall": {}, "mrr": {}, "precision": {}, "map": {}}
    for k in ks:
        reachable = np.minimum(n_relevant, k)
        result["hit"][k] = hits_within[:, k - 1] > 0
        result["ndcg"][k] = gain[:, k - 1] / ideal[reachable]
        wanted = n_relevant if recall == "relevant" else reachable
        result["recall"][k] = hits_within[:, k - 1] / wanted
        result["mrr"][k] = np.where(first < k, 1.0 / (first + 1), 0.0)
        result["precision"][k] = hits_within[:, k - 1] / k
        result["map"][k] = precision[:, k - 1] / wanted
    return result


def catalogue_metrics(
    recommended: NDArray[np.integer], counts: NDArray[np.integer], n_users: int, ks: Sequence[int]
) -> ByCutoff:
    """What lists make of the catalogue, at each cut-off.

    `coverage`: share of the items that are in a list. `gini`: of how often each item is listed, from 0 (all as often)
    towards 1. `popularity` (ARP): training users of a listed item, averaged within lists, then over them. `novelty`:
    -log2 of the share of users who trained on a listed item, averaged alike; an item of no user counts as one of one.

    Sources: Vargas and Castells, "Rank and relevance in novelty and diversity metrics" (RecSys 2011); Yin et al.,
    "Challenging the long tail recommendation" (VLDB 2012).

    Args:
        recommended: (n_lists, K) items, best first, padded with -1.
        counts: (n_items,) users who have each item in the training data, n_users of them in all.
        ks: cut-offs, each in 1..K.

    Raises:
        ValueError: an item out of range or twice in a list, no list, one without an item or with padding before one, a
            count outside 0..n_users, no users, or a cut-off outside 1..K.
    """
    require_ids("items", recommended, len(counts), PADDING)
    require_lists(recommended)
    require_ids("users", np.asarray(n_users), first=1)
    require_ids("counts", counts, n_users + 1)
    listed = recommended != PADDING
    if listed.ndim != 2 or counts.ndim != 1 or not listed.size:
        raise ValueError(f"lists of shape {recommended.shape} must be one or more, with one count of each item")
    if not listed[:, 0].all() or (listed[:, 1:] > listed[:, :-1]).any():
        raise ValueError("each list must have an item, and be padded at its end")
    _check_cutoffs(ks, recommended.shape[1])
    surprise = -np.log2(np.maximum(counts, 1) / n_users)
    result: ByCutoff = {"coverage": {}, "gini": {}, "popularity": {}, "novelty": {}}
    for k in ks:
        items, shown = recommended[:, :k], listed[:, :k]
        exposure = np.sort(np.bincount(items[shown], minlength=len(counts)))
        ranks = 2 * np.arange(1, len(counts) + 1) - len(counts) - 1
        result["coverage"][k] = float((exposure > 0).mean())
        result["gini"][k] = float((ranks * exposure).sum() / (len(counts) * exposure.sum()))
        for metric, values in (("popularity", counts), ("novelty", surprise)):
            result[metric][k] = float(((values[items] * shown).sum(axis=1) / shown.sum(axis=1)).mean())
    return result


def sampled_metrics(ranks: NDArray[np.integer], ks: Sequence[int]) -> ByCutoff:
    """Hit, NDCG and MRR at each cut-off, averaged over held-out positives (sampled ranking, docs/methods.md §8).

    Args:
        ranks: (n_positives,) 0-based rank of each positive among its own negatives.
        ks: cut-offs, at least 1.

    Raises:
        ValueError: no positives, ranks that are not (n_positives,) integers from 0, or a cut-off below 1.
    """
    return means(sampled_values(ranks, ks))


def sampled_values(ranks: NDArray[np.integer], ks: Sequence[int]) -> Values:
    """What `sampled_metrics` averages, and its errors: (n_positives,) values of each metric and cut-off."""
    _check_cutoffs(ks, None)
    require_ids("ranks", ranks)
    if ranks.ndim != 1 or not len(ranks):
        raise ValueError(f"sampled metrics need one rank of each of one or more positives, not {ranks.shape}")
    gain, reciprocal = 1.0 / np.log2(ranks + 2.0), 1.0 / (ranks + 1.0)
    result: Values = {"hit": {}, "ndcg": {}, "mrr": {}}
    for k in ks:
        within = ranks < k
        result["hit"][k] = within
        result["ndcg"][k] = gain * within
        result["mrr"][k] = reciprocal * within
    return result


def micro_f1(truth: NDArray[np.integer], predicted: NDArray[np.integer]) -> float:
    """Micro-averaged F1. With one label per example it equals accuracy: every error is one false positive and one miss.

    Args:
        truth, predicted: (n_examples,) class of each example.

    Raises:
        ValueError: they differ in shape, there is no example, or a class is no integer from 0.
    """
    for classes in (truth, predicted):
        require_ids("classes", classes)
    if truth.shape != predicted.shape or not truth.size:
        raise ValueError(f"one guess for each of one or more examples is needed: {truth.shape}, {predicted.shape}")
    return float((truth == predicted).mean())


def _check_cutoffs(ks: Sequence[int], length: int | None) -> None:
    require_ids("cut-offs", np.asarray(ks))
    if not ks or min(ks) < 1 or (length is not None and max(ks) > length):
        raise ValueError(f"cut-offs must lie in 1..{length or '∞'}, not {list(ks)}")


def record(metric: str, value: float | np.floating, k: int | None = None) -> Record:
    """One metric."""
    return {"metric": metric, "k": k, "value": float(value)}


def measure(protocol: str, users: NDArray[np.integer], values: Values) -> list[Measured]:
    """Values of examples under one protocol, as `protocol/metric`; users: (n_examples,) the user of each example."""
    return [
        Measured(f"{protocol}/{metric}", k, users, each) for metric, by_k in values.items() for k, each in by_k.items()
    ]


def records(measured: Iterable[Measured]) -> list[Record]:
    """The metrics as records: means over examples."""
    return [record(each.metric, each.values.mean(), each.k) for each in measured]
