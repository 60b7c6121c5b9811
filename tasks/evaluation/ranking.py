"""Ranking every item, or a positive among sampled negatives, and what the rankings are worth (docs/methods.md §8).

Ties are broken by a rule that knows nothing of the truth: in the full protocol by one fixed random order of the
items, in the sampled protocol uniformly at random. A scorer that cannot tell items apart scores like a random one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.errors import DataError, DivergenceError
from tasks.core.hashing import Uniforms
from tasks.evaluation.checks import PADDING, require_ids, require_lists
from tasks.evaluation.metrics import Values, ranking_values

if TYPE_CHECKING:
    import torch

MEASURED = ("hit", "ndcg", "recall", "mrr")
"""What suites measure of full rankings."""
POSITIVES = 1 << 16
"""For which negatives are drawn at once: 200 MB where each has a hundred."""
Scorer = Callable[[NDArray[np.int32]], "torch.Tensor"]
"""(batch,) user ids -> (batch, n_items) float32 scores, higher is better."""


@dataclass(frozen=True)
class Seen:
    """The items of every user, as compressed sparse rows: those to leave out of a ranking, or those to be found.

    indptr: (n_users + 1,) int64, where each user's items begin and end in `items`.
    items: (n_pairs,) int32, ascending and distinct within a user.

    Raises:
        ValueError: they are not such.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Refuse what would be searched in vain or counted twice."""
        require_ids("items", self.items, 2**31)
        ends = self.indptr
        if not len(ends) or ends[0] or ends[-1] != len(self.items) or (np.diff(ends) < 0).any():
            raise ValueError(f"indptr must ascend from 0 to the number of items, {len(self.items)}")
        ascends = np.diff(self.items) > 0
        ascends[ends[(ends > 0) & (ends < len(self.items))] - 1] = True  # another user's
        if not ascends.all():
            raise ValueError(f"items of each user must ascend and differ; item {self.items[1:][~ascends][0]} does not")

    @classmethod
    def from_pairs(cls, users: NDArray[np.integer], items: NDArray[np.integer], n_users: int) -> Self:
        """Collect (user, item) pairs in any order; a repeated pair counts once.

        Args:
            users, items: (n_pairs,) ids from 0.

        Raises:
            ValueError: the arrays differ in length, or an id is negative or not below `n_users`.
        """
        if len(users) != len(items):
            raise ValueError(f"{len(users)} users next to {len(items)} items")
        require_ids("users", users, n_users)
        require_ids("items", items, 2**31)
        order = np.lexsort((items, users))
        user, item = users[order].astype(np.int64), items[order].astype(np.int32)
        new = np.ones(len(user), bool)
        new[1:] = (user[1:] != user[:-1]) | (item[1:] != item[:-1])
        indptr = np.zeros(n_users + 1, np.int64)
        np.cumsum(np.bincount(user[new], minlength=n_users), out=indptr[1:])
        return cls(indptr, item[new])

    @classmethod
    def none(cls, n_users: int) -> Self:
        """No item of any user."""
        return cls(np.zeros(n_users + 1, np.int64), np.empty(0, np.int32))

    @property
    def n_users(self) -> int:
        """How many users there are, those without an item counted."""
        return len(self.indptr) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """(n_users,) number of items of each user."""
        return np.diff(self.indptr)

    def places(self, users: NDArray[np.integer]) -> NDArray[np.int64]:
        """Where the items of some users stand in `items`, a user's after another's: (n_pairs of these users,)."""
        counts = self.indptr[users + 1] - self.indptr[users]
        ends = np.cumsum(counts)
        n_pairs = int(ends[-1]) if len(ends) else 0
        return np.arange(n_pairs) + np.repeat(self.indptr[users] - (ends - counts), counts)  # type: ignore[no-any-return]  # numpy's types say Any here

    def pairs(self, users: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Items of some users: (row, item), where row is the position in `users`; both (n_pairs of these users,)."""
        counts = self.indptr[users + 1] - self.indptr[users]
        return np.repeat(np.arange(len(users)), counts), self.items[self.places(users)]

    def contains(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Whether each (user, item) is one of the pairs; `users` and `items` broadcast against each other.

        Args:
            users: (n,) next to items (n,), or (n, 1) next to lists.
            items: (n,), or lists (n, K) of distinct items, padded with -1, which is never a hit.

        Raises:
            ValueError: an id that is out of range, an item that a list holds more than once, or other shapes.
        """
        require_ids("users", users, self.n_users)
        if users.shape not in (items.shape, (*items.shape[:1], 1)):
            raise ValueError(f"users of shape {users.shape} do not fit items of shape {items.shape}")
        require_ids("items", items, 2**31, PADDING)
        require_lists(items[..., None] if items.ndim == 1 else items)
        if not len(self.items):
            return np.zeros(np.broadcast_shapes(users.shape, items.shape), bool)
        stride = int(max(self.items.max(), items.max(initial=0))) + 1
        keys = np.repeat(np.arange(self.n_users), self.counts) * stride + self.items
        wanted = users.astype(np.int64) * stride + items
        equal = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
        return equal & (items != PADDING)  # type: ignore[no-any-return]  # numpy's types say Any here


def tie_order(n_items: int, seed: int) -> NDArray[np.int64]:
    """(n_items,) a fixed random permutation: of two items with equal scores, the lower value goes first."""
    return np.random.default_rng([seed, *b"order"]).permutation(n_items)


def item_order(draws: Uniforms) -> NDArray[np.int64]:
    """(n_items,) a `tie_order` by published ids: which of two items goes first does not depend on others."""
    return draws.of_items("order").argsort().argsort()


def top_k(
    score: Scorer,
    users: NDArray[np.int32],
    seen: Seen,
    k: int,
    tie_order: NDArray[np.int64],
    batch: int = 512,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The `k` best unseen items of each user, best first; equal scores in the order of `tie_order`.

    Args:
        users: (n,) ids of the users to rank for.
        seen: the items to leave out, for every user id.
        tie_order: (n_items,) see `tie_order`.
        batch: users scored at once; (batch, n_items) float32 is what is held in memory.

    Returns:
        items: (n, k) int32, distinct and unseen; scores: (n, k) float32, descending.

    Raises:
        DataError: a user has fewer than `k` unseen items.
        DivergenceError: one of the k best scores is NaN or infinite.
        ValueError: a user that `seen` does not have, a seen item that `tie_order` does not have, k below 1, or a
            `tie_order` that is no permutation.
    """
    import torch  # which the scorer has brought

    n_items = len(tie_order)
    _check_task(users, seen, k, tie_order)
    items, scores = np.empty((len(users), k), np.int32), np.empty((len(users), k), np.float32)
    table, order = torch.empty(0), torch.empty(0)
    for start in range(0, len(users), batch):
        part = users[start : start + batch]
        scored = score(part).detach()
        if scored.shape != (len(part), n_items):
            raise ValueError(f"the scorer gave {tuple(scored.shape)} scores for {len(part)} users × {n_items} items")
        if not start:
            # One column more than items, so that there always is a value k + 1 to compare value k with.
            table = torch.full((len(part), n_items + 1), -torch.inf, device=scored.device)
            order = torch.as_tensor(tie_order, device=scored.device)
        table = table[: len(part)]
        table[:, :n_items] = scored
        row, item = seen.pairs(part)
        table.view(-1)[torch.from_numpy(row * (n_items + 1) + item).to(table.device)] = -torch.inf
        best, value = _top_k(table, k, order)
        if not torch.isfinite(value).all():
            worst = int(part[int((~torch.isfinite(value)).any(1).nonzero()[0])])
            raise DivergenceError(
                f"the scores of user {worst} are not finite; the model has diverged, lower its learning rate"
            )
        items[start : start + len(part)] = best.cpu().numpy()
        scores[start : start + len(part)] = value.cpu().numpy()
    return items, scores


def _check_task(users: NDArray[np.int32], seen: Seen, k: int, tie_order: NDArray[np.int64]) -> None:
    """The errors of `top_k` that do not depend on scores."""
    n_items = len(tie_order)
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")
    require_ids("users", users, seen.n_users)
    require_ids("seen items", seen.items, n_items)
    if not np.array_equal(np.sort(tie_order), np.arange(n_items)):
        raise ValueError("tie_order must hold every item once")
    unseen = n_items - seen.counts[users]
    if len(users) and unseen.min() < k:
        worst = int(unseen.argmin())
        raise DataError(
            f"user {users[worst]} has only {unseen[worst]} of {n_items} items left to recommend, fewer than k = {k}; "
            f"lower the largest evaluation k or drop users with so many ratings ({(unseen < k).sum()} such users)"
        )


def _top_k(table: torch.Tensor, k: int, order: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Columns and values of the k largest of each row of (n, n_items + 1) scores, equal ones by `order`.

    `torch.topk` takes any of several equal items and leaves them in any order. Both show in equal neighbours among
    the k + 1 largest values; only rows that have some are looked at again.
    """
    value, item = table.topk(k + 1, dim=1)
    equal = value[:, 1:] == value[:, :-1]
    value, item = value[:, :k], item[:, :k]
    if (cut := equal[:, -1].nonzero()[:, 0]).numel():
        item[cut] = _tied_choice(table[cut, : len(order)], value[cut, -1:], k, order)
    if (tied := equal.any(1).nonzero()[:, 0]).numel():
        by_order = item[tied].gather(1, order[item[tied]].argsort(1))
        value[tied], rank = table[tied].gather(1, by_order).sort(dim=1, descending=True, stable=True)
        item[tied] = by_order.gather(1, rank)
    return item, value


def _tied_choice(table: torch.Tensor, smallest: torch.Tensor, k: int, order: torch.Tensor) -> torch.Tensor:
    """Of each row: all columns above `smallest` (fewer than k) and, of those equal to it, the first by `order`."""
    import torch

    n_items = table.shape[1]
    key = torch.where(table == smallest, (n_items - order).to(torch.int32), 0)
    return key.masked_fill_(table > smallest, 2 * n_items).topk(k, dim=1).indices


def sampled_negatives(
    users: NDArray[np.int32], items: NDArray[np.int32], seen_all: Seen, n_negatives: int, draws: Uniforms
) -> NDArray[np.int32]:
    """For each held-out positive, `n_negatives` distinct items its user never interacted with, uniformly.

    Ranks among the unobserved items are drawn without repeats by Floyd's algorithm (Bentley & Floyd 1987), one step for
    all positives at once, then turned into items.

    Args:
        users, items: (n_positives,) the held-out positives.
        seen_all: all items of every user: training, validation and test.
        draws: a positive's depend on its user and item alone.

    Returns:
        (n_positives, n_negatives) int32.

    Raises:
        DataError: a user has fewer than `n_negatives` unobserved items.
    """
    n_items = len(draws.items)
    free = (n_items - seen_all.counts)[users]
    if len(users) and free.min() < n_negatives:
        worst = int(free.argmin())
        raise DataError(
            f"user {users[worst]} has only {free[worst]} unobserved items, fewer than {n_negatives} negatives; "
            "lower evaluation.negatives in params.yaml"
        )
    # An item that follows j seen ones has rank item - j among the unobserved, so a rank moves up by the number of
    # seen items whose own `item - j` does not exceed it.
    owner = np.repeat(np.arange(seen_all.n_users), seen_all.counts)
    before = owner * (n_items + 1) + seen_all.items - (np.arange(len(owner)) - seen_all.indptr[owner])
    negatives = np.empty((len(users), n_negatives), np.int32)
    for start in range(0, len(users), POSITIVES):
        part = slice(start, start + POSITIVES)
        chosen = np.empty((len(users[part]), n_negatives), np.int64)
        for step in range(n_negatives):
            last = free[part] - n_negatives + step
            uniform = draws.of_pairs("negatives", users[part], items[part], np.array([step]))
            draw = (uniform * (last + 1)).astype(np.int64)
            repeated = (chosen[:, :step] == draw[:, None]).any(axis=1)
            chosen[:, step] = np.where(repeated, last, draw)
        wanted = users[part].astype(np.int64)[:, None] * (n_items + 1) + chosen
        moved = np.searchsorted(before, wanted, side="right") - seen_all.indptr[users[part]][:, None]
        negatives[part] = chosen + moved
    return negatives


def sampled_ranks(
    score: Scorer,
    users: NDArray[np.int32],
    positives: NDArray[np.int32],
    negatives: NDArray[np.int32],
    draws: Uniforms,
    batch: int = 512,
) -> NDArray[np.int64]:
    """0-based rank of each positive among its negatives; a rank among equals is uniformly random.

    Args:
        users, positives: (n_positives,) the held-out interactions.
        negatives: (n_positives, n_negatives) see `sampled_negatives`.
        draws: of the random ranks among equals.
        batch: users scored at once.

    Returns:
        (n_positives,) int64 in 0..n_negatives: #(negatives above) + ⌊u·(#(negatives equal) + 1)⌋, u ~ U[0, 1).

    Raises:
        DivergenceError: a score is NaN.
    """
    import torch

    order = np.lexsort((positives, users))
    candidates = np.concatenate([positives[:, None], negatives], axis=1)[order]
    distinct, row = np.unique(users[order], return_inverse=True)
    above, equal = np.empty(len(users), np.int64), np.empty(len(users), np.int64)
    for start in range(0, len(distinct), batch):
        first, last = np.searchsorted(row, [start, start + batch])
        scored = score(distinct[start : start + batch]).detach()
        local = torch.from_numpy(row[first:last] - start).to(scored.device)
        positive = scored[local[:, None], torch.from_numpy(candidates[first:last]).to(scored.device).long()]
        if positive.isnan().any():
            worst = distinct[row[first + int(positive.isnan().any(1).nonzero()[0])]]
            raise DivergenceError(
                f"the scores of user {worst} are not numbers; the model has diverged, lower its learning rate"
            )
        above[first:last] = (positive[:, 1:] > positive[:, :1]).sum(1).cpu().numpy()
        equal[first:last] = (positive[:, 1:] == positive[:, :1]).sum(1).cpu().numpy()
    ranks = np.empty(len(users), np.int64)
    ranks[order] = above + (draws.of_pairs("rank", users, positives)[order] * (equal + 1)).astype(np.int64)
    return ranks


def ranking_table(items: NDArray[np.int32], scores: NDArray[np.float32], **of: NDArray[np.int32]) -> pl.DataFrame:
    """Rankings as a table: what each is of, rank from 1, item and score.

    Args:
        items, scores: (n_rankings, K), best first.
        of: column -> (n_rankings,), such as the user.
    """
    n, k = items.shape
    columns = {name: np.repeat(values, k) for name, values in of.items()}
    rank = np.tile(np.arange(1, k + 1, dtype=np.int32), n)
    return pl.DataFrame(columns | {"rank": rank, "item": items.ravel(), "score": scores.ravel()})


def full_values(
    recommended: NDArray[np.int32],
    test: Seen,
    ks: Sequence[int],
    *,
    recall: Literal["relevant", "reachable"] = "relevant",
) -> tuple[NDArray[np.int64], Values]:
    """Hit, NDCG, recall and MRR at each cut-off: (n,) users with held-out items, and (n,) values of each metric.

    Args:
        recommended: (n_users, K) row u is the ranking for user u, best first.
        test: held-out items of every user.
    """
    if len(recommended) != test.n_users:
        raise ValueError(f"{len(recommended)} rankings for {test.n_users} users")
    users = np.flatnonzero(test.counts)
    hits = test.contains(users[:, None], recommended[users])
    values = ranking_values(hits, test.counts[users], ks, recall=recall)
    return users, {metric: values[metric] for metric in MEASURED}
