"""Signals of membership in lists: how well a list fits an item, and how well it fits a history.

Lists hold no probabilities. What stands for them: the reciprocal rank of an item; how similar items are to those of a
list, by the cosine of the sets of users who have them. Sets are taken over all known data, trained on or public, so a
member's row and a non-member's count alike.

Systems mostly leave out of a list what its user was trained on, so a list has fewer items like those; others leave out
nothing. An attack must not measure either. So with every target another item of its user is left out of the list
(`stand_ins`): of the two one was trained on and one was not. What is left are the first K - 2 items that are neither:
under a random split the same law for both, regardless of the system, as long as it trained on neither.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tasks.attacks.membership import Floats
from tasks.external.inputs import NOBODY, Ints, Pairs, Shadow, keys_of, listed, row

MOST_ITEMS = 8_000
"""Items of which similarities are computed, the most popular; the others are similar to nothing."""
PRIOR = 10.0
"""Made-up users by whom associations are shrunk."""
BLOCK = 4_096
"""Pairs at a time."""


class Weights:
    """A weight for every pair of the `MOST_ITEMS` most popular items; 0 for an item with itself and for all others."""

    def __init__(self, kept: Ints, weights: NDArray[np.float32], n_items: int) -> None:
        """weights: (len(kept), len(kept)) of the items `kept`."""
        # a row and a column of zeros for all other items, and for where a list has ended
        self._weights = np.zeros((len(kept) + 1, len(kept) + 1), np.float32)
        self._weights[:-1, :-1] = weights
        np.fill_diagonal(self._weights, 0)
        self._index = np.full(n_items + 1, len(kept))  # the last for NOBODY = -1
        self._index[kept] = np.arange(len(kept))

    def __call__(self, first: Ints, second: Ints) -> NDArray[np.float32]:
        """Weights of pairs; the shapes are broadcast."""
        return self._weights[self._index[first], self._index[second]]


def most_popular(matrix: csr_array) -> Ints:
    """The `MOST_ITEMS` items that most users have, in order of id."""
    counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    return np.sort(np.argsort(-counts, kind="stable")[:MOST_ITEMS])


def cosines(matrix: csr_array) -> Weights:
    """Similarity of items: cosines of the columns of a matrix of 0 and 1."""
    kept = most_popular(matrix)
    columns = matrix[:, kept].astype(np.float32)
    norms = np.sqrt(np.maximum(columns.sum(axis=0), 1)).astype(np.float32)
    return Weights(kept, (columns.T @ columns).toarray() / norms / norms[:, None], matrix.shape[1])


def associations(matrix: csr_array, shadows: Sequence[Shadow]) -> Weights:
    """What being trained on item i does to lists, by shadow runs: log P(j is listed | i in) / P(j is listed | i out).

    Both are counted over users who have i, trained on in that run or not, and shrunk to how often j is listed at all.
    """
    kept, n_items = most_popular(matrix), matrix.shape[1]
    users, keys = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), keys_of(matrix)
    counts = [np.zeros((len(kept), len(kept)), np.float32) for _ in range(2)]
    having = [np.zeros(len(kept)) for _ in range(2)]
    total, n_lists = np.zeros(len(kept)), 0
    for run in shadows:
        lists, has_list = listed(run.lists, n_items)[:, kept], run.lists[:, 0] != NOBODY
        total += lists.sum(axis=0)
        n_lists += has_list.sum()
        trained = np.isin(keys, run.keys)
        for side, is_in in enumerate((trained, ~trained)):
            chosen = is_in & has_list[users]
            has = Pairs(users[chosen], matrix.indices[chosen]).matrix(*matrix.shape)[:, kept]
            counts[side] += (has.T @ lists).toarray()
            having[side] += has.sum(axis=0)
    expected = (PRIOR * (total + 1) / (n_lists + 1)).astype(np.float32)
    logs = [np.log((count + expected) / (n[:, None] + PRIOR)) for count, n in zip(counts, having, strict=True)]
    return Weights(kept, (logs[0] - logs[1]).astype(np.float32), n_items)


def list_similarity(
    similarity: Weights, lists: Ints, pairs: Pairs, left_out: Ints, closest: int | None = None
) -> Floats:
    """Mean similarity of each pair's item to the first K - m items of the user's list; NaN without a list.

    Weights are 1 / log2(1 + rank).

    Args:
        left_out: (n, m) the items of each pair's list that are left out (`stand_ins`).
        closest: so many of the most similar items alone, with equal weights; None: all.
    """
    result = np.empty(len(pairs.users))
    ranks = np.arange(max(lists.shape[1] - left_out.shape[1], 0))
    for start in range(0, len(result), BLOCK):
        rows = slice(start, start + BLOCK)
        listed, items = lists[pairs.users[rows]], pairs.items[rows]
        lengths = (listed != NOBODY).sum(axis=1)
        dropped = (listed[:, :, None] == left_out[rows, None]).any(axis=2)
        kept = np.take_along_axis(listed, np.argsort(dropped, axis=1, kind="stable")[:, : len(ranks)], axis=1)
        kept[ranks >= lengths[:, None] - left_out.shape[1]] = NOBODY
        cosines = similarity(items[:, None], kept)
        if closest is None:
            weights = (kept != NOBODY) / np.log2(ranks + 2)
            mean = (cosines * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        else:
            mean = np.sort(cosines, axis=1)[:, -closest:].mean(axis=1) if cosines.shape[1] else np.zeros(len(items))
        result[rows] = np.where(lengths > 0, mean, np.nan)
    return result


def stand_ins(matrix: csr_array, trained: Ints, pairs: Pairs, rng: np.random.Generator) -> Ints:
    """(n, 2) what is left out of each pair's list: its item, and another one of its user's.

    If the run was trained on the one it was not on the other, where the user has such an item; else any other item.

    Args:
        matrix: (n_users, n_items) all that is known of users.
        trained: keys, user × n_items + item, of what the run was trained on, sorted.
    """
    n_items, owners = matrix.shape[1], pairs.users
    keys, targets = keys_of(matrix), pairs.keys(n_items)
    inside, is_in = np.isin(keys, trained), np.isin(targets, trained)
    uniform, result = rng.random(len(owners)), pairs.items.copy()
    for kind in (True, False):
        candidates = keys[inside == kind]
        starts, ends = (np.searchsorted(candidates, (owners + after) * n_items) for after in (0, 1))
        rows = np.flatnonzero((is_in != kind) & (starts < ends))
        result[rows] = candidates[(starts + uniform * (ends - starts)).astype(np.int64)[rows]] % n_items
    first, last = matrix.indptr[owners].astype(np.int64), matrix.indptr[owners + 1]
    other = first + (uniform * (last - first - 1)).astype(np.int64)
    other += other >= np.searchsorted(keys, targets)
    rows = np.flatnonzero((result == pairs.items) & (last - first > 1))
    result[rows] = keys[other[rows]] % n_items
    return np.column_stack([pairs.items, result])


def reciprocal_rank(lists: Ints, pairs: Pairs) -> Floats:
    """1 / rank of each pair's item in the user's list, 0 where it is not in it, NaN without a list."""
    listed = lists[pairs.users]
    same = listed == pairs.items[:, None]
    return np.where(listed[:, 0] == NOBODY, np.nan, np.where(same.any(axis=1), 1 / (1.0 + same.argmax(axis=1)), 0.0))


def history_similarity(similarity: Weights, trained: csr_array, pairs: Pairs, rng: np.random.Generator) -> Floats:
    """Mean similarity of each pair's item to what its user was trained on besides: the control that sees no list.

    Of an item that was held back one random item of the history is left out, so that both see as many.
    """
    result = np.zeros(len(pairs.users))
    for n, (user, item) in enumerate(zip(pairs.users, pairs.items, strict=True)):
        history = row(trained, user)
        if len(history) > 1:
            total = float(similarity(item, history).sum())
            if item not in history:
                total -= float(similarity(item, rng.choice(history)))
            result[n] = total / (len(history) - 1)
    return result


def own_share(lists: Ints, histories: csr_array, users: Ints) -> Floats:
    """Share of each user's list that is in the history; NaN without a list."""
    repeated = listed(lists[users], histories.shape[1]).multiply(histories[users])
    return np.asarray(repeated.sum(axis=1) / lengths(lists, users), np.float64)


def lengths(lists: Ints, users: Ints) -> Floats:
    """(len(users),) items of each list; NaN without one."""
    counts = (lists[users] != NOBODY).sum(axis=1)
    return np.where(counts > 0, counts, np.nan)


def user_similarity(similarity: Weights, lists: Ints, histories: csr_array, users: Ints) -> Floats:
    """Mean similarity of the items of each user's list that are new to the history to those of it; NaN without a list.

    What a list repeats of the history is left out: `own_share` measures that.
    """
    result = np.where(np.isnan(lengths(lists, users)), np.nan, 0.0)
    for n, user in enumerate(users):
        history = row(histories, user)
        new = lists[user][~np.isin(lists[user], [*history, NOBODY])]
        if len(new):
            result[n] = similarity(new[:, None], history[None, :]).mean()
    return result


def coherence(similarity: Weights, histories: csr_array, users: Ints) -> Floats:
    """Mean similarity of the items of each user's history to one another: what a user shows without a list."""
    result = np.zeros(len(users))
    for n, user in enumerate(users):
        history = row(histories, user)
        if len(history) > 1:
            total = float(similarity(history[:, None], history[None, :]).sum())
            result[n] = total / (len(history) * (len(history) - 1))
    return result
