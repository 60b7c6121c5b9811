"""Synthetic people: communities, taste, attributes, and whom they follow, on one network or on two.

Friends are alike because they come from the same community, and a community shares its taste. Attributes depend on
taste (and so do words, `tasks.datasets.synthetic.networks`), so what a model or an attack is to find is there. Time and
memory grow with people and edges, never with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from tasks.datasets.synthetic.skew import Floats, Ints, choose

ACTIVITY_TAIL, ATTRACTION_TAIL = 1.6, 2.0
"""Spread (sigma of a log-normal) of how many a user follows, and by how many a user is followed: the 99th percentile
of degrees is then more than ten times their median, as in Ciao, Epinions and Twitter."""
BOTH_TAILS = 0.6
"""Correlation of the two before connections are returned, on log scale."""
LOCAL = 0.7
"""Share of pairs that are drawn within a community, which closes triangles; the others join any two users."""
KEPT = 0.8
"""Share of acquaintances that either of two networks shows."""
ACQUAINTED = 0.5
"""Share of the smaller network's pairs that are acquaintances: about half of its pairs of anchor users are then pairs
of the other network too, as of Foursquare's in Twitter (IONE's release: 5,661 of 11,296)."""


class Described(BaseModel):
    """A part of the description of a data set."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class Taste(Described):
    """Standard deviations of the parts of the log of a user's taste for a kind of items or a topic."""

    shared: float = 0.0
    """Of the user's community."""
    common: float = 0.0
    """Of hidden factors, the same for all."""
    factors: int = 6
    individual: float
    """Of the user alone."""


@dataclass(frozen=True)
class People:
    """n users: row i of every array is user i."""

    community: Ints
    """(n,)"""
    propensity: Floats
    """(n,) about standard normal: who has more of it acts and follows more."""
    attraction: Floats
    """(n,) positive; about proportional to how many follow the user."""
    taste: NDArray[np.float32]
    """(n, n_kinds) log of how much the user likes each kind."""

    def __len__(self) -> int:
        return len(self.community)

    def take(self, rows: Ints) -> People:
        """The people with these row numbers, in their order."""
        return People(self.community[rows], self.propensity[rows], self.attraction[rows], self.taste[rows])


