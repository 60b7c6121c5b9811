"""Synthetic people: communities, taste, whom they follow, on one network or on two, what they are called and write.

Friends are alike because they come from the same community, and a community shares its taste. Attributes and words
depend on taste, so whatever a model or an attack is to find in a social network is there to be found.

Everything is drawn in arrays: time and memory grow with people + edges + words, never with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ACTIVITY_TAIL, ATTRACTION_TAIL = 1.6, 2.0
"""Spread (sigma of a log-normal) of how many a user follows, and by how many a user is followed: the 99th percentile
of degrees is then more than ten times their median, as in Ciao, Epinions and Twitter."""
BOTH_TAILS = 0.6
"""Correlation of the two before connections are returned, on log scale."""
LOCAL, CLOSED = 0.55, 0.2
"""Shares of pairs that are drawn within a community, and that close a triangle; the rest joins anybody with anybody."""
LOYALTY = 0.65
"""How much of a user's taste is the community's; the rest is the user's own."""
KEPT = 0.8
"""Share of acquaintances that either of two networks shows."""
ACQUAINTED = 0.5
"""Share of the smaller network's pairs that are acquaintances: about half of its pairs of anchor users are then pairs
of the other network too, as of Foursquare's in Twitter (IONE's release: 5,661 of 11,296)."""


@dataclass(frozen=True)
class People:
    """n users: row i of every array is user i."""

    community: Ints
    """(n,)"""
    activity: Floats
    """(n,) positive; about proportional to how many the user follows."""
    attraction: Floats
    """(n,) positive; about proportional to how many follow the user."""
    taste: NDArray[np.float32]
    """(n, n_topics), rows sum to 1."""

    def __len__(self) -> int:
        return len(self.community)

    def some(self, rows: Ints) -> People:
        """The people with these row numbers, in their order."""
        return People(self.community[rows], self.activity[rows], self.attraction[rows], self.taste[rows])


def populate(rng: np.random.Generator, n: int, popularity: Sequence[float], *, community_size: int) -> People:
    """n users in communities of about `community_size`, with taste for `len(popularity)` topics.

    popularity: (n_topics,) positive; how common each topic is, in any unit.
    """
    shares = np.asarray(popularity) / np.sum(popularity)
    n_communities = max(2, round(n / community_size))
    sizes = rng.lognormal(0, 0.6, n_communities)
    community = rng.permutation(np.repeat(np.arange(n_communities), rng.multinomial(n, sizes / sizes.sum())))
    # Small gamma shapes make Dirichlet rows in which a few topics have nearly everything.
    common = _rows_to_one(rng.standard_gamma(1.5 * shares, (n_communities, len(shares))))
    own = _rows_to_one(rng.standard_gamma(2.5 * shares, (n, len(shares))))
    taste = LOYALTY * common[community] + (1 - LOYALTY) * own
    shared, apart = rng.standard_normal((2, n))
    activity = np.exp(ACTIVITY_TAIL * shared)
    attraction = np.exp(ATTRACTION_TAIL * (BOTH_TAILS * shared + np.sqrt(1 - BOTH_TAILS**2) * apart))
    return People(community, np.round(activity, 6) + 1e-6, np.round(attraction, 6) + 1e-6, taste.astype(np.float32))


def _rows_to_one(positive: Floats) -> Floats:
    positive += 1e-9
    positive /= positive.sum(axis=1, keepdims=True)
    return positive


