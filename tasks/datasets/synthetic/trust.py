"""Synthetic replicas of Ciao and Epinions (Tang et al., 2012): their files, their sizes, their traps, at any scale.

Users mostly trust others of their community, which looks into the same products and likes the same of them, so that
social recommendation has something to find. Three things are not as published. Users agree far more with those whom
they trust than Ciao's do once product and user are accounted for. In the replica of Epinions with time slots trust and
ratings name the same users, while in the published release they are numbered apart. And everything that is not a size
or a trap (tails, shares of categories, dates) is of the same kind as published, not equal to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from tasks.datasets.fetch import Places, ReplicaOptions, Source
from tasks.datasets.matlab import Matrix
from tasks.datasets.synthetic.generator import DAY, Description, Times, World, synthetic_source, write_note
from tasks.datasets.synthetic.homophily import Taste, follow
from tasks.datasets.synthetic.skew import Floats, Grades, Ints, choose, ids, integer_weights, scale_size
from tasks.datasets.trust import CIAO, EPINIONS, PLAIN_TRUST


class Trust(BaseModel):
    """A published trust file. Numbers at scale 1."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    file: Matrix
    users: int
    """Only users 1 to this number are in it."""
    relations: int
    reciprocity: float
    repeats: int = 0
    """Rows that repeat a pair."""
    loops: int = 0
    """Rows in which users trust themselves."""
    slots: tuple[float, ...] = ()
    """Shares of the time slots 1, 2, ...; none where relations have no time."""


class Traps(BaseModel):
    """What is odd about published ratings, and what the description of their sizes leaves out. Numbers at scale 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    last_user: int
    last_product: int
    """Highest ids; others are missing."""
    repeats: int
    """Rows that repeat a (user, product)."""
    same: int
    """Of these, the ones that repeat all columns but the time."""
    same_time: int
    """Of these, the ones that repeat the time as well."""
    zeros: int
    """Ratings of 0."""
    moved: int
    """Products that are in two categories."""
    helpful: tuple[float, ...]
    """Shares of helpfulness 1, 2, ..."""
    slots: tuple[float, ...] = ()
    """Shares of the time slots 1, 2, ...; none where ratings have days instead."""
    trust: dict[str, tuple[Trust, ...]]
    """By release."""


_COMMON: dict[str, Any] = {
    "words": ("ratings", "users", "products"), "item_power": 1.0, "sigma": 1.6, "tail": (12.0, 0.15),
    "places": (1,) * 12, "at_home": 0.75, "taste": Taste(shared=0.9, individual=0.8),
}  # fmt: skip
FIRST_DAY, LAST_DAY = 959_670_000, 1_302_591_600
"""Ciao's times, seconds since 1970: days, from the first of them to the last."""
_TIMES = Times(first=FIRST_DAY, last=LAST_DAY, growth=2.5, span=(700, 1.0), rows=3)
LAYOUTS = {
    "ciao": Description(  # rows without those that repeat others
        users=7_375, items=105_114, rows=282_650, size=1_300_000, min_rows=4, max_rows=3_000,
        levels=(0.04, 0.05, 0.11, 0.31, 0.49), kinds=tuple(0.92**rank for rank in range(28)), community_size=60,
        times=_TIMES, **_COMMON,
    ),
    "epinions": Description(
        users=22_164, items=296_277, rows=912_441, size=4_300_000, max_rows=5_000,
        levels=(0.06, 0.07, 0.13, 0.32, 0.42), kinds=tuple(0.92**rank for rank in range(27)), community_size=150,
        times=_TIMES, **_COMMON,
    ),
}  # fmt: skip
_CIAO_TRUST = Trust(file=PLAIN_TRUST, users=7_375, relations=111_781, reciprocity=0.48)
TRAPS = {
    "ciao": Traps(
        last_user=7_375, last_product=106_797, repeats=1_436, same=652, same_time=190, zeros=34, moved=105,
        helpful=(0.7, 0.24, 0.01, 0.04, 0.003, 0.005, 0.0005),
        trust={
            "plain": (_CIAO_TRUST,),
            "timestamps": (
                _CIAO_TRUST,
                Trust(file=Matrix("trust.mat", "trust", PLAIN_TRUST.columns), users=2_378, relations=57_544,
                      reciprocity=0.48),
            ),
        },
    ),
    "epinions": Traps(
        last_user=22_166, last_product=296_277, repeats=9_826, same=4_648, same_time=4_116, zeros=0, moved=600,
        helpful=(0.2, 0.68, 0.1, 0.017, 0.003),
        slots=(0.39, 0.12, 0.06, 0.06, 0.06, 0.05, 0.05, 0.06, 0.07, 0.04, 0.04),
        trust={
            "plain": (
                Trust(file=EPINIONS.releases["plain"][1], users=22_164, relations=355_754, reciprocity=0.39,
                      repeats=27, loops=224),
            ),
            "timestamps": (
                Trust(file=EPINIONS.releases["timestamps"][1], users=8_519, relations=300_548, reciprocity=0.43,
                      repeats=457, loops=155,
                      slots=(0.52, 0.16, 0.06, 0.06, 0.05, 0.04, 0.03, 0.03, 0.03, 0.01, 0.01)),
            ),
        },
    ),
}  # fmt: skip
HEADER = "MATLAB 5.0 MAT-file, SYNTHETIC DATA: drawn at random, no user in it is real"
SOURCE = synthetic_source(
    "twin-trust",
    "synthetic ratings of products and trust between users in the formats and sizes of Ciao or Epinions",
    "obtain: {layout: ciao, release: plain, scale: 1.0, seed: 2012}, format: ciao, read: {}",
    LAYOUTS["ciao"].size,
)


