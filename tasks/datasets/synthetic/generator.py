"""The one generator of replicas with items: from the description of a published data set to its users, items and rows.

A data set is described by its sizes, its tails, the kinds of its items and what its users like, when they act, and what
is known of them (`Description`). What a user likes decides what the user has, how it is rated and which attributes the
user has; friends and neighbours like the same. So what a recommender, a social model or an attack is to find is there
to be found. Replicas of two networks of users are described in `tasks.datasets.synthetic.networks`.

Users, their quotas and all items are drawn at once; rows come some users' at a time, so that memory does not grow with
them but for what a writer keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from tasks.datasets.fetch import ReplicaOptions, Source
from tasks.datasets.synthetic.homophily import Taste, by_taste, follow, populate
from tasks.datasets.synthetic.skew import (
    Deal,
    Floats,
    Ints,
    Opinions,
    Strata,
    activity,
    allot,
    blocks,
    choose,
    draw_pairs,
    everything_once,
    integer_weights,
    long_tail,
    phases,
    scale_size,
    sittings,
)

BLOCK = 4_000_000
"""Rows that are worked on at a time."""
DENSEST = 1 / 3
"""Largest share of all pairs of user and item that are in a data set, however small its scale."""
DAY = 86_400


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Attribute(_Described):
    """Something that is known of users and follows from their taste."""

    shares: tuple[float, ...]
    """Of its values, in any unit."""
    strength: float = 2.0
    """Weight of taste against chance."""


class Times(_Described):
    """When users act."""

    first: int
    last: int
    """Seconds since 1970."""
    growth: float = 1.0
    """Users join at u^growth of the time, u uniform: ever more of them below 1, ever fewer above."""
    span: tuple[float, float] = (0.0, 1.0)
    """How long a user stays: median in days, and sigma of a log-normal."""
    rows: float = 1.0
    """About how many rows a sitting has."""
    sitting: int = 0
    """Seconds that it takes."""
    days: tuple[float, ...] = ()
    """How much happens on each day, where that is all there is to time: then users neither join nor leave."""


class Description(_Described):
    """A published data set: numbers at scale 1, as published where they are, and what is invented about it."""

    words: tuple[str, str, str] = ("ratings", "users", "films")
    """What rows, users and items are called."""
    rows: int
    users: int
    items: int
    """With rows."""
    size: int
    """About how many bytes are written."""
    item_power: float = 0.25
    """Items grow with this power of the scale: a few users see much of what there is."""
    min_rows: int = 1
    max_rows: int
    """Rows of the least and of the most active user."""
    sigma: float
    """Of activity (`skew.activity`)."""
    tail: tuple[float, float]
    """Of popularity (`skew.long_tail`)."""
    repeats: int = 0
    """Fewest rows of an item where a user may have it several times; 0 where pairs are distinct."""
    run: float = 1.0
    again: float = 0.0
    """Where pairs repeat: rows in a row of one stratum, and the share of rows with the item of the row before."""
    kinds: tuple[float, ...]
    """Shares of the kinds of items, in any unit."""
    places: tuple[float, ...] = (1.0,)
    """Shares of the places that items of each kind are in. A kind at a place is a stratum."""
    at_home: float = 0.0
    """Share of a user's rows at the place where the user's community lives; 0 where nobody lives anywhere."""
    style: float = 0.0
    """Standard deviation of a user's taste for each place of a kind, where pairs are distinct."""
    shelves: int = 0
    """Strata where they are not kinds at places, each in one kind; they grow with the square root of the scale."""
    taste: Taste
    community_size: int = 1_000
    attributes: dict[str, Attribute] = {}
    levels: tuple[float, ...] = ()
    """Shares of the rating levels, lowest first; none where rows are not rated."""
    times: Times

    def sizes(self, scale: float) -> tuple[int, int, int]:
        """Users, items and rows at another scale; the described numbers at scale 1.

        Users and rows grow with the scale. Small data keep 10 users, 100 items, `min_rows` rows a user and `repeats` an
        item, and are no denser than `DENSEST`.
        """
        users = scale_size(self.users, scale, minimum=10)
        items = scale_size(self.items, scale, self.item_power, minimum=100)
        rows = scale_size(self.rows, scale, minimum=max((1 + self.repeats) * items, self.min_rows * users))
        return users, items, rows if self.repeats else min(rows, round(DENSEST * users * items))

    def source(self, source: Source, scale: float, of: str) -> Source:
        """What is said of the replica at this scale; of: the published data set."""
        users, items, rows = self.sizes(scale)
        words = f"{rows:,} synthetic {self.words[0]} by {users:,} {self.words[1]} of {items:,} {self.words[2]}"
        return replace(source, holds=f"{words}, as of {of}", size=round(self.size * rows / self.rows))