def populate(rng: np.random.Generator, n: int, n_kinds: int, taste: Taste, community_size: int) -> People:
    """n users in communities of about `community_size`."""
    n_communities = max(2, round(n / community_size))
    sizes = rng.lognormal(0, 0.6, n_communities)
    community = rng.permutation(np.repeat(np.arange(n_communities), rng.multinomial(n, sizes / sizes.sum())))
    likes = taste.individual * rng.standard_normal((n, n_kinds), dtype=np.float32)
    likes += (taste.shared * rng.standard_normal((n_communities, n_kinds), dtype=np.float32))[community]
    if taste.common:
        loadings = taste.common / np.sqrt(taste.factors) * rng.standard_normal((taste.factors, n_kinds))
        likes += rng.standard_normal((n, taste.factors), dtype=np.float32) @ loadings.astype(np.float32)
    propensity, apart = np.round(rng.standard_normal((2, n)), 6)
    attraction = np.exp(ATTRACTION_TAIL * (BOTH_TAILS * propensity + np.sqrt(1 - BOTH_TAILS**2) * apart))
    return People(community, propensity, np.round(attraction, 6) + 1e-6, np.round(likes, 4, out=likes))


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
    maximum = max(n * (n - 1) // 4, 1)
    n_edges = min(n_edges, max(1, int(maximum / (1 - reciprocity / 2))))
    n_pairs = min(max(round(n_edges * (1 - reciprocity / 2)), (n_edges + 1) // 2), maximum)
    source, target = _connect(rng, people, n_pairs, start)
    # Neighbours return a connection more often than those far away and well known.
    near = people.community[source] == people.community[target]
    back = np.argsort(rng.random(n_pairs) - 0.5 * near)[: n_edges - n_pairs]
    keys = np.sort(np.concatenate([source * n + target, target[back] * n + source[back]]))
    return keys // n, keys % n


def _connect(
    rng: np.random.Generator, people: People, n_pairs: int, start: tuple[Ints, Ints] | None = None
) -> tuple[Ints, Ints]:
    """Distinct unordered pairs of two users, the one who starts the connection first."""
    n, draw = len(people), _Draw(people)
    have = np.empty(0, dtype=np.int64)  # (lower, higher) as one number, its last bit 1 where the source is the higher
    source, target = start or draw(rng, n_pairs)
    attempt = 0
    while True:
        keys = (np.minimum(source, target) * n + np.maximum(source, target)) * 2 + (source > target)
        have = np.concatenate([have, keys[source != target]])
        _, first = np.unique(have >> 1, return_index=True)
        have = have[np.sort(first)][:n_pairs]
        if not (missing := n_pairs - len(have)):
            break
        # Where a community is full, draws repeat what is there; after a few rounds any pair will do.
        attempt, count = attempt + 1, missing + missing // 5 + 16
        source, target = draw(rng, count) if attempt < 5 else rng.integers(0, n, (2, count))
    pair, swapped = have >> 1, (have & 1).astype(bool)
    return np.where(swapped, pair % n, pair // n), np.where(swapped, pair // n, pair % n)


class _Draw:
    """Draws connections in proportion to activity (source) and attraction (target), near and far."""

    def __init__(self, people: People) -> None:
        self.order = np.argsort(people.community, kind="stable")
        some = people.take(self.order)
        edges = np.flatnonzero(np.diff(some.community, prepend=-1, append=-1))
        self.first, self.last = (np.repeat(ends, np.diff(edges)) for ends in (edges[:-1], edges[1:]))
        fame = np.sqrt(some.attraction), some.attraction  # among neighbours it counts for less
        self.active, self.near, self.far = (
            np.concatenate([[0], np.cumsum(weight)])
            for weight in (np.round(np.exp(ACTIVITY_TAIL * some.propensity), 6) + 1e-6, *fame)
        )

    def __call__(self, rng: np.random.Generator, count: int) -> tuple[Ints, Ints]:
        """So many, loops and repeats among them."""
        n = len(self.order)
        source, target = self._between(rng, self.active, np.zeros(count, int), np.full(count, n)), np.empty(count, int)
        near = rng.random(count) < LOCAL
        target[near] = self._between(rng, self.near, self.first[source[near]], self.last[source[near]])
        n_far = count - np.count_nonzero(near)
        target[~near] = self._between(rng, self.far, np.zeros(n_far, int), np.full(n_far, n))
        return self.order[source], self.order[target]

    @staticmethod
    def _between(rng: np.random.Generator, ends: Floats, first: Ints, last: Ints) -> Ints:
        """For each a position from `first` to below `last`, in proportion to weights whose running sum is `ends`."""
        point = ends[first] + rng.random(len(first)) * (ends[last] - ends[first])
        return np.clip(np.searchsorted(ends, point, side="right") - 1, first, last - 1)


def follow_twice(
    rng: np.random.Generator, people: People, networks: Sequence[tuple[Ints, int, float]]
) -> list[tuple[Ints, Ints]]:
    """Who follows whom on networks of the same people, as `follow`.

    People know one another on any network: each network shows a part of these acquaintances among its
    members and adds connections of its own.

    networks: of each the distinct row numbers in `people` of its users, how many edges, and their reciprocity.
    """
    n = len(people)
    pairs = (ACQUAINTED * edges * (1 - back / 2) / (KEPT * (len(some) / n) ** 2) for some, edges, back in networks)
    know = _connect(rng, people, min(round(min(pairs)), n * (n - 1) // 4))
    links = []
    for some, edges, back in networks:
        number = np.full(n, -1)
        number[some] = np.arange(len(some))
        source, target = number[know[0]], number[know[1]]
        visible = (source >= 0) & (target >= 0) & (rng.random(len(source)) < KEPT)
        fame = people.attraction[some] * np.round(rng.lognormal(0, 0.8, len(some)), 6)  # known here, unknown there
        part = replace(people.take(some), attraction=fame)
        links.append(follow(rng, part, edges, reciprocity=back, start=(source[visible], target[visible])))
    return links


def by_taste(rng: np.random.Generator, taste: NDArray[np.float32], shares: Sequence[float], *, strength: float) -> Ints:
    """An attribute, (n,) in 0..len(shares)-1, that depends on taste and has about these shares of users.

    It depends most on what users differ in most, so that a few rows tell it.

    strength: weight of taste against chance; at 0 they are independent, at 2 taste often decides.
    """
    goal = np.asarray(shares) / np.sum(shares)
    centred = taste - taste.mean(axis=0)
    directions = (centred.T @ centred).astype(np.float64) @ rng.standard_normal((taste.shape[1], len(goal)))
    directions -= directions.mean(axis=1, keepdims=True)
    chance = (centred @ directions.astype(np.float32)).astype(np.float64)
    chance = np.exp(strength * np.round(chance / (chance.std(axis=0) + 1e-6), 4))
    for _ in range(20):  # raking: rows sum to 1, columns to their share
        chance *= goal / chance.mean(axis=0)
        chance /= chance.sum(axis=1, keepdims=True)
    return choose(rng, chance, np.arange(len(taste)))
