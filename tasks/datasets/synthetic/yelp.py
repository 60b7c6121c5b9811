"""Synthetic replicas of Yelp's open dataset and of HERec's subset of it: their files, formats and sizes, at any scale.

Users review what is near and to their taste; friends live near one another and like the same. Who reviews much has
more votes, fans and friends, too. Numbers are as published; tails and shares of ratings are of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.datasets import yelp_hin
from tasks.datasets.fetch import Places, ReplicaOptions, Source
from tasks.datasets.files import TextTable
from tasks.datasets.synthetic.generator import Description, Times, World, synthetic_source, write_note
from tasks.datasets.synthetic.homophily import Taste
from tasks.datasets.synthetic.skew import (
    Deal,
    Floats,
    Ints,
    Strata,
    activity,
    allot,
    draw_pairs,
    everything_once,
    long_tail,
    scale_size,
)
from tasks.datasets.yelp import BUSINESSES, DATE, REVIEWS, USERS

TOPICS = {
    "Restaurants": 0.40, "Food": 0.13, "Nightlife": 0.09, "Shopping": 0.07, "Beauty & Spas": 0.07,
    "Home Services": 0.06, "Health & Medical": 0.04, "Automotive": 0.04, "Hotels & Travel": 0.04,
    "Active Life": 0.03, "Pets": 0.02, "Arts & Entertainment": 0.01,
}  # fmt: skip
"""Kinds of businesses and their shares."""
AREAS = 11
_COMMON: dict[str, Any] = {
    "item_power": 0.75, "kinds": tuple(TOPICS.values()), "places": tuple(0.75**n for n in range(AREAS)),
    "at_home": 0.85, "taste": Taste(individual=1.2), "community_size": 200,
    "times": Times(first=1_108_500_000, last=1_642_600_000, growth=0.5, span=(1_000, 1.0), rows=1.5, sitting=7_200),
}  # fmt: skip
LAYOUTS = {
    "yelp": Description(  # the release of January 2022
        words=("reviews", "users", "businesses"), users=1_987_897, items=150_346, rows=6_990_280, size=2_781_000_000,
        max_rows=3_000, sigma=2.2, tail=(8.0, 0.35), repeats=5, levels=(0.153, 0.078, 0.099, 0.208, 0.462), **_COMMON,
    ),
    "yelp-hin": Description(
        words=("ratings", "users", "businesses"), users=16_239, items=14_284, rows=198_397, size=5_800_000,
        max_rows=639, sigma=1.9, tail=(7.5, 0.3), levels=(0.0539, 0.0893, 0.1805, 0.3827, 0.2936), **_COMMON,
    ),
}  # fmt: skip
MEMBERS, FRIENDSHIPS = 0.6, 6_000_000
"""Share of users with friends, and friendships: invented, with those to people without a record there are many more."""
HIN_FRIENDS, HIN_FRIENDSHIPS = 10_580, 79_295
"""Users who have any, and friendships (published twice, once for each friend)."""
HIN_CATEGORIES, HIN_CATEGORISED, HIN_CATEGORY_ROWS = 511, 14_180, 40_009
HIN_CITIES, HIN_LOCATED = 47, 14_267
HIN_COMPLIMENTED = 14_411
HIN_COMPLIMENTS = (10_605, 3_815, 7_437, 8_107, 2_495, 6_731, 10_446, 4_625, 10_702, 3_265, 8_647)
"""Users with any compliment, and with each kind."""
VOTES = {"useful": 0.5, "funny": 0.25, "cool": 0.35}
"""How often a review has another such vote."""
COMPLIMENTS = {
    "hot": 0.07, "more": 0.01, "profile": 0.005, "cute": 0.005, "list": 0.003, "note": 0.05, "plain": 0.1,
    "cool": 0.1, "funny": 0.1, "writer": 0.04, "photos": 0.04,
}  # fmt: skip
"""Their shares of what a user receives; invented."""
BLOCK = 1_000_000
"""Records that are written at a time."""
SOURCE = synthetic_source(
    "twin_yelp",
    "synthetic reviews, users, friends and businesses in the formats and sizes of Yelp or of its HERec subset",
    "obtain: {layout: yelp, scale: 1.0, seed: 2022}, format: yelp, "
    "read: {users: true, businesses: true, friends: true, outsiders: refuse}",
    LAYOUTS["yelp"].size,
)


class ObtainOptions(ReplicaOptions):
    """Which data set's replica, and how large (`Description.sizes`).

    Categories and cities grow with the square root of the scale.
    """

    layout: Literal["yelp", "yelp-hin"]


def source(options: ObtainOptions) -> Source:
    """SOURCE, with the size of what these options ask for."""
    return LAYOUTS[options.layout].source(SOURCE, options.scale, options.layout)


def obtain(folder: Path, _: Places, options: ObtainOptions) -> None:
    """Fill `folder` with the files of the layout and a NOTE; the same bytes for the same options."""
    world = World(LAYOUTS[options.layout], options)
    (_write_yelp if options.layout == "yelp" else _write_hin)(folder, world)
    write_note(folder, options, options.layout)


# The open dataset: JSON lines.


def _write_yelp(folder: Path, world: World) -> None:
    n_users, n_items, n_rows = world.n_users, world.n_items, world.n_rows
    user, item = np.empty((2, n_rows), dtype=np.int32)
    stars, time, at = np.empty(n_rows, dtype=np.int8), np.empty(n_rows, dtype=np.int64), 0
    for rows in world.rows():
        part = slice(at, at := at + len(rows.user))
        user[part], item[part], stars[part], time[part] = rows.user, rows.item, 1 + rows.level, rows.time
    user_ids, item_ids = _ids(world.rng, n_users), _ids(world.rng, n_items)
    REVIEWS.write(folder, _reviews(world.rng, user_ids, item_ids, (user, item, stars, time)))
    average = np.round(np.bincount(user, stars, n_users) / world.quota, 2)
    since = np.minimum.reduceat(time, np.cumsum(world.quota) - world.quota)
    number, given = np.bincount(item, minlength=n_items), np.bincount(item, stars, n_items)
    del user, item, stars, time
    friends = world.friendships(round(MEMBERS * n_users), scale_size(FRIENDSHIPS, world.scale))
    USERS.write(folder, _with_friends(_accounts(world, average, since), user_ids, friends))
    BUSINESSES.write(folder, [_businesses(world, item_ids, np.round(2 * given / number) / 2, number)])


_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)


def _ids(rng: np.random.Generator, n: int) -> pl.Series:
    """Ids of 22 letters of 64: so many are possible that no two are the same."""
    letters = _LETTERS[rng.integers(0, len(_LETTERS), (n, 22), dtype=np.uint8)]
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(22), n, [None, pa.py_buffer(letters.tobytes())])
    return pl.Series(fixed.cast(pa.binary()).cast(pa.string()))


def _date(seconds: str) -> pl.Expr:
    return pl.from_epoch(seconds, time_unit="s").dt.to_string(DATE)


def _reviews(
    rng: np.random.Generator, user_ids: pl.Series, item_ids: pl.Series, columns: tuple[NDArray[Any], ...]
) -> Iterator[pl.DataFrame]:
    order = rng.permutation(len(columns[0]))
    for first in range(0, len(order), BLOCK):
        rows = order[first : first + BLOCK]
        user, item, stars, time = (values[rows] for values in columns)
        votes = {name: pl.Series(rng.geometric(1 - more, len(rows)) - 1) for name, more in VOTES.items()}
        table = pl.DataFrame({"stars": stars.astype(float), "time": time, "review_id": _ids(rng, len(rows)), **votes})
        yield table.with_columns(
            user_id=user_ids.gather(user),
            business_id=item_ids.gather(item),
            text="SYNTHETIC review with " + pl.col("stars").cast(pl.Int8).cast(pl.String) + " stars.",
            date=_date("time"),
        )


def _accounts(world: World, average: Floats, since: Ints) -> pl.DataFrame:
    """What is published about users, without ids and friends; what they have elsewhere counts too."""

    def about(values: Floats | Ints, factor: float) -> Ints:
        noise = np.exp(np.round(world.rng.standard_normal(world.n_users), 6))
        return np.floor(values * factor * noise).astype(np.int64)

    reviews = world.quota + about(world.quota, 2.0)
    votes = about(reviews * np.exp(0.5 * world.people.propensity), 0.8)
    received = about(votes, 0.15)
    years = np.array(["", "2019", "2018,2019", "2016,2017,2018,2019"])
    return pl.DataFrame(
        {
            "review_count": reviews,
            "yelping_since": since,
            "useful": votes,
            "funny": about(votes, 0.3),
            "cool": about(votes, 0.5),
            "elite": years[np.digitize(reviews, [100, 200, 400])],
            "fans": about(votes, 0.04),
            "average_stars": average,
            **{f"compliment_{name}": about(received, share) for name, share in COMPLIMENTS.items()},
        }
    ).with_columns(_date("yelping_since"), name="Synthetic User " + pl.int_range(1, pl.len() + 1).cast(pl.String))


def _with_friends(users: pl.DataFrame, user_ids: pl.Series, friends: tuple[Ints, Ints]) -> Iterator[pl.DataFrame]:
    begins = np.searchsorted(friends[0], np.arange(len(users) + 1))
    for first in range(0, len(users), BLOCK // 4):
        table = users[first : first + BLOCK // 4]
        offsets = begins[first : first + len(table) + 1]
        listed = user_ids.gather(friends[1][offsets[0] : offsets[-1]]).to_arrow().cast(pa.string())
        lists = pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), listed)
        text = pl.Series(pc.binary_join(lists, ", "))
        friends_of = pl.when(text == "").then(pl.lit("None")).otherwise(text)
        yield table.with_columns(user_id=user_ids[first : first + len(table)], friends=friends_of)


def _businesses(world: World, item_ids: pl.Series, stars: Floats, count: Ints) -> pl.DataFrame:
    number = pl.int_range(1, pl.len() + 1).cast(pl.String)
    area, topic = (1 + pl.col("stratum") % AREAS).cast(pl.String), pl.Series([*TOPICS])
    open_hours = pl.struct(Monday=pl.lit("9:0-17:0"), Saturday=pl.lit("10:0-14:0"))
    odd = pl.Series(world.rng.random(world.n_items))
    topics = topic.gather(world.items.stratum // AREAS)
    return pl.DataFrame({"stratum": world.items.stratum, "business_id": item_ids}).with_columns(
        name="Synthetic Business " + number,
        address=number + " Synthetic Street",
        city="Synthetic City " + area,
        state=pl.lit("XX"),
        postal_code=area.str.zfill(5),
        latitude=pl.Series(np.round(world.rng.random(world.n_items), 6)),  # in the sea
        longitude=pl.Series(np.round(world.rng.random(world.n_items), 6)),
        stars=pl.Series(stars),
        review_count=pl.Series(count),
        is_open=(odd < 0.8).cast(pl.Int8),
        attributes=pl.when(odd < 0.9).then(pl.struct(BusinessAcceptsCreditCards=pl.lit("True"))),
        categories=pl.when(odd < 0.999).then(topics + ", Synthetic " + topics),
        hours=pl.when(odd > 0.15).then(open_hours),
    )


# The subset: numbers between tabs.


def _write_hin(folder: Path, world: World) -> None:
    rng, n_users, n_items, d = world.rng, world.n_users, world.n_items, world.described
    rows = next(world.rows())
    order = np.lexsort((rows.item, rows.user))
    _write(folder, yelp_hin.RATINGS, rows.user[order], rows.item[order], 1 + rows.level[order])
    n_friends = round(HIN_FRIENDS / d.users * n_users)
    _write(folder, yelp_hin.FRIENDS, *world.friendships(n_friends, scale_size(HIN_FRIENDSHIPS, world.scale)))

    known = _draw_share(rng, n_users, HIN_COMPLIMENTED / d.users)
    kinds = Strata(np.zeros(len(HIN_COMPLIMENTS), dtype=np.int64), np.array(HIN_COMPLIMENTS, dtype=float), 1)
    number = round(sum(HIN_COMPLIMENTS) / HIN_COMPLIMENTED * len(known))
    received = activity(rng, world.people.propensity[known], number, minimum=1, maximum=len(HIN_COMPLIMENTS), sigma=0.8)
    nothing = np.empty(0, dtype=np.int64)
    user, kind = draw_pairs(rng, np.ones((len(known), 1)), kinds, received, (nothing, nothing))
    _write(folder, yelp_hin.RECEIVED, known[user], kind)

    topic, area = world.items.stratum // AREAS, world.items.stratum % AREAS
    known = _draw_share(rng, n_items, HIN_CATEGORISED / d.items)
    n = min(len(known), scale_size(HIN_CATEGORIES, world.scale, 0.5, minimum=len(TOPICS)))
    of_topic = 1 + allot(rng, np.array([*TOPICS.values()]), n - len(TOPICS), n)
    categories = Strata(np.repeat(np.arange(len(TOPICS)), of_topic), long_tail(rng, n, 5.0, 0.4), len(TOPICS))
    number = round(HIN_CATEGORY_ROWS / HIN_CATEGORISED * len(known))
    quota = activity(rng, rng.random(len(known)), number, minimum=1, maximum=min(n, 10), sigma=0.7)
    fits = np.where(topic[known][:, None] == np.arange(len(TOPICS)), 30.0, 1.0)
    certain = everything_once(rng, categories, quota, lambda rows: fits[rows])
    business, category = draw_pairs(rng, fits, categories, quota, certain)
    _write(folder, yelp_hin.CATEGORIES, known[business], category)

    stock = np.bincount(area, minlength=AREAS)
    n_cities = min(n_items, scale_size(HIN_CITIES, world.scale, 0.5, minimum=AREAS))
    cities = allot(rng, stock.astype(float), n_cities, stock)
    towns = Strata(np.repeat(np.arange(AREAS), cities), long_tail(rng, int(cities.sum()), 5.0, 0.5), AREAS)
    known = _draw_share(rng, n_items, HIN_LOCATED / d.items)
    _write(folder, yelp_hin.CITIES, known, Deal(towns, stock, minimum=1)(rng, area)[known])


def _draw_share(rng: np.random.Generator, n: int, share: float) -> Ints:
    return np.sort(rng.choice(n, round(share * n), replace=False))


def _write(folder: Path, file: TextTable, first: Ints, second: Ints, third: NDArray[np.integer] | int = 1) -> None:
    """Three numbers a line, in the order of the first two; those count from 1."""
    names = list(file.columns)
    table = pl.DataFrame({names[0]: 1 + first, names[1]: 1 + second}).with_columns(pl.lit(third).alias(names[2]))
    file.write(folder, [table.sort(names[:2])])