def synthetic_source(name: str, holds: str, entry: str, size: int) -> Source:
    """What is said of a replica whatever its options."""
    return Source(
        name=name,
        address="generated by tasks.datasets.synthetic",
        synthetic=True,
        holds=holds,
        size=size,
        entry=f"{{source: {name.replace('-', '_')}, {entry}}}",
        licence="SYNTHETIC data: everything in it is drawn at random. Public domain (CC0 1.0).",
    )


def write_note(folder: Path, options: ReplicaOptions, of: str, name: str = "NOTE") -> None:
    """Write what the files are, next to them; of: whose format it is."""
    settings = ", ".join(f"{key} {value}" for key, value in options.model_dump().items())
    (folder / name).write_text(
        f"SYNTHETIC DATA\n\nGenerated at random ({settings}) in the file format of {of}.\n"
        "No user, item or text in it is real, and no result on it says anything about real people.\n"
    )


@dataclass(frozen=True)
class Rows:
    """Rows of some users, all of theirs, (n_rows,) each; in no order that means anything."""

    user: Ints
    item: Ints
    level: NDArray[np.int8]
    """From 0; empty where rows are not rated."""
    time: Ints
    """Seconds since 1970."""


class World:
    """Users and items of a replica, and what draws its rows."""

    def __init__(self, description: Description, options: ReplicaOptions) -> None:
        """Draw the users, and the items unless these follow from the rows."""
        self.described, self.scale = description, options.scale
        self.rng = np.random.default_rng(options.seed)
        self.n_users, self.n_items, self.n_rows = description.sizes(options.scale)
        d, rng = description, self.rng
        self.people = populate(rng, self.n_users, len(d.kinds), d.taste, d.community_size)
        self.attributes = {
            name: by_taste(rng, self.people.taste, known.shares, strength=known.strength)
            for name, known in d.attributes.items()
        }
        maximum = d.max_rows if d.repeats else min(round(d.max_rows / d.items * self.n_items), self.n_items)
        maximum = max(
            maximum, min(2 * self.n_rows // self.n_users, self.n_rows if d.repeats else self.n_items), d.min_rows
        )
        self.quota = activity(
            rng, self.people.propensity, self.n_rows, minimum=d.min_rows, maximum=maximum, sigma=d.sigma
        )
        self.strata = self._strata()
        """The strata, each of weight in its kind."""
        self.home = self._home()
        """(n_users,) place."""
        if not d.repeats:
            stratum = rng.choice(len(self.strata), self.n_items, p=self.strata.weight / self.strata.weight.sum())
            self.items = Strata(stratum, long_tail(rng, self.n_items, *d.tail), len(self.strata))
        else:
            self._group, self._fresh = self._visits()
            self.items = self._stock()

    def _strata(self) -> Strata:
        d = self.described
        kinds, places = np.array(d.kinds), np.array(d.places)
        if d.shelves:
            n = scale_size(d.shelves, self.scale, 0.5, minimum=2 * len(kinds))
            return Strata(self.rng.permutation(np.arange(n) % len(kinds)), long_tail(self.rng, n, 6.0, 0.5), len(kinds))
        weight = np.ceil(1e6 * np.outer(kinds / kinds.max(), places / places.max())).ravel()
        return Strata(np.repeat(np.arange(len(kinds)), len(places)), weight, len(kinds))

    def _home(self) -> Ints:
        shares = np.array(self.described.places)
        n_communities = int(self.people.community.max()) + 1
        return self.rng.choice(len(shares), n_communities, p=shares / shares.sum())[self.people.community]

    def kind(self, items: Ints) -> Ints:
        """The kinds of these items."""
        return self.strata.stratum[self.items.stratum[items]]

    def _liking(self, users: Ints) -> Floats:
        """(n, n_strata) positive, what these users like."""
        d, kind = self.described, self.strata.stratum
        liking = np.exp(self.people.taste[users][:, kind].astype(np.float64))
        if d.at_home:
            place = np.arange(len(kind)) % len(d.places)
            far = (1 - d.at_home) / len(d.places)
            liking *= np.where(place == self.home[users][:, None], d.at_home, far)
        return liking

    def _visits(self) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        """Stratum of every row, users ascending, and whether its item is another than that of the row before."""
        d, rng, n_places = self.described, self.rng, len(self.described.places)
        group, fresh, at = np.empty(self.n_rows, np.int16), np.empty(self.n_rows, np.bool_), 0
        for begin, end in blocks(self.quota, BLOCK):
            weights = integer_weights(np.exp(self.people.taste[begin:end].astype(np.float64)) * self.strata.mass)
            user = np.repeat(np.arange(end - begin), self.quota[begin:end])
            first = np.diff(user, prepend=-1) > 0
            begins = first | (rng.random(len(user)) < 1 / d.run)
            kind = choose(rng, weights, user[begins])
            stratum = self.strata.pick(rng, kind)
            if d.at_home:
                home = kind * n_places + self.home[begin:end][user[begins]]
                stratum = np.where(rng.random(len(kind)) < d.at_home, home, stratum)
            part = slice(at, at := at + len(user))
            group[part] = stratum[np.cumsum(begins) - 1]
            fresh[part] = begins | (rng.random(len(user)) >= d.again)
        return group, fresh

    def _stock(self) -> Strata:
        """Items of each stratum, in proportion to the rows it has."""
        minimum, n = self.described.repeats, len(self.strata)
        counts = np.bincount(self._group[self._fresh], minlength=n)
        self._group[(counts < minimum)[self._group]] = counts.argmax()  # nothing opens where so few come
        counts = np.bincount(self._group[self._fresh], minlength=n)
        some = np.minimum(counts // minimum, 1)
        stock = some + allot(self.rng, counts.astype(float), self.n_items - int(some.sum()), counts // minimum - some)
        self._deal_rows = counts
        tail = long_tail(self.rng, self.n_items, *self.described.tail)
        return Strata(np.repeat(np.arange(n), stock), tail, n)

    def rows(self) -> Iterator[Rows]:
        """All rows, some users' at a time, users ascending."""
        d, rng = self.described, self.rng
        n_communities = int(self.people.community.max()) + 1 if d.taste.shared else 1
        opinions = Opinions(rng, self.items.weight, d.levels, n_communities) if d.levels else None
        deviation = float(self.people.taste[: 1 << 16].std())
        pairs = self._repeated() if d.repeats else self._distinct()
        for begin, end, user, item in pairs:
            level = np.empty(0, dtype=np.int8)
            if opinions:
                liking = self.people.taste[begin + user, self.kind(item)] / deviation
                level = opinions(rng, user, item, liking, self.people.community[begin:end])
            time = self._times(user, item, self.quota[begin:end])
            yield Rows(begin + user, item, level, time)

    def _distinct(self) -> Iterator[tuple[int, int, Ints, Ints]]:
        """First and last user, and distinct pairs of user (from the first) and item, every item among them."""
        rng, style = self.rng, self.described.style
        who, what = everything_once(rng, self.items, self.quota, self._liking)
        for begin, end in blocks(self.quota, BLOCK):
            liking = self._liking(np.arange(begin, end))
            if style:
                liking *= np.exp(style * np.round(rng.standard_normal(liking.shape, dtype=np.float32), 4))
            sure = slice(*np.searchsorted(who, [begin, end]))
            user, item = draw_pairs(rng, liking, self.items, self.quota[begin:end], (who[sure] - begin, what[sure]))
            yield begin, end, user, item

    def _repeated(self) -> Iterator[tuple[int, int, Ints, Ints]]:
        """First and last user, and user (from the first) and item of every row."""
        deal, at = Deal(self.items, self._deal_rows, minimum=self.described.repeats), 0
        for begin, end in blocks(self.quota, BLOCK):
            user = np.repeat(np.arange(end - begin), self.quota[begin:end])
            part = slice(at, at := at + len(user))
            fresh = self._fresh[part]
            item = deal(self.rng, self._group[part][fresh].astype(np.int64))[np.cumsum(fresh) - 1]
            yield begin, end, user, item

    def _times(self, user: Ints, item: Ints, quota: Ints) -> Ints:
        """(n_rows,) seconds, of rows of users from 0."""
        t, rng = self.described.times, self.rng
        phase = phases(rng, user, self.items.stratum[item])
        if t.days:
            shares = np.cumsum(t.days) / np.sum(t.days)
            day = np.searchsorted(shares, (np.arange(1 << 16) + 0.5) / (1 << 16), side="right")
            return t.first + DAY * day[(phase * (1 << 16)).astype(np.int64)]
        joined = (t.last - t.first) * np.round(rng.random(len(quota)) ** t.growth, 6)
        rest = t.last - t.first - joined
        median, sigma = t.span
        spans = np.round(rest * -np.expm1(-DAY * median * rng.lognormal(0, sigma, len(quota)) / (rest + 1)), 2)
        begin, place = sittings(rng, quota, user, phase, rows=t.rows, spans=spans)
        return np.minimum(t.first + (joined[user] + begin + place * t.sitting).astype(np.int64), t.last)

    def friendships(self, n_members: int, n_pairs: int) -> tuple[Ints, Ints]:
        """Friendships of the most active users, each seen from either side, users ascending; all of them have one."""
        chosen = self.people.propensity + self.rng.standard_normal(self.n_users)
        members = np.sort(np.argsort(chosen, kind="stable")[-n_members:])
        people = self.people.take(members)
        near = np.argsort(people.community, kind="stable")
        pairs = near[np.arange(n_members + n_members % 2) % n_members].reshape(-1, 2).T
        n_links = 2 * max(n_pairs, n_members)
        source, target = follow(self.rng, people, n_links, reciprocity=1.0, start=(pairs[0], pairs[1]))
        return members[source], members[target]