def follow(
    rng: np.random.Generator,
    people: People,
    n_edges: int,
    *,
    reciprocity: float,
    start: tuple[Ints, Ints] | None = None,
) -> tuple[Ints, Ints]:
    """Who follows whom: source and target, (n_edges,) each, sorted by source and target, no loops, no repeats.

    A graph of few users has fewer edges: half of their pairs are joined at most, though one at least.

    Args:
        reciprocity: share of edges whose reverse is an edge too.
        start: pairs (either way round) that are joined before others are drawn.
    """
    n = len(people)
    most = max(n * (n - 1) // 4, 1)
    n_edges = min(n_edges, max(1, int(most / (1 - reciprocity / 2))))
    n_pairs = min(max(round(n_edges * (1 - reciprocity / 2)), (n_edges + 1) // 2), most)
    order = np.argsort(people.community, kind="stable")  # neighbours in memory are neighbours in the graph: faster
    if start is not None:
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n)
        start = place[start[0]], place[start[1]]
    source, target = _pairs(rng, people.some(order), n_pairs, start)
    n_back = min(max(n_edges - len(source), 0), len(source))
    community = people.community[order]
    # Neighbours return a connection more often than those far away and well known.
    reluctance = rng.random(len(source), dtype=np.float32)
    reluctance[community[source] == community[target]] -= 0.5
    back = np.argpartition(reluctance, n_back - 1)[:n_back] if n_back else np.empty(0, dtype=np.int64)
    del reluctance
    keys = np.concatenate([order[source] * n + order[target], order[target[back]] * n + order[source[back]]])
    keys.sort()
    return keys // n, keys % n


def _pairs(
    rng: np.random.Generator, people: People, n_pairs: int, start: tuple[Ints, Ints] | None
) -> tuple[Ints, Ints]:
    """Distinct unordered pairs, the one who starts the connection first. People are sorted by community."""
    n = len(people)
    draw = _Draw(people)
    have = np.empty(0, dtype=np.int64)
    if start is not None:
        have = _add(rng, have, start, n, n_pairs)
    first = max(0, n_pairs - len(have))
    have = _add(rng, have, draw.connections(rng, round(first * (1 - CLOSED))), n, n_pairs)
    have = _add(rng, have, _triangles(rng, have, n, round(first * CLOSED)), n, n_pairs)
    attempt = 0
    while (missing := n_pairs - len(have)) > 0:
        # Where a community is full, draws repeat what is there; after a few rounds anybody will do.
        count = missing + missing // 5 + 16
        new = draw.connections(rng, count) if attempt < 5 else tuple(rng.integers(0, n, (2, count)))
        have = _add(rng, have, (new[0], new[1]), n, n_pairs)
        attempt += 1
    pair, swapped = have >> 1, (have & 1).astype(bool)
    low, high = pair // n, pair % n
    return np.where(swapped, high, low), np.where(swapped, low, high)


class _Draw:
    """Draws connections in proportion to activity (source) and attraction (target), near and far."""

    def __init__(self, people: People) -> None:
        self.n = len(people)
        self.source = people.activity / people.activity.sum()
        # Among neighbours fame counts for less.
        self.near = np.concatenate([[0], np.cumsum(np.sqrt(people.attraction))])
        self.far = np.concatenate([[0], np.cumsum(people.attraction)])
        edges = np.flatnonzero(np.diff(people.community, prepend=-1, append=-1))
        size = np.diff(edges)
        self.first, self.last = np.repeat(edges[:-1], size), np.repeat(edges[1:], size)

    def connections(self, rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
        """About `count` of them, loops and repeats among them."""
        count_near = round(count * LOCAL / (1 - CLOSED))
        near = np.repeat(np.arange(self.n), rng.multinomial(count_near, self.source))
        low, high = self.near[self.first[near]], self.near[self.last[near]]
        at = np.searchsorted(self.near, low + rng.random(len(near)) * (high - low), side="right") - 1
        at = np.clip(at, self.first[near], self.last[near] - 1)
        far = np.repeat(np.arange(self.n), rng.multinomial(count - count_near, self.source))
        to = np.searchsorted(self.far, rng.random(len(far)) * self.far[-1], side="right") - 1
        return np.concatenate([near, far]), np.concatenate([at, np.minimum(to, self.n - 1)])


def _triangles(rng: np.random.Generator, keys: Ints, n: int, count: int) -> tuple[Ints, Ints]:
    """Connections between two acquaintances of one user."""
    if not len(keys) or not count:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    low = (keys >> 1) // n
    begins = np.flatnonzero(np.diff(low, prepend=-1))
    size = np.diff(begins, append=len(keys))
    group = np.repeat(np.arange(len(begins)), size)  # pairs that share their lower user lie side by side
    one = rng.integers(0, len(keys), count)
    group = group[one]
    other = begins[group] + (rng.random(count) * size[group]).astype(np.int64)
    return (keys[one] >> 1) % n, (keys[other] >> 1) % n


def _keys(source: Ints, target: Ints, n: int) -> Ints:
    """(lower, higher) as one number, its last bit 1 where the source is the higher."""
    return (np.minimum(source, target) * n + np.maximum(source, target)) * 2 + (source > target)


def _distinct(keys: Ints) -> Ints:
    keys.sort()
    pair = keys >> 1
    new = np.ones(len(keys), dtype=bool)
    new[1:] = pair[1:] != pair[:-1]
    return keys[new]


def _add(rng: np.random.Generator, have: Ints, new: tuple[Ints, Ints], n: int, limit: int) -> Ints:
    """`have` and as many of the new pairs as fit into `limit`."""
    proper = new[0] != new[1]
    keys = _distinct(_keys(new[0][proper], new[1][proper], n))
    if len(have):
        at = np.minimum(np.searchsorted(have >> 1, keys >> 1), len(have) - 1)
        keys = keys[have[at] >> 1 != keys >> 1]
    if (surplus := len(have) + len(keys) - limit) > 0:
        keys = np.delete(keys, rng.choice(len(keys), min(surplus, len(keys)), replace=False, shuffle=False))
    keys = np.concatenate([have, keys])
    keys.sort()
    return keys


def follow_twice(
    rng: np.random.Generator,
    people: People,
    members: tuple[Ints, Ints],
    n_edges: tuple[int, int],
    *,
    reciprocity: tuple[float, float],
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Who follows whom on two networks of the same people, as `follow`.

    People know one another whatever network they are on: each network shows a part of these acquaintances among its
    members and adds connections of its own.

    Args:
        members: row numbers in `people` of either network's users, distinct; its user j is `members[k][j]`.
    """
    n = len(people)
    wanted = [edges * (1 - back / 2) for edges, back in zip(n_edges, reciprocity, strict=True)]
    both = [(len(some) / n) ** 2 for some in members]
    needed = [ACQUAINTED * pairs / (KEPT * share) for pairs, share in zip(wanted, both, strict=True)]
    order = np.argsort(people.community, kind="stable")
    know = _pairs(rng, people.some(order), min(round(min(needed)), n * (n - 1) // 4), None)
    know = order[know[0]], order[know[1]]
    networks = []
    for some, edges, back in zip(members, n_edges, reciprocity, strict=True):
        number = np.full(n, -1)
        number[some] = np.arange(len(some))
        source, target = number[know[0]], number[know[1]]
        shown = (source >= 0) & (target >= 0) & (rng.random(len(source)) < KEPT)
        fame = people.attraction[some] * np.round(rng.lognormal(0, 0.8, len(some)), 6)  # known here, unknown there
        here = people.some(some)
        here = People(here.community, here.activity, fame, here.taste)
        networks.append(follow(rng, here, edges, reciprocity=back, start=(source[shown], target[shown])))
    return networks[0], networks[1]


def by_taste(rng: np.random.Generator, taste: NDArray[np.float32], shares: Sequence[float], *, strength: float) -> Ints:
    """An attribute, (n,) in 0..len(shares)-1, that depends on taste and has about these shares of users.

    strength: weight of taste against chance; at 0 they are independent, at 2 taste often decides.
    """
    goal = np.asarray(shares) / np.sum(shares)
    centred = (taste - taste.mean(axis=0)) / (taste.std(axis=0) + 1e-6)
    loadings = rng.standard_normal((taste.shape[1], len(goal))) / np.sqrt(taste.shape[1])
    chance = np.exp(strength * (centred @ loadings.astype(np.float32)))
    for _ in range(20):  # raking: rows sum to 1, columns to their share
        chance *= goal / chance.mean(axis=0)
        chance /= chance.sum(axis=1, keepdims=True)
    return pick(rng, chance)


def pick(rng: np.random.Generator, chance: NDArray[np.floating], rows: Ints | None = None) -> Ints:
    """One column for each of `rows` (default: each once) of `chance`; a row may be named often."""
    n, columns = chance.shape
    rows = np.arange(n) if rows is None else rows
    cumulative = np.cumsum(chance, axis=1, dtype=np.float64)
    cumulative /= cumulative[:, -1:]
    cumulative += np.arange(n)[:, None]  # row i takes the numbers from i to i + 1: one search does for all rows
    at = np.searchsorted(cumulative.ravel(), rows + rng.random(len(rows)), side="right")
    return np.clip(at - rows * columns, 0, columns - 1)


@dataclass(frozen=True)
class Words:
    """A vocabulary in blocks (common words, a topic's, an attribute's): commoner words first in each."""

    words: tuple[str, ...]
    first: Ints
    """(n_blocks,) where each block begins."""
    size: Ints
    """(n_blocks,)"""


def vocabulary(blocks: Sequence[tuple[Sequence[str], int]]) -> Words:
    """Each block is its given words and then invented ones, up to its size."""
    words: list[str] = []
    for given, size in blocks:
        words += list(given)[:size]
        words += _invented(np.arange(len(words), len(words) + size - min(len(given), size))).to_list()
    sizes = np.array([size for _, size in blocks])
    return Words(tuple(words), np.cumsum(sizes) - sizes, sizes)


def write_posts(
    rng: np.random.Generator, words: Words, blocks: Ints, weights: Sequence[float], *, mean_words: float
) -> pl.Series:
    """Texts, one per row of `blocks`: words joined by blanks, at least three.

    Args:
        blocks: (n_posts, n_kinds) numbers of the blocks that a post's words come from.
        weights: (n_kinds,) how often each of them is chosen; within a block word r is chosen in proportion to 1/r.
    """
    length = 3 + rng.poisson(mean_words - 3, len(blocks))
    post = np.repeat(np.arange(len(blocks)), length)
    kind = np.searchsorted(np.cumsum(weights)[:-1] / np.sum(weights), rng.random(len(post)), side="right")
    block = blocks[post, kind]
    size = words.size[block]
    rank = np.minimum(((size + 1.0) ** rng.random(len(post))).astype(np.int64), size) - 1
    chosen = pa.array(words.words).take(pa.array(words.first[block] + rank))
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), chosen)
    return pl.Series("text", pc.binary_join(lists, " "))


_SYLLABLES = np.array([one + two for one in "bcdfghjklmnprstvwxyz" for two in "aeiou"])
_N_SYLLABLES = 4
_SPREAD = 61_803_399  # odd and no multiple of 5, so numbers and names are one to one


def _syllables(number: Ints) -> Ints:
    """(n, 4) numbers of syllables; neighbours in number are far apart in sound."""
    base = len(_SYLLABLES)
    code = number * _SPREAD % base**_N_SYLLABLES
    return code[:, None] // base ** np.arange(_N_SYLLABLES) % base


def _sound(syllables: Ints) -> pl.Series:
    parts = [pl.Series(f"{place}", _SYLLABLES[syllables[:, place]]) for place in range(syllables.shape[1])]
    return pl.DataFrame(parts).select(pl.concat_str(pl.all()).alias("name"))["name"]


def _invented(number: Ints) -> pl.Series:
    return _sound(_syllables(number))


def handles(rng: np.random.Generator, person: Ints, *, change: float = 0.25, unrelated: float = 0.08) -> pl.Series:
    """Synthetic screen names of these persons, all different: drawn twice, a person has two similar names.

    Args:
        person: distinct numbers below 50 million.
        change: share of names with one syllable replaced.
        unrelated: share of names that have nothing to do with the person's other ones.
    """
    syllables = _syllables(person)
    other = rng.random(len(person))
    changed = np.flatnonzero(other < change)
    place = rng.integers(0, _N_SYLLABLES, len(changed))
    syllables[changed, place] = rng.integers(0, len(_SYLLABLES), len(changed))
    apart = np.flatnonzero(other >= 1 - unrelated)
    syllables[apart] = _syllables(50_000_000 + rng.permutation(person)[apart])
    names = _sound(syllables)
    tail = rng.choice(4, len(person), p=(0.4, 0.3, 0.2, 0.1))
    digits = pl.Series(rng.integers(10, 100, len(person))).cast(pl.String)
    syllable = pl.Series(_SYLLABLES[rng.integers(0, len(_SYLLABLES), len(person))])
    table = pl.DataFrame({"name": names, "tail": tail, "digits": digits, "syllable": syllable, "person": person})
    name = pl.col("name")
    drawn = (
        pl.when(pl.col("tail") == 1).then(name + pl.col("digits"))
        .when(pl.col("tail") == 2).then(name + "_" + pl.col("syllable"))
        .when(pl.col("tail") == 3).then(name.str.slice(0, 1).str.to_uppercase() + name.str.slice(1))
        .otherwise(name)
    )  # fmt: skip
    table = table.with_columns(name=drawn)
    taken = name.str.to_lowercase().is_duplicated()
    return table.select(pl.when(taken).then(name + "_" + pl.col("person").cast(pl.String)).otherwise(name))["name"]
