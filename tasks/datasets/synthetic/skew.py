"""Who has what in synthetic data: long tails and tastes, drawn in arrays at any scale.

Items lie on strata (a genre, a department, a town). How much a user likes each stratum is the user's taste; within a
stratum what is popular is popular with all. So users times strata is a factor model, which recommenders can learn, and
where taste depends on attributes, interactions give these away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.splits import positions

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_WEIGHT = 2.0**24
"""Weights are whole numbers up to this one: sums of 2^29 of them are exact in float64, on every processor."""
ROUNDS = 4
"""Attempts at drawing distinct items one by one before all items of a user race."""


def scale_size(number: int, scale: float, power: float = 1.0, *, minimum: int = 1) -> int:
    """A size of the published data at another scale: `number` itself at scale 1, never under `minimum`."""
    return max(minimum, round(number * scale**power))


def ids(rng: np.random.Generator, n: int, last: int) -> Ints:
    """n ids from 1 to `last`, ascending, with random gaps; `last` is one of them."""
    missing = rng.choice(max(last, n) - 1, max(last - n, 0), replace=False)
    return np.delete(np.arange(1, max(last, n) + 1), missing)


def long_tail(rng: np.random.Generator, n: int, decay: float, bend: float) -> Floats:
    """Weights of n items in random order, (n,), whole numbers from 1: exp(-decay * x^bend) at rank share x.

    This stretched exponential is the shape of the popularity of films, shops and goods (Laherrère & Sornette, 1998);
    exp(decay) is how many times as popular the first item is as the last.
    """
    share = (np.arange(n) + 0.5) / n
    return np.ceil(rng.permutation(np.exp(-decay * share**bend)) * LARGEST_WEIGHT)


def allot(rng: np.random.Generator, weights: Floats, total: int, maximum: int | Ints, minimum: int = 0) -> Ints:
    """Whole numbers with sum `total`, (n,): `minimum`, and more in proportion to weights as far as `maximum` lets them.

    Raises:
        ValueError: `total` is less than all must have, or more than they may.
    """
    maximum = np.broadcast_to(np.asarray(maximum, dtype=np.int64), weights.shape)
    result = np.minimum(minimum, maximum)
    if not result.sum() <= total <= maximum.sum():
        raise ValueError(f"{len(weights)} with {minimum} to {maximum.max(initial=0)} each cannot have {total} in all")
    while missing := total - int(result.sum()):
        below = np.flatnonzero(result < maximum)
        share = np.cumsum(weights[below]) / max(weights[below].sum(), 1e-9)
        more = np.diff(np.round(missing * share), prepend=0).astype(np.int64)
        more = np.minimum(more, (maximum - result)[below])
        if not more.any():
            below, more = rng.permutation(below)[:missing], np.int64(1)
        result[below] += more
    return result


def activity(
    rng: np.random.Generator, propensity: Floats, total: int, *, minimum: int, maximum: int, sigma: float
) -> Ints:
    """How often each user acts, (n,), with sum `total`: `minimum` and a log-normal surplus, cut at `maximum`.

    Args:
        propensity: (n,); who has more of it acts more.
        sigma: of the surplus.
    """
    surplus = np.round(rng.lognormal(0, sigma, len(propensity)), 6) + 1e-6
    result = np.empty(len(propensity), dtype=np.int64)
    result[np.argsort(propensity, kind="stable")] = np.sort(allot(rng, surplus, total, maximum, minimum))
    return result


def choose(rng: np.random.Generator, weights: NDArray[np.floating], rows: Ints) -> Ints:
    """For each of `rows` one column of `weights`, in proportion to them; a row may be named often."""
    columns = weights.shape[1]
    ends = np.cumsum(np.ceil(weights / weights.max(axis=1, keepdims=True) * LARGEST_WEIGHT))
    starts = np.concatenate([[0.0], ends[columns - 1 :: columns]])
    return _draw_between(rng, ends, starts[rows], starts[rows + 1]) - rows * columns


def pick(rng: np.random.Generator, shares: Sequence[float], n: int) -> Ints:
    """n numbers from 0, in proportion to shares."""
    return choose(rng, np.array([shares], dtype=float), np.zeros(n, dtype=np.int64))


def _draw_between(rng: np.random.Generator, ends: Floats, low: Floats, high: Floats) -> Ints:
    """Positions in a running sum, drawn between two of its values."""
    width = high - low
    point = low + np.minimum(np.floor(rng.random(len(low)) * width), width - 1)
    return np.searchsorted(ends, point, side="right")


class Strata:
    """n_items items, each in one of n_strata strata; row i of `weight` and `stratum` is item i."""

    def __init__(self, stratum: Ints, weight: Floats, n_strata: int) -> None:
        """stratum: (n_items,); weight: (n_items,) popularity, whole numbers from 1."""
        self.stratum, self.weight, self.n_strata = stratum, weight, n_strata
        self._order = np.argsort(stratum, kind="stable")
        self._ends = np.cumsum(weight[self._order])
        self._begins = np.searchsorted(stratum[self._order], np.arange(n_strata + 1))
        self._marks = np.concatenate([[0.0], self._ends])[self._begins]
        self.mass = np.diff(self._marks)
        """(n_strata,) popularity of each stratum; 0 where it is empty."""
        self.sizes = np.diff(self._begins)
        """(n_strata,) items in each stratum."""

    def __len__(self) -> int:
        return len(self.stratum)

    def pick(self, rng: np.random.Generator, strata: Ints) -> Ints:
        """For each of `strata` (none empty) an item in it, in proportion to popularity."""
        return self._order[_draw_between(rng, self._ends, self._marks[strata], self._marks[strata + 1])]

    def deal(self, rng: np.random.Generator, strata: Ints, minimum: int) -> Ints:
        """For each of `strata` an item in it: every item `minimum` times, the others in proportion to popularity.

        strata: each as often as `minimum` times its items, or more.
        """
        order = rng.permutation(len(strata))
        order = order[np.argsort(strata[order], kind="stable")]
        ordered, sizes = strata[order], self.sizes[strata[order]]
        turn = positions(np.bincount(ordered, minlength=self.n_strata))
        due = self._order[self._begins[ordered] + turn % sizes]
        item = np.empty(len(strata), dtype=np.int64)
        item[order] = np.where(turn < minimum * sizes, due, self.pick(rng, ordered))
        return item


def everything_once(
    rng: np.random.Generator, items: Strata, quota: Ints, taste: Callable[[Ints], Floats]
) -> tuple[Ints, Ints]:
    """One user for every item, as (users ascending, items): each user at most `quota` times, the active more often.

    taste: users, ascending -> (n, n_strata) positive; an item's user mostly likes its stratum.
    """
    ticket = np.sort(rng.choice(int(quota.sum()), len(items), replace=False, shuffle=False))
    holder = np.searchsorted(np.cumsum(quota), ticket, side="right")
    users, row = np.unique(holder, return_inverse=True)
    liked = choose(rng, taste(users) * items.sizes, row)
    item = np.empty(len(items), dtype=np.int64)
    shuffled = rng.permutation(len(items))
    item[np.argsort(liked, kind="stable")] = shuffled[np.argsort(items.stratum[shuffled], kind="stable")]
    return holder, item


def draw_pairs(
    rng: np.random.Generator, taste: Floats, items: Strata, quota: Ints, certain: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """Distinct (user, item), users ascending: `quota[u]` of each user without replacement, by taste times popularity.

    A user who is still short of items after some rounds of draws has all items race: each arrives after an exponential
    time, sooner the more it is liked, which is the same law.

    Args:
        taste: (n_users, n_strata) positive.
        quota: (n_users,) at most as many as there are items.
        certain: (users, items) distinct pairs that are among them (`everything_once`).
    """
    n = len(items)
    pairs, short = _first(certain[0] * n + certain[1], n, quota)
    for _ in range(ROUNDS):
        owner = np.repeat(np.arange(len(quota)), np.where(short > 0, short + short // 4 + 4, 0))
        candidates = items.pick(rng, choose(rng, taste * items.mass, owner)) if len(owner) else owner
        pairs, short = _first(np.concatenate([pairs, owner * n + candidates]), n, quota)
    begins = np.searchsorted(pairs, np.arange(len(quota) + 1) * n)
    raced = []
    for user in np.flatnonzero(short):
        arrival = rng.standard_exponential(n) / (taste[user, items.stratum] * items.weight)
        arrival[pairs[begins[user] : begins[user + 1]] % n] = np.inf
        raced.append(user * n + np.argpartition(arrival, short[user] - 1)[: short[user]])
    pairs = np.sort(np.concatenate([pairs, *raced]))
    return pairs // n, pairs % n


def _first(pairs: Ints, n: int, quota: Ints) -> tuple[Ints, Ints]:
    """The first distinct pairs of each user, at most `quota[u]`, ascending; and how many are missing."""
    _, first = np.unique(pairs, return_index=True)
    pairs = pairs[np.sort(first)]
    user = pairs // n
    order = np.argsort(user, kind="stable")
    counts = np.bincount(user, minlength=len(quota))
    kept = order[positions(counts) < quota[user[order]]]
    return np.sort(pairs[kept]), np.maximum(quota - counts, 0)


def blocks(quota: Ints, rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of users with about `rows` rows together: worked on at a time."""
    ends = np.cumsum(quota)
    first, done = 0, 0
    while first < len(quota):
        last = min(max(first + 1, int(np.searchsorted(ends, done + rows))), len(quota))
        yield first, last
        first, done = last, int(ends[last - 1])


def grades(scores: NDArray[np.floating], shares: Sequence[float], among: NDArray[np.floating] | None = None) -> Ints:
    """Scores cut into levels from 0 that have these shares among all of them, or `among` others."""
    edges = np.quantile(scores if among is None else among, np.cumsum(shares)[:-1] / np.sum(shares))
    return np.searchsorted(edges, scores, side="right")