class ObtainOptions(ReplicaOptions):
    """Which data set's replica, and how large: users, products, ratings and relations grow with the scale."""

    layout: Literal["ciao", "epinions"]
    release: Literal["plain", "timestamps"]
    """Without or with times (Epinions: slots 1 to 11)."""


def source(options: ObtainOptions) -> Source:
    """SOURCE, with the size of what these options ask for."""
    return LAYOUTS[options.layout].source(SOURCE, options.scale, options.layout)


def obtain(folder: Path, _: Places, options: ObtainOptions) -> None:
    """Fill `folder` with the release's .mat files and a NOTE; the same bytes for the same options."""
    traps, world = TRAPS[options.layout], World(LAYOUTS[options.layout], options)
    users = ids(world.rng, world.n_users, round(traps.last_user * options.scale))
    ratings, since = _ratings(world, traps)
    ratings = ratings.with_columns(user=users[ratings["user"].to_numpy()])
    network = CIAO if options.layout == "ciao" else EPINIONS
    time = "slot" if traps.slots else "timestamp"
    if options.release == "plain":
        ratings = ratings.drop(time)
    elif not traps.slots:
        ratings = ratings.sort(time, maintain_order=True)
    network.releases[options.release][0].write(folder, ratings, np.int32, HEADER)
    for trust in traps.trust[options.release]:
        relations = _relations(world, trust, since)
        relations = relations.with_columns(source=users[relations["source"]], target=users[relations["target"]])
        small = relations.max().max_horizontal().item() < 2**16
        trust.file.write(folder, relations, np.uint16 if small else np.int32, HEADER)
    write_note(folder, options, options.layout.capitalize())


