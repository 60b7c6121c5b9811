"""A synthetic replica of Yelp's open dataset: its files, format and size, at any scale.

Users review what is near and to their taste; friends live near one another and like the same. Who reviews much has
more votes, fans and friends, too. Numbers are as published; tails and shares of ratings are of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tasks.datasets.fetch import ReplicaOptions
from tasks.datasets.synthetic.generator import Description, Replica, Times, World
from tasks.datasets.synthetic.homophily import Taste
from tasks.datasets.synthetic.skew import Floats, Ints, scale_size
from tasks.datasets.yelp import BUSINESSES, DATE, REVIEWS, USERS

TOPICS = {
    "Restaurants": 0.40, "Food": 0.13, "Nightlife": 0.09, "Shopping": 0.07, "Beauty & Spas": 0.07,
    "Home Services": 0.06, "Health & Medical": 0.04, "Automotive": 0.04, "Hotels & Travel": 0.04,
    "Active Life": 0.03, "Pets": 0.02, "Arts & Entertainment": 0.01,
}  # fmt: skip
"""Kinds of businesses and their shares."""
AREAS = 11
YELP = Description(  # the release of January 2022
    name="Yelp", words=("reviews", "users", "businesses"), users=1_987_897, items=150_346, rows=6_990_280,
    size=2_781_000_000, max_rows=3_000, sigma=2.2, tail=(8.0, 0.35), repeats=5, item_power=0.75,
    levels=(0.153, 0.078, 0.099, 0.208, 0.462), kinds=tuple(TOPICS.values()),
    places=tuple(0.75**n for n in range(AREAS)), at_home=0.85, taste=Taste(individual=1.2), community_size=200,
    times=Times(first=1_108_500_000, last=1_642_600_000, growth=0.5, span=(1_000, 1.0), rows=1.5, sitting=7_200),
)  # fmt: skip
MEMBERS, FRIENDSHIPS = 0.6, 6_000_000
"""Share of users with friends, and friendships: invented, with those to people without a record there are many more."""
VOTES = {"useful": 0.5, "funny": 0.25, "cool": 0.35}
"""How often a review has another such vote."""
COMPLIMENTS = {
    "hot": 0.07, "more": 0.01, "profile": 0.005, "cute": 0.005, "list": 0.003, "note": 0.05, "plain": 0.1,
    "cool": 0.1, "funny": 0.1, "writer": 0.04, "photos": 0.04,
}  # fmt: skip
"""Their shares of what a user receives; invented."""
BLOCK = 1_000_000
"""Records that are written at a time."""


class ObtainOptions(ReplicaOptions):
    """How large (`Description.sizes`)."""

    layout: Literal["yelp"]


def _write(folder: Path, world: World, _: ObtainOptions) -> None:
    kinds = {"user": pl.Int32, "item": pl.Int32, "stars": pl.Int8, "time": pl.Int64}
    rows = pl.concat(pl.DataFrame([r.user, r.item, 1 + r.level, r.time], kinds) for r in world.rows())
    user_ids, item_ids = _ids(world.rng, world.n_users), _ids(world.rng, world.n_items)
    shuffled = rows[world.rng.permutation(len(rows))]
    REVIEWS.write(folder, (_reviews(world.rng, user_ids, item_ids, part) for part in shuffled.iter_slices(BLOCK)))
    stars = {"average": pl.col("stars").mean(), "number": pl.len()}
    users = rows.group_by("user").agg(since=pl.col("time").min(), **stars).sort("user")
    members, pairs = round(MEMBERS * world.n_users), scale_size(FRIENDSHIPS, world.scale)
    friends = world.friendships(members, pairs)
    USERS.write(folder, _with_friends(_accounts(world, users), user_ids, friends))
    BUSINESSES.write(folder, [_businesses(world, item_ids, rows.group_by("item").agg(**stars).sort("item"))])


_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8)


def _ids(rng: np.random.Generator, n: int) -> pl.Series:
    """Ids of 22 letters of 64: so many are possible that no two are the same."""
    letters = _LETTERS[rng.integers(0, len(_LETTERS), (n, 22), dtype=np.uint8)]
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(22), n, [None, pa.py_buffer(letters.tobytes())])
    return pl.Series(fixed.cast(pa.binary()).cast(pa.string()))


def _date(seconds: str) -> pl.Expr:
    return pl.from_epoch(seconds, time_unit="s").dt.to_string(DATE)


def _reviews(rng: np.random.Generator, user_ids: pl.Series, item_ids: pl.Series, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(
        review_id=_ids(rng, len(rows)),
        user_id=user_ids.gather(rows["user"]),
        business_id=item_ids.gather(rows["item"]),
        stars=pl.col("stars").cast(pl.Float64),
        **{name: pl.Series(rng.geometric(1 - more, len(rows)) - 1) for name, more in VOTES.items()},
        text=pl.format("SYNTHETIC review with {} stars.", "stars"),
        date=_date("time"),
    )


def _accounts(world: World, users: pl.DataFrame) -> pl.DataFrame:
    """What is published about users, without ids and friends; what they have elsewhere counts too."""
    number = users["number"].to_numpy()

    def about(values: Floats | Ints, factor: float) -> Ints:
        noise = np.exp(np.round(world.rng.standard_normal(world.n_users), 6))
        return np.floor(values * factor * noise).astype(np.int64)

    reviews = number + about(number, 2.0)
    votes = about(reviews * np.exp(0.5 * world.people.propensity), 0.8)
    received = about(votes, 0.15)
    years = np.array(["", "2019", "2018,2019", "2016,2017,2018,2019"])
    return users.select(
        name=pl.format("Synthetic User {}", pl.int_range(1, pl.len() + 1)),
        review_count=pl.Series(reviews),
        yelping_since=_date("since"),
        useful=pl.Series(votes),
        funny=pl.Series(about(votes, 0.3)),
        cool=pl.Series(about(votes, 0.5)),
        elite=pl.Series(years[np.digitize(reviews, [100, 200, 400])]),
        fans=pl.Series(about(votes, 0.04)),
        average_stars=pl.col("average").round(2),
        **{f"compliment_{name}": pl.Series(about(received, share)) for name, share in COMPLIMENTS.items()},
    )


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


def _businesses(world: World, item_ids: pl.Series, counted: pl.DataFrame) -> pl.DataFrame:
    rng, n, stratum = world.rng, world.n_items, world.items.stratum
    number, area = pl.int_range(1, pl.len() + 1), pl.Series(1 + stratum % AREAS)
    topics = pl.Series([*TOPICS]).gather(stratum // AREAS)
    odd = pl.Series(rng.random(n))
    return counted.select(
        business_id=item_ids,
        name=pl.format("Synthetic Business {}", number),
        address=pl.format("{} Synthetic Street", number),
        city=pl.format("Synthetic City {}", area),
        state=pl.lit("XX"),
        postal_code=area.cast(pl.String).str.zfill(5),
        latitude=pl.Series(np.round(rng.random(n), 6)),  # in the sea
        longitude=pl.Series(np.round(rng.random(n), 6)),
        stars=(2 * pl.col("average")).round() / 2,
        review_count="number",
        is_open=(odd < 0.8).cast(pl.Int8),
        attributes=pl.when(odd < 0.9).then(pl.struct(BusinessAcceptsCreditCards=pl.lit("True"))),
        categories=pl.when(odd < 0.999).then(topics + ", Synthetic " + topics),
        hours=pl.when(odd > 0.15).then(pl.struct(Monday=pl.lit("9:0-17:0"), Saturday=pl.lit("10:0-14:0"))),
    )


REPLICA = Replica(
    "twin_yelp",
    "synthetic reviews, users, friends and businesses in the format and size of Yelp",
    "obtain: {layout: yelp, scale: 1.0, seed: 2022}, format: yelp, "
    "read: {users: true, businesses: true, friends: true, outsiders: refuse}",
    {"yelp": YELP},
    ObtainOptions,
    World,
    _write,
)
