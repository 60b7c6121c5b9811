"""Synthetic replicas of Ciao and Epinions (Tang et al., 2012): their files, their sizes, their traps, at any scale.

Users mostly trust others of their community, which looks into the same products and likes the same of them, so that
social recommendation has something to find. Two things are not as published. Users agree far more with those whom they
trust than Ciao's do once product and user are accounted for. In the replica of Epinions with time slots trust and
ratings name the same users, while in the published release they are numbered apart. Rows that repeat a user and
product, ratings of 0, users who trust themselves and missing ids are as many as published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from tasks.datasets.fetch import ReplicaOptions
from tasks.datasets.synthetic.generator import DAY, Description, Replica, Times, World
from tasks.datasets.synthetic.homophily import Described, Taste, follow
from tasks.datasets.synthetic.skew import Floats, grades, ids, pick, scale_size
from tasks.datasets.trust import CIAO, EPINIONS


class Trust(Described):
    """A published trust file. Numbers at scale 1."""

    users: int
    """Only users 1 to this number are in it."""
    relations: int
    reciprocity: float
    repeats: int = 0
    """Rows that repeat a pair."""
    loops: int = 0
    """Rows in which users trust themselves."""


class Traps(Described):
    """What is odd about published ratings, and what the description of their sizes leaves out. Numbers at scale 1."""

    last_user: int
    last_product: int
    """Highest ids; others are missing."""
    repeats: int
    """Rows that repeat a (user, product), most of them with another rating."""
    zeros: int = 0
    """Ratings of 0."""
    helpful: tuple[float, ...]
    """Shares of helpfulness 1, 2, ..."""
    slots: tuple[float, ...] = ()
    """Shares of the time slots 1, 2, ...; none where there are days instead."""
    trust: dict[str, Trust]
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
        name="Ciao", users=7_375, items=105_114, rows=282_650, size=1_300_000, min_rows=4, max_rows=3_000,
        levels=(0.04, 0.05, 0.11, 0.31, 0.49), kinds=tuple(0.92**rank for rank in range(28)), community_size=60,
        times=_TIMES, **_COMMON,
    ),
    "epinions": Description(
        name="Epinions", users=22_164, items=296_277, rows=912_441, size=4_300_000, max_rows=5_000,
        levels=(0.06, 0.07, 0.13, 0.32, 0.42), kinds=tuple(0.92**rank for rank in range(27)), community_size=150,
        times=_TIMES, **_COMMON,
    ),
}  # fmt: skip
_CIAO_TRUST = Trust(users=7_375, relations=111_781, reciprocity=0.48)
TRAPS = {
    "ciao": Traps(
        last_user=7_375, last_product=106_797, repeats=1_436, zeros=34,
        helpful=(0.7, 0.24, 0.01, 0.04, 0.003, 0.005, 0.0005),
        trust={"plain": _CIAO_TRUST, "timestamps": _CIAO_TRUST},
    ),
    "epinions": Traps(
        last_user=22_166, last_product=296_277, repeats=9_826, helpful=(0.2, 0.68, 0.1, 0.017, 0.003),
        slots=(0.4, 0.13, 0.06, 0.06, 0.06, 0.05, 0.05, 0.05, 0.06, 0.04, 0.04),
        trust={
            "plain": Trust(users=22_164, relations=355_754, reciprocity=0.39, repeats=27, loops=224),
            "timestamps": Trust(users=8_519, relations=300_548, reciprocity=0.43, repeats=457, loops=155),
        },
    ),
}  # fmt: skip
HEADER = "MATLAB 5.0 MAT-file, SYNTHETIC DATA: drawn at random, no user in it is real"


class ObtainOptions(ReplicaOptions):
    """Which data set's replica, and how large: users, products, ratings and relations grow with the scale."""

    layout: Literal["ciao", "epinions"]
    release: Literal["plain", "timestamps"]
    """Without or with times (Epinions: slots 1 to 11)."""


