"""The one generator of replicas: from the description of a published data set to its users, items and rows.

A data set is described by its sizes, its tails, the kinds of its items and what its users like, when they act, and what
is known of them (`Description`). What a user likes decides what the user has, how it is rated and which attributes the
user has; friends and neighbours like the same. So what a recommender, a social model or an attack is to find is there
to be found. Replicas of two networks of users are described in `tasks.datasets.synthetic.networks`.

Rows come some users' at a time, so that memory does not grow with them but for what a writer keeps, and for an item a
row where users come back to items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from tasks.datasets.fetch import Places, ReplicaOptions, Source
from tasks.datasets.synthetic import skew
from tasks.datasets.synthetic.homophily import Described, Taste, by_taste, follow, populate
from tasks.datasets.synthetic.skew import Floats, Ints, Strata

BLOCK = 4_000_000
"""Rows that are worked on at a time."""
DENSEST = 1 / 3
"""Largest share of all pairs of user and item that are in a data set, however small its scale."""
DAY = 86_400
QUALITY, FAME, MOOD, LIKING, AFFINITY, N_FACTORS = 0.5, 0.3, 0.5, 0.5, 0.9, 4
"""What ratings follow from, against standard normal noise. FAME: popular items are better; AFFINITY: hidden factors."""
SHARED = 0.9
"""Share of the variance of a user's hidden factors that is the community's, where a community shares its taste."""


class Attribute(Described):
    """Something that is known of users and follows from their taste."""

    shares: tuple[float, ...]
    """Of its values, in any unit."""
    strength: float = 2.0
    """Weight of taste against chance."""


class Times(Described):
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


class Description(Described):
    """A published data set: numbers at scale 1, as published where they are, and what is invented about it."""

    name: str
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
    """Share of a user's rows at the place where the user's community lives; 0 where places do not matter."""
    style: float = 0.0
    """Standard deviation of a user's taste for each place of a kind, where pairs are distinct."""
    shelves: int = 0
    """Strata where they are not kinds at places, each in one kind; they grow with the square root of the scale."""
    taste: Taste
    community_size: int = 1_000
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    levels: tuple[float, ...] = ()
    """Shares of the rating levels, lowest first; none where rows are not rated."""
    times: Times

    def sizes(self, scale: float) -> tuple[int, int, int]:
        """Users, items and rows at another scale; the described numbers at scale 1.

        Users and rows grow with the scale. Small data keep 10 users, 100 items, `min_rows` rows a user and `repeats` an
        item, and are no denser than `DENSEST`.
        """
        users = skew.scale_size(self.users, scale, minimum=10)
        items = skew.scale_size(self.items, scale, self.item_power, minimum=100)
        rows = skew.scale_size(self.rows, scale, minimum=max((1 + self.repeats) * items, self.min_rows * users))
        return users, items, rows if self.repeats else min(rows, round(DENSEST * users * items))

    def source(self, source: Source, scale: float) -> Source:
        """What is said of the replica at this scale."""
        users, items, rows = self.sizes(scale)
        words = f"{rows:,} synthetic {self.words[0]} by {users:,} {self.words[1]} of {items:,} {self.words[2]}"
        return replace(source, holds=f"{words}, as of {self.name}", about=round(self.size * rows / self.rows))


@dataclass(frozen=True)
class Replica:
    """A source that generates the files of a published format."""

    name: str
    holds: str
    entry: str
    """What params.yaml says of it besides the source."""
    layouts: Mapping[str, Any]
    """The option `layout`, empty where there is none -> description; the first is the usual one."""
    ObtainOptions: type[ReplicaOptions]
    draw: Callable[[Any, Any], Any]
    """Description and options -> what is drawn: `World`, or a `Pair` of networks."""
    write: Callable[[Path, Any, Any], None]
    """Writes all files of what was drawn into a folder."""

    @property
    def SOURCE(self) -> Source:
        """What is said of it for all options."""
        return Source(
            name=self.name,
            address="",
            synthetic=True,
            holds=self.holds,
            about=next(iter(self.layouts.values())).size,
            entry=f"{{source: {self.name.replace('-', '_')}, {self.entry}}}",
            licence="SYNTHETIC data: everything in it is drawn at random.",
            terms="Public domain (CC0 1.0).",
        )

    def source(self, options: ReplicaOptions) -> Source:
        """SOURCE, with the size of what these options ask for, where its description has sizes."""
        described = self.layouts[getattr(options, "layout", "")]
        return described.source(self.SOURCE, options.scale) if isinstance(described, Description) else self.SOURCE

    def obtain(self, folder: Path, _: Places, options: ReplicaOptions) -> None:
        """Fill `folder` with the files and a NOTE of what they are; the same bytes for the same options."""
        described = self.layouts[getattr(options, "layout", "")]
        self.write(folder, self.draw(described, options), options)
        settings = ", ".join(f"{key} {value}" for key, value in options.model_dump().items())
        (folder / "NOTE").write_text(
            f"SYNTHETIC DATA\n\nGenerated at random ({settings}) in the file format of {described.name}.\n"
            "No user, item or text in it is real, and no result on it says anything about real people.\n"
        )