def _relations(world: World, trust: Trust, since: Floats) -> pl.DataFrame:
    """source and target from 0, as published: with loops and repeats, and slots where there are some."""
    rng, scale = world.rng, world.scale
    some = world.people.take(np.arange(min(world.n_users, scale_size(trust.users, scale, minimum=2))))
    number = scale_size(trust.relations - trust.repeats - trust.loops, scale)
    rows = np.stack(follow(rng, some, number, reciprocity=trust.reciprocity), axis=1)
    loops = np.repeat(rng.integers(0, len(some), round(trust.loops * scale))[:, None], 2, axis=1)
    rows = np.concatenate([rows, loops, rows[rng.integers(0, len(rows), round(trust.repeats * scale))]])
    table = pl.DataFrame(rows, schema=["source", "target"])
    if trust.slots:
        # A relation is there once both users are.
        when = np.maximum(since[rows[:, 0]], since[rows[:, 1]]) + np.round(rng.exponential(0.1, len(rows)), 6)
        table = table.with_columns(slot=1 + Grades(trust.slots)(when).astype(np.int64))
    return table.sort("source", maintain_order=True)


def _ratings(world: World, traps: Traps) -> tuple[pl.DataFrame, Floats]:
    """Rows as published, by users, who count from 0; and when each joined, as a share of the time."""
    rng, n = world.rng, world.n_rows
    rows = pl.concat(
        pl.DataFrame({"user": r.user, "item": r.item, "rating": 1 + r.level, "time": r.time}) for r in world.rows()
    ).sort("user", "item")
    item = rows["item"].to_numpy()
    when = (rows["time"].to_numpy() - FIRST_DAY) / (LAST_DAY - FIRST_DAY)
    since = np.minimum.reduceat(when, np.cumsum(world.quota) - world.quota)
    helpful = integer_weights(np.array([traps.helpful]))
    table = rows.select(
        "user",
        item=ids(rng, world.n_items, round(traps.last_product * world.scale))[item],
        category=world.kind(item),
        rating=pl.col("rating").cast(pl.Int64),
        helpfulness=1 + choose(rng, helpful, np.zeros(n, dtype=np.int64)),
        time=1 + Grades(traps.slots)(when).astype(np.int64) if traps.slots else _days(when),
    )
    matrix = table.to_numpy().copy()
    matrix[rng.choice(n, min(round(traps.zeros * world.scale), n), replace=False), 3] = 0
    # The last row of a product that has several goes into the next category.
    last = n - 1 - np.unique(item[::-1], return_index=True)[1]
    last = last[np.bincount(item)[item[last]] > 1]
    elsewhere = rng.permutation(last)[: round(traps.moved * world.scale)]
    matrix[elsewhere, 2] = (matrix[elsewhere, 2] + 1) % len(world.described.kinds)
    matrix[:, 2] += 1
    again = _repeated(rng, matrix, round(traps.repeats * world.scale), traps)
    names = {"time": "slot" if traps.slots else "timestamp"}
    table = pl.DataFrame(np.concatenate([matrix, again]), schema=table.columns).rename(mapping=names)
    return table.sort("user", maintain_order=True), since


def _days(when: Floats) -> Ints:
    """Ciao's times: days from the first to the last, both of them there."""
    day = np.round((when - when.min()) / max(when.max() - when.min(), 1e-9) * ((LAST_DAY - FIRST_DAY) // DAY))
    return FIRST_DAY + DAY * day.astype(np.int64)


def _repeated(rng: np.random.Generator, table: Ints, number: int, traps: Traps) -> Ints:
    """Rows that name a user and product again: wholly, at another time, or with another rating."""
    rated = np.flatnonzero(table[:, 3] > 0)
    rows = table[rated[rng.integers(0, len(rated), number)]]
    kind = np.arange(number) / max(number, 1) * traps.repeats
    other_rating, other_time = kind >= traps.same, kind >= traps.same_time
    rows[other_rating, 3] = rows[other_rating, 3] % 5 + 1
    if traps.slots:
        rows[other_time, 5] = rows[other_time, 5] % len(traps.slots) + 1
    else:
        rows[other_time, 5] += np.where(rows[other_time, 5] < LAST_DAY, DAY, -DAY)
    return rows
