"""A synthetic replica of Tmall's log (IJCAI-15 repeat buyers): its files, formats and sizes, at any scale.

A user looks into one category after another, and acts on a few of its goods. Numbers of users, goods and actions,
shares of actions, ages and genders, and the rush of 11 November are as published; everything else is invented.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from tasks.datasets.fetch import ReplicaOptions
from tasks.datasets.synthetic.generator import DAY, Attribute, Description, Replica, Times, World
from tasks.datasets.synthetic.homophily import Taste
from tasks.datasets.synthetic.skew import Ints, Strata, allot, ids, long_tail, pick, scale_size
from tasks.datasets.tmall import LOG, USERS

CATEGORIES, SELLERS, BRANDS = 1_658, 4_995, 8_443
"""Sellers and brands grow with the square root of the scale."""
LAST_ITEM, LAST_CATEGORY, LAST_BRAND = 1_113_166, 1_671, 8_477
"""Highest ids; others are missing."""
ACTIONS = (48_550_713, 76_750, 3_292_144, 3_005_723)
"""Clicks, carts, purchases, favourites."""
AGES = (92_914, 24, 52_871, 111_654, 79_991, 40_777, 35_464, 6_992, 1_266)
"""Users with age_range 0 (unknown) to 8; it is blank for the rest."""
GENDERS = (285_638, 121_670, 10_426)
"""Users with gender 0 (female), 1 (male) and 2 (unknown); it is blank for the rest."""
NO_BRAND = 91_015
"""Rows whose brand is blank."""
DEPARTMENTS = 40
_QUIET_DAYS = np.linspace(0.28, 0.44, 174)
TMALL = Description(
    name="Tmall's log", words=("actions", "users", "items"), users=424_170, items=1_090_390,
    rows=54_925_330, size=1_887_000_000, item_power=0.75,
    min_rows=3, max_rows=5_000, sigma=1.2, tail=(8.0, 0.4), repeats=1, run=5.0, again=0.25,
    kinds=(1,) * DEPARTMENTS, shelves=CATEGORIES, taste=Taste(common=1.5, factors=4, individual=0.4),
    attributes={"age": Attribute(shares=AGES[1:]), "gender": Attribute(shares=GENDERS[:2], strength=4.0)},
    # 11 May to 11 November 2014: ever more happens, most of all on the last day.
    times=Times(first=1_399_766_400, last=1_415_664_000, days=(*_QUIET_DAYS.tolist(), *[1.4] * 9, 5.6, 19)),
)  # fmt: skip


def _write(folder: Path, world: World, _: ReplicaOptions) -> None:
    users = world.rng.permutation(np.arange(1, world.n_users + 1))
    USERS.write(folder, [_users(world, users)])
    goods = _goods(world)
    days = pl.from_epoch(pl.Series(TMALL.times.first + DAY * np.arange(len(TMALL.times.days))))
    stamps = (100 * days.dt.month().cast(pl.Int32) + days.dt.day()).to_numpy()
    tables = (
        pl.DataFrame(
            {
                "user_id": users[rows.user],
                "time_stamp": stamps[(rows.time - TMALL.times.first) // DAY],
                "action_type": pick(world.rng, ACTIONS, len(rows.user)),
            }
        ).hstack(goods[rows.item])
        for rows in world.rows()
    )
    LOG.write(folder, tables)


def _users(world: World, users: Ints) -> pl.DataFrame:
    """What the file says of users' ages and genders: for some unknown, for others nothing."""

    def hide(values: Ints, filled: int, unknown: int, code: int) -> pl.Series:
        kind = pl.Series(pick(world.rng, (filled, unknown, TMALL.users - filled - unknown), len(values)))
        return pl.Series(values).set(kind == 1, code).set(kind == 2, None)

    age = hide(1 + world.attributes["age"], sum(AGES[1:]), AGES[0], 0)
    gender = hide(world.attributes["gender"], sum(GENDERS[:2]), GENDERS[2], 2)
    return pl.DataFrame({"user_id": users, "age_range": age, "gender": gender})


def _goods(world: World) -> pl.DataFrame:
    """item_id, cat_id, seller_id, brand_id of every item; a seller is in one department and mostly has one brand."""
    rng, n, category = world.rng, world.n_items, world.items.stratum
    department = world.kind(np.arange(n))
    stock = np.bincount(department, minlength=DEPARTMENTS)

    def allot_items(published: int) -> Ints:
        """One of so many, each for some items of one department."""
        number = min(n, scale_size(published, world.scale, 0.5, minimum=DEPARTMENTS))
        shares = allot(rng, stock.astype(float), number, stock, 1)
        strata = Strata(np.repeat(np.arange(DEPARTMENTS), shares), long_tail(rng, number, 6.0, 0.4), DEPARTMENTS)
        return strata.deal(rng, department, 1)

    def numbered(codes: Ints, n_codes: int, last: int, published: int) -> Ints:
        return rng.permutation(ids(rng, n_codes, round(last / published * n_codes)))[codes]

    seller, brand = allot_items(SELLERS), allot_items(BRANDS)
    _, first = np.unique(seller, return_index=True)
    usual = rng.random(n) < 0.6
    usual[np.unique(brand, return_index=True)[1]] = False  # no brand is lost
    brand = np.where(usual, brand[first][seller], brand)
    columns = {
        "item_id": numbered(np.arange(n), n, LAST_ITEM, TMALL.items),
        "cat_id": numbered(category, len(world.strata), LAST_CATEGORY, CATEGORIES),
        "seller_id": numbered(seller, len(first), SELLERS, SELLERS),
        "brand_id": numbered(brand, int(brand.max()) + 1, LAST_BRAND, BRANDS),
    }
    no_brand = pl.Series(rng.random(n) < NO_BRAND / TMALL.rows)
    return pl.DataFrame(columns).with_columns(pl.when(~no_brand).then("brand_id"))


REPLICA = Replica(
    "twin_tmall",
    "synthetic clicks, carts, purchases and favourites in the format and size of Tmall's log",
    "obtain: {scale: 1.0, seed: 2015}, format: tmall, read: {layout: official}",
    {"": TMALL},
    ReplicaOptions,
    World,
    _write,
)