@dataclass(frozen=True)
class Rows:
    """Rows of some users, all of theirs, users ascending, (n_rows,) each."""

    user: Ints
    item: Ints
    level: Ints
    """From 0; empty where rows are not rated."""
    time: Ints
    """Seconds since 1970."""


class World:
    """Users and items of a replica, and what draws its rows."""

    def __init__(self, description: Description, options: ReplicaOptions) -> None:
        """Draw the users and the items, and where users come back to items the rows."""
        self.described, self.scale = description, options.scale
        self.rng = np.random.default_rng(options.seed)
        self.n_users, self.n_items, self.n_rows = description.sizes(options.scale)
        d, rng = description, self.rng
        self.people = populate(rng, self.n_users, len(d.kinds), d.taste, d.community_size)
        self.attributes = {
            name: by_taste(rng, self.people.taste, attribute.shares, strength=attribute.strength)
            for name, attribute in d.attributes.items()
        }
        upper = self.n_rows if d.repeats else self.n_items
        maximum = d.max_rows if d.repeats else min(round(d.max_rows / d.items * self.n_items), upper)
        maximum = max(maximum, min(2 * self.n_rows // self.n_users, upper), d.min_rows)
        self.quota = skew.activity(
            rng, self.people.propensity, self.n_rows, minimum=d.min_rows, maximum=maximum, sigma=d.sigma
        )
        self.strata = self._strata()
        """The strata, each of weight in its kind."""
        shares = np.array(d.places) / np.sum(d.places)
        self.home = rng.choice(len(shares), int(self.people.community.max()) + 1, p=shares)[self.people.community]
        """(n_users,) place."""
        if d.repeats:
            self.items, self._visited = self._visit()
        else:
            stratum = rng.choice(len(self.strata), self.n_items, p=self.strata.weight / self.strata.weight.sum())
            self.items = Strata(stratum, skew.long_tail(rng, self.n_items, *d.tail), len(self.strata))

    def _strata(self) -> Strata:
        d = self.described
        kinds, places = np.array(d.kinds), np.array(d.places)
        if d.shelves:
            n = skew.scale_size(d.shelves, self.scale, 0.5, minimum=2 * len(kinds))
            return Strata(
                self.rng.permutation(np.arange(n) % len(kinds)), skew.long_tail(self.rng, n, 6.0, 0.5), len(kinds)
            )
        weight = np.ceil(1e6 * np.outer(kinds / kinds.max(), places / places.max())).ravel()
        return Strata(np.repeat(np.arange(len(kinds)), len(places)), weight, len(kinds))

    def kind(self, items: Ints) -> Ints:
        """The kinds of these items."""
        return self.strata.stratum[self.items.stratum[items]]

    def _visit(self) -> tuple[Strata, Ints]:
        """The items, of each stratum in proportion to its rows, and the item of every row."""
        d, rng, n = self.described, self.rng, len(self.strata)
        user = np.repeat(np.arange(self.n_users), self.quota)
        begins = (np.diff(user, prepend=-1) > 0) | (rng.random(len(user)) < 1 / d.run)
        kind = skew.choose(rng, np.exp(self.people.taste.astype(np.float64)) * self.strata.mass, user[begins])
        stratum = self.strata.pick(rng, kind)
        if d.at_home:
            home = kind * len(d.places) + self.home[user[begins]]
            stratum = np.where(rng.random(len(kind)) < d.at_home, home, stratum)
        fresh = begins | (rng.random(len(user)) >= d.again)
        stratum = stratum[np.cumsum(begins) - 1][fresh]
        counts = np.bincount(stratum, minlength=n)
        stratum[(counts < d.repeats)[stratum]] = counts.argmax()  # nothing opens where so few come
        counts = np.bincount(stratum, minlength=n)
        stock = skew.allot(rng, counts.astype(float), self.n_items, counts // d.repeats, 1)
        items = Strata(np.repeat(np.arange(n), stock), skew.long_tail(rng, self.n_items, *d.tail), n)
        return items, items.deal(rng, stratum, d.repeats)[np.cumsum(fresh) - 1]

    def rows(self) -> Iterator[Rows]:
        """All rows, some users' at a time."""
        d, rng, at = self.described, self.rng, 0
        certain = None if d.repeats else skew.everything_once(rng, self.items, self.quota, self._liking)
        score, first = self._opinions(), None
        for begin, end in skew.blocks(self.quota, BLOCK):
            quota = self.quota[begin:end]
            if certain is None:
                user, item = np.repeat(np.arange(end - begin), quota), self._visited[at : (at := at + quota.sum())]
            else:
                liking = self._liking(np.arange(begin, end))
                liking *= np.exp(d.style * np.round(rng.standard_normal(liking.shape, dtype=np.float32), 4))
                sure = slice(*np.searchsorted(certain[0], [begin, end]))
                user, item = skew.draw_pairs(
                    rng, liking, self.items, quota, (certain[0][sure] - begin, certain[1][sure])
                )
            level = np.empty(0, dtype=np.int64)
            if d.levels:
                scores = score(user, item, begin, end)
                first = scores if first is None else first
                level = skew.grades(scores, d.levels, among=first)
            yield Rows(begin + user, item, level, self._times(user, item, quota))

    def _liking(self, users: Ints) -> Floats:
        """(n, n_strata) positive, what these users like."""
        d, kind = self.described, self.strata.stratum
        liking = np.exp(self.people.taste[users][:, kind].astype(np.float64))
        if d.at_home:
            position = np.arange(len(kind)) % len(d.places)
            far = (1 - d.at_home) / len(d.places)
            liking *= np.where(position == self.home[users][:, None], d.at_home, far)
        return liking

    def _opinions(self) -> Callable[[Ints, Ints, int, int], Floats]:
        """(users from `begin`, items, begin, end) -> how good they find them."""
        rng, people, fame = self.rng, self.people, np.log(self.items.weight)
        quality = FAME * (fame - fame.mean()) / max(fame.std(), 1e-6) + QUALITY * rng.standard_normal(self.n_items)
        style = rng.standard_normal((self.n_items, N_FACTORS), dtype=np.float32)
        shared = rng.standard_normal((int(people.community.max()) + 1, N_FACTORS), dtype=np.float32)
        of_community = SHARED if self.described.taste.shared else 0.0
        deviation = float(people.taste[: 1 << 16].std())

        def score(user: Ints, item: Ints, begin: int, end: int) -> Floats:
            likes = np.sqrt(1 - of_community) * rng.standard_normal((end - begin, N_FACTORS), dtype=np.float32)
            likes += np.sqrt(of_community) * shared[people.community[begin:end]]
            scores = MOOD * rng.standard_normal(end - begin)[user] + quality[item] + rng.standard_normal(len(user))
            scores += LIKING / deviation * people.taste[begin + user, self.kind(item)]
            scores += AFFINITY / np.sqrt(N_FACTORS) * np.einsum("ij,ij->i", likes[user], style[item])
            return np.round(scores, 6)

        return score

    def _times(self, user: Ints, item: Ints, quota: Ints) -> Ints:
        """(n_rows,) seconds, of rows of users from 0.

        A user goes through strata one after another, roughly: what follows an item is more often of its stratum than
        chance has it.
        """
        t, rng = self.described.times, self.rng
        stratum = rng.random(self.items.n_strata)[self.items.stratum[item]]
        phase = (rng.uniform(1e3, 1e4, len(quota))[user] * stratum + 0.04 * rng.random(len(user))) % 1
        if t.days:
            shares = np.cumsum(t.days[:-1]) / np.sum(t.days)
            return t.first + DAY * np.searchsorted(shares, phase, side="right")
        joined = (t.last - t.first) * np.round(rng.random(len(quota)) ** t.growth, 6)
        left = t.last - t.first - joined
        median, sigma = t.span
        stays = left * -np.expm1(-DAY * median * rng.lognormal(0, sigma, len(quota)) / (left + 1))
        number = 1 + rng.poisson(quota / t.rows)
        sitting, within = np.divmod(phase * number[user], 1)
        start = rng.random(int(number.sum()))[(np.cumsum(number) - number)[user] + sitting.astype(np.int64)]
        begin = np.round((sitting + start) / number[user] * stays[user], 2)
        return np.minimum(t.first + (joined[user] + begin + within * t.sitting).astype(np.int64), t.last)

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
