"""Who has what in synthetic data: long tails, tastes, sittings, drawn in arrays at any scale.

Items lie on strata (a genre, a department, a town). How much a user likes each stratum is the user's taste; within a
stratum what is popular is popular with everybody. So users times strata is a factor model, which recommenders can
learn, and where taste depends on attributes, interactions give these away.

Weights are whole numbers held in float64. Their sums are exact, so nothing depends on how a processor adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST_WEIGHT = 2.0**24
"""The largest weight of a row or a tail: sums of 2^29 of them are still exact in float64."""
TOO_MANY = 6
"""Users who have more than one in so many items are not drawn item by item but by a race of all items."""
ROUNDS = 4
"""Attempts at finding distinct items before those still without are raced too."""
RACE = 1 << 22
"""Users times items that are raced at a time: 32 MiB an array."""


def scale_size(number: int, scale: float, power: float = 1.0, *, minimum: int = 1) -> int:
    """A size of the published data at another scale: `number` itself at scale 1, never under `minimum`."""
    return max(minimum, round(number * scale**power))


def ids(rng: np.random.Generator, n: int, last: int) -> Ints:
    """n ids from 1 to `last`, ascending, with gaps in places drawn at random; `last` is one of them."""
    missing = rng.choice(max(last, n) - 1, max(last - n, 0), replace=False)
    return np.delete(np.arange(1, max(last, n) + 1), missing)


def long_tail(rng: np.random.Generator, n: int, decay: float, bend: float) -> Floats:
    """Weights of n items in random order, (n,), whole numbers from 1: exp(-decay * x^bend) at rank share x.

    This stretched exponential is the shape of the popularity of films, shops and goods (Laherrère & Sornette, 1998):
    straighter than a power law at the head, and as long a tail. `bend` is about a half in the data sets that have
    replicas here; exp(decay) is how many times as popular the first item is as the last.
    """
    share = (np.arange(n) + 0.5) / n
    return np.ceil(rng.permutation(np.exp(-decay * share**bend)) * LARGEST_WEIGHT)


def allot(rng: np.random.Generator, weights: Floats, total: int, maximum: int | Ints) -> Ints:
    """Whole numbers with sum `total`, (n,), in proportion to weights as far as `maximum` lets them.

    Raises:
        ValueError: `total` is negative or more than all of `maximum`.
    """
    maximum = np.broadcast_to(np.asarray(maximum, dtype=np.int64), weights.shape)
    if maximum.min(initial=0) < 0 or not 0 <= total <= maximum.sum():
        raise ValueError(f"{len(weights)} with at most {maximum.max(initial=0)} each cannot have {total} in all")

    def cut(factor: float) -> Ints:
        return np.minimum(np.floor(factor * weights), maximum).astype(np.int64)

    low, high = 0.0, 1.0
    while high < 1e18 and cut(high).sum() <= total:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cut(middle).sum() <= total else (low, middle)
    result = cut(low)
    while (missing := total - int(result.sum())) > 0:
        some = rng.permutation(np.flatnonzero(result < maximum))[:missing]
        result[some] += 1
    return result


def activity(
    rng: np.random.Generator, propensity: Floats, total: int, *, minimum: int, maximum: int | Ints, sigma: float
) -> Ints:
    """How often each user acts, (n,), with sum `total`: `minimum` and a log-normal surplus, cut at `maximum`.

    Args:
        propensity: (n,); who has more of it acts more.
        sigma: of the surplus, whose mean is exp(sigma^2 / 2) times its median.

    Raises:
        ValueError: `total` is not between what all have at least and at most.
    """
    n = len(propensity)
    surplus = np.round(rng.lognormal(0, sigma, n), 6) + 1e-6
    counts = minimum + allot(rng, surplus, total - n * minimum, np.asarray(maximum) - minimum)
    result = np.empty(n, dtype=np.int64)
    result[np.argsort(propensity, kind="stable")] = np.sort(counts)
    return result


def integer_weights(weights: NDArray[np.floating]) -> Floats:
    """Rows of positive weights, (n, k), as integers up to `LARGEST_WEIGHT`; only proportions within a row count."""
    return np.ceil(weights / weights.max(axis=1, keepdims=True) * LARGEST_WEIGHT)


def choose(rng: np.random.Generator, weights: Floats, rows: Ints) -> Ints:
    """For each of `rows` one column of `weights` (whole numbers), in proportion to them; a row may be named often."""
    columns = weights.shape[1]
    ends = np.cumsum(weights)
    starts = np.concatenate([[0.0], ends[columns - 1 :: columns]])
    at = _draw_between(rng, ends, starts[rows], starts[rows + 1])
    return at - rows * columns


def _draw_between(rng: np.random.Generator, ends: Floats, low: Floats, high: Floats) -> Ints:
    """Places in a running sum, drawn between two of its values."""
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

    def __len__(self) -> int:
        return len(self.stratum)

    @property
    def mass(self) -> Floats:
        """(n_strata,) popularity of each stratum; 0 where it is empty."""
        return np.diff(self._marks)

    @property
    def sizes(self) -> Ints:
        """(n_strata,) items in each stratum."""
        return np.diff(self._begins)

    def pick(self, rng: np.random.Generator, strata: Ints) -> Ints:
        """For each of `strata` (none empty) an item in it, in proportion to popularity."""
        return self._order[_draw_between(rng, self._ends, self._marks[strata], self._marks[strata + 1])]

    def member(self, strata: Ints, place: Ints) -> Ints:
        """The item at a place (from 0) in each of `strata`."""
        return self._order[self._begins[strata] + place]


class Deal:
    """Items for rows whose strata are known, repeats welcome: every item `minimum` times, the rest by popularity.

    Rows come in as many calls as is convenient; what every item must have is spread over all of them.
    """

    def __init__(self, items: Strata, rows: Ints, minimum: int) -> None:
        """rows: (n_strata,) how many rows each stratum will have in all: `minimum` times its items or more.

        Raises:
            ValueError: a stratum has too few rows.
        """
        self.items, self.rows, self.due = items, rows, minimum * items.sizes
        if (self.due > rows).any():
            raise ValueError("a stratum has too few rows for each of its items")
        self._seen = np.zeros(items.n_strata, dtype=np.int64)

    def __call__(self, rng: np.random.Generator, strata: Ints) -> Ints:
        """The next rows' items."""
        order = np.argsort(strata, kind="stable")
        ordered = strata[order]
        counts = np.bincount(strata, minlength=self.items.n_strata)
        turn = np.empty(len(strata), dtype=np.int64)
        turn[order] = np.arange(len(strata)) - (np.cumsum(counts) - counts)[ordered] + self._seen[ordered]
        self._seen += counts
        due, rows = self.due[strata], self.rows[strata]
        done = turn * due // rows
        item = np.empty(len(strata), dtype=np.int64)
        item[order] = self.items.pick(rng, ordered)  # in the order of memory: faster
        must = np.flatnonzero((turn + 1) * due // rows > done)
        item[must] = self.items.member(strata[must], done[must] % self.items.sizes[strata[must]])
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
    liked = choose(rng, integer_weights(taste(users) * items.sizes), row)
    item = np.empty(len(items), dtype=np.int64)
    shuffled = rng.permutation(len(items))
    item[np.argsort(liked, kind="stable")] = shuffled[np.argsort(items.stratum[shuffled], kind="stable")]
    return holder, item


def draw_pairs(
    rng: np.random.Generator, taste: Floats, items: Strata, quota: Ints, certain: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """Distinct (user, item), in no order that means anything: `quota[u]` of each user, by taste times popularity.

    Args:
        taste: (n_users, n_strata) positive; users times items are fewer than 2^37.
        quota: (n_users,) at most as many as there are items.
        certain: (users, items) distinct pairs that are among them (`everything_once`).
    """
    n_users, bits = len(quota), len(items).bit_length()
    weights = integer_weights(taste * items.mass)
    chances = weights / weights.sum(axis=1, keepdims=True)
    sure = np.sort(_key(*certain, bits))
    raced = quota > len(items) // TOO_MANY
    pool = sure[~raced[sure >> bits]]
    for attempt in range(ROUNDS):
        short = np.where(raced, 0, quota - np.bincount(pool >> bits, minlength=n_users))
        some = np.flatnonzero(short > 0)
        if not len(some):
            break
        draws = (short[some] * (5 + 3 * attempt) >> 2) + 4
        counts = rng.multinomial(draws, chances[some])
        strata = np.repeat(np.tile(np.arange(items.n_strata), len(some)), counts.ravel())
        new = _key(np.repeat(some, draws), items.pick(rng, strata), bits)
        pool = _unique_keys(np.concatenate([pool, new]))
    raced |= np.bincount(pool >> bits, minlength=n_users) < quota
    pool = _draw_quota(rng, pool[~raced[pool >> bits]], quota, sure[~raced[sure >> bits]], bits)
    pool = np.concatenate([pool, *_races(rng, taste, items, quota, np.flatnonzero(raced), sure, bits)])
    return pool >> bits, pool & ((1 << bits) - 1)


def _key(users: Ints, items: Ints, bits: int) -> Ints:
    return (users << bits) | items


def _unique_keys(keys: Ints) -> Ints:
    keys.sort()
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])]