def _write(folder: Path, world: World, options: ObtainOptions) -> None:
    traps, scale = TRAPS[options.layout], options.scale
    users = ids(world.rng, world.n_users, round(traps.last_user * scale))
    ratings, since = _ratings(world, traps)
    relations = _relations(world, traps.trust[options.release], traps.slots, since)
    time = "slot" if traps.slots else "timestamp"
    if options.release == "plain":
        ratings, relations = ratings.drop(time), relations.drop("slot", strict=False)
    elif time == "timestamp":
        ratings = ratings.sort(time, maintain_order=True)
    files = (CIAO if options.layout == "ciao" else EPINIONS).releases[options.release]
    files[0].write(folder, ratings.with_columns(user=users[ratings["user"]]), np.int32, HEADER)
    relations = relations.with_columns(source=users[relations["source"]], target=users[relations["target"]])
    files[1].write(folder, relations, np.uint16 if users[-1] < 1 << 16 else np.int32, HEADER)


def _relations(world: World, trust: Trust, slots: tuple[float, ...], since: Floats) -> pl.DataFrame:
    """source and target from 0, as published: with loops and repeats, and slots where there are some."""
    rng, scale = world.rng, world.scale
    some = world.people.take(np.arange(min(world.n_users, scale_size(trust.users, scale, minimum=2))))
    number = scale_size(trust.relations - trust.repeats - trust.loops, scale)
    rows = np.stack(follow(rng, some, number, reciprocity=trust.reciprocity), axis=1)
    loops = np.repeat(rng.integers(0, len(some), round(trust.loops * scale))[:, None], 2, axis=1)
    rows = np.concatenate([rows, loops, rows[rng.integers(0, len(rows), round(trust.repeats * scale))]])
    table = pl.DataFrame(rows, schema=["source", "target"])
    if slots:  # a relation is there once both users are
        table = table.with_columns(slot=1 + grades(since[rows].max(axis=1) + 1e-3 * rng.random(len(rows)), slots))
    return table.sort("source", maintain_order=True)


def _ratings(world: World, traps: Traps) -> tuple[pl.DataFrame, Floats]:
    """Rows as published, by users, who count from 0; and when each joined, as a share of the time."""
    rng, n = world.rng, world.n_rows
    rows = pl.concat(
        pl.DataFrame([r.user, r.item, 1 + r.level, r.time], ["user", "item", "rating", "time"]) for r in world.rows()
    )
    item, time = rows["item"].to_numpy(), rows["time"].to_numpy()
    when = (time - time.min()) / max(time.max() - time.min(), 1)
    days = FIRST_DAY + DAY * np.round(when * ((LAST_DAY - FIRST_DAY) // DAY)).astype(np.int64)
    rated = np.ones(n, dtype=np.int64)
    rated[rng.choice(n, min(round(traps.zeros * world.scale), n), replace=False)] = 0
    table = rows.select(
        "user",
        item=ids(rng, world.n_items, round(traps.last_product * world.scale))[item],
        category=1 + world.kind(item),
        rating=rated * rows["rating"].to_numpy(),
        helpfulness=1 + pick(rng, traps.helpful, n),
        **({"slot": 1 + grades(when, traps.slots)} if traps.slots else {"timestamp": days}),
    )
    # Half of the rows that name a user and product again do so with another rating.
    again = table.filter(pl.col("rating") > 0).sample(
        round(traps.repeats * world.scale), with_replacement=True, seed=int(rng.integers(1 << 32))
    )
    again = again.with_columns(
        pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.col("rating") % 5 + 1).otherwise("rating")
    )
    since = np.minimum.reduceat(when, np.cumsum(world.quota) - world.quota)
    return pl.concat([table, again]).sort("user", maintain_order=True), since


REPLICA = Replica(
    "twin-trust",
    "synthetic ratings of products and trust between users in the formats and sizes of Ciao or Epinions",
    "obtain: {layout: ciao, release: plain, scale: 1.0, seed: 2012}, format: ciao, read: {}",
    LAYOUTS,
    ObtainOptions,
    World,
    _write,
)