def _draw_quota(rng: np.random.Generator, pool: Ints, quota: Ints, sure: Ints, bits: int) -> Ints:
    """Of each user's pairs (ascending) a random `quota[u]`, the sure ones among them."""
    chance = rng.integers(1, 1 << 24, len(pool))
    chance[np.searchsorted(pool, sure)] = 0
    item = pool & ((1 << bits) - 1)
    keys = (((pool >> bits) << 24 | chance) << bits) | item
    keys.sort()
    users = keys >> (24 + bits)
    counts = np.bincount(users, minlength=len(quota))
    place = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = place < quota[users]
    return _key(users[kept], keys[kept] & ((1 << bits) - 1), bits)


def _races(
    rng: np.random.Generator, taste: Floats, items: Strata, quota: Ints, users: Ints, sure: Ints, bits: int
) -> Iterator[Ints]:
    """Pairs of users who have so many items that drawing one by one would mostly repeat.

    Each item arrives after an exponential time, sooner the more it is liked, and the first `quota[u]` are taken: the
    same law as drawing one after the other without replacement.
    """
    at_a_time = max(1, RACE // len(items))
    for first in range(0, len(users), at_a_time):
        some = users[first : first + at_a_time]
        arrival = rng.standard_exponential((len(some), len(items)))
        arrival /= integer_weights(taste[some])[:, items.stratum] * items.weight
        sure_in_block = sure[np.isin(sure >> bits, some)]
        arrival[np.searchsorted(some, sure_in_block >> bits), sure_in_block & ((1 << bits) - 1)] = 0
        last = np.take_along_axis(np.sort(arrival, axis=1), quota[some][:, None] - 1, axis=1)
        row, item = np.nonzero(arrival <= last)
        yield _key(some[row], item, bits)


def blocks(quota: Ints, rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of users with about `rows` rows together, and fewer than 2^17 users: worked on at a time."""
    ends = np.cumsum(quota)
    first, done = 0, 0
    while first < len(quota):
        last = min(max(first + 1, int(np.searchsorted(ends, done + rows))), first + (1 << 17) - 1, len(quota))
        yield first, last
        first, done = last, int(ends[last - 1])


class Grades:
    """Scores cut into rating levels with given shares. The first scores set the thresholds for all."""

    def __init__(self, shares: Sequence[float]) -> None:
        """shares: of the levels, lowest first, in any unit."""
        self.shares = np.cumsum(shares)[:-1] / np.sum(shares)
        self._thresholds: NDArray[np.float64] | None = None

    def __call__(self, scores: NDArray[np.floating]) -> NDArray[np.int8]:
        """Levels from 0."""
        scores = np.round(scores, 6)
        if self._thresholds is None:
            self._thresholds = np.quantile(scores, self.shares)
        return np.searchsorted(self._thresholds, scores, side="right").astype(np.int8)


class Opinions:
    """Ratings: of a better item higher, of what a user likes higher, and what else user and item have in common."""

    QUALITY, FAME, MOOD, LIKING, AFFINITY, N_FACTORS = 0.5, 0.3, 0.5, 0.5, 0.9, 4
    """Weights against standard normal noise. FAME: popular items are better; AFFINITY: of hidden factors."""
    SHARED = 0.9
    """Share of the variance of a user's hidden factors that is the community's, where there are communities."""

    def __init__(self, rng: np.random.Generator, weight: Floats, shares: Sequence[float], n_communities: int) -> None:
        """weight: (n_items,) popularity; shares: of the rating levels, lowest first (`Grades`)."""
        fame = np.log(weight)
        fame = (fame - fame.mean()) / max(fame.std(), 1e-6)
        self._quality = self.FAME * fame + self.QUALITY * rng.standard_normal(len(weight))
        self._style = rng.standard_normal((len(weight), self.N_FACTORS), dtype=np.float32)
        self._shared = rng.standard_normal((n_communities, self.N_FACTORS), dtype=np.float32)
        self._grades = Grades(shares)

    def __call__(
        self, rng: np.random.Generator, users: Ints, items: Ints, liking: NDArray[np.floating], community: Ints
    ) -> NDArray[np.int8]:
        """Levels from 0 of rows of some users, all of whose rows these are.

        Args:
            users, items: (n_rows,) users from 0.
            liking: (n_rows,) of the item's stratum, about standard normal.
            community: (n_users,)
        """
        mood = self.MOOD * rng.standard_normal(len(community))
        likes = rng.standard_normal((len(community), self.N_FACTORS), dtype=np.float32)
        if len(self._shared) > 1:
            likes = np.sqrt(self.SHARED) * self._shared[community] + np.sqrt(1 - self.SHARED) * likes
        scores = mood[users] + self._quality[items] + self.LIKING * liking
        scores += self.AFFINITY / np.sqrt(self.N_FACTORS) * np.einsum("ij,ij->i", likes[users], self._style[items])
        scores += rng.standard_normal(len(users))
        return self._grades(scores)


def phases(rng: np.random.Generator, users: Ints, strata: Ints) -> Floats:
    """When in a user's time each row is, (n_rows,) in 0..1: a user goes through strata one after another, roughly.

    So what follows an item is more often of its stratum than chance has it.
    """
    mixed = users.astype(np.uint64) << np.uint64(32) | strata.astype(np.uint64)
    mixed ^= rng.integers(0, 1 << 63, dtype=np.uint64)
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):  # as splitmix64 spreads numbers
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(multiplier)
    return ((mixed >> np.uint64(11)).astype(np.float64) / 2**53 + 0.04 * rng.random(len(users))) % 1.0


def sittings(
    rng: np.random.Generator, quota: Ints, users: Ints, phase: Floats, *, rows: float, spans: Floats
) -> tuple[Floats, Floats]:
    """Times of rows that come in sittings: (begin of the row's sitting, place within it).

    Args:
        quota: (n_users,) rows of each user. users, phase: (n_rows,) of each row (`phases`).
        rows: about how many rows a sitting has.
        spans: (n_users,) time from a user's first sitting to the last, in any unit.

    Returns:
        begin: (n_rows,) since the user's first sitting, 0..span. place: (n_rows,) 0..1.
    """
    number = 1 + rng.poisson(quota / rows)
    ends = np.cumsum(number)
    first = ends - number
    gap = np.round(rng.standard_exponential(ends[-1]), 6)
    gap[first] = 0
    until = np.cumsum(gap)
    total_gap = np.maximum(until[ends - 1] - until[first], 1e-6)
    at = phase * number[users]
    sitting = np.minimum(at.astype(np.int64), number[users] - 1)
    begin = (until[first[users] + sitting] - until[first[users]]) / total_gap[users] * spans[users]
    return begin, np.clip(at - sitting, 0, 1)
