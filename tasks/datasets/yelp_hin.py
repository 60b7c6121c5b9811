"""The Yelp subset of HERec (Shi et al., 2018): where it comes from, and its raw format as its files show it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from tasks.contracts import Feature, RatingScale
from tasks.datasets.fetch import FormFile, NoOptions, Options, Places, Source, copy_verified
from tasks.datasets.text import allow, read_table, require_unique
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://github.com/librahu/HIN-Datasets-for-Recommendation-and-Network-Embedding"


def _file(name: str, size: int, sha256: str) -> FormFile:
    place = f"yelp-hin/{name}"
    return FormFile(name=place, page=PAGE, what=f"Yelp/{name}", mirror_path=place, size=size, sha256=sha256)


FILES = (
    _file("user_business.dat", 2_490_385, "d57853e95c3f49f0060f31ee9365ab3fffe1010999c76863c3cd9628b91e994d"),
    _file("user_user.dat", 2_015_188, "d360f88f66b7ba9a1fd460b8c414dba1bec6489773283083a614a77925bcaaed"),
    _file("user_compliment.dat", 728_264, "e7f5c15155bf0843e3bdf9fb4743bb3ebf76826b4108e9e194fd637e0bb05ed6"),
    _file("business_category.dat", 439_981, "d3c1499e406c0a842b3c08c478ffe7bf26a8758b630e0b056d0f4bcf18c01a5b"),
    _file("business_city.dat", 145_353, "09c009dfa16709aff52de4831b9cb30f45a16dcfce1db06858d54af6ef5f7d1e"),
)
SOURCE = Source(
    name="yelp-hin",
    address=PAGE,
    synthetic=False,
    holds="198,397 ratings by 16,239 users of 14,284 businesses; 158,590 links between users; compliments, cities",
    size=5_819_171,
    entry="{source: yelp_hin, obtain: {}, format: yelp_hin, read: {time: none}}",
    files=FILES,
    licence=(
        "A part of the Yelp Open Dataset, (c) Yelp Inc., whose agreement allows academic and other non-commercial use "
        "and no redistribution; its page names no licence of its own. Publications should cite C. Shi, B. Hu, W. X. "
        "Zhao, P. S. Yu, Heterogeneous Information Network Embedding for Recommendation, IEEE TKDE 31(2), 2019."
    ),
)

SCALE = RatingScale(low=1, high=5, step=1)
COMPLIMENTS = 11
"""Kinds of compliments, numbered from 1; the files do not say which is which."""
FEATURES = tuple(
    Feature(name=f"compliment-{number}", kind="categorical", categories=("no", "yes"))
    for number in range(1, COMPLIMENTS + 1)
)


ObtainOptions = NoOptions


class ReadOptions(Options):
    """What stands for time, which the files do not have."""

    time: Literal["none", "order"]
    """`order`: the place in the file counts as time. It is not: rows are sorted by user and business."""


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """Fill `folder` with `FILES`.

    Raises:
        DataError: a file cannot be had, or is not what was published.
    """
    copy_verified(FILES, folder, places)


def convert(folder: Path, place: Path, options: ReadOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `place`; users and items are those of the ratings.

    interactions: timestamp null; `position`, the place in the file from 0, with `time: order`.
    users: whether (`yes`, `no`) the user has received each kind of compliment. items: city (a number, null where not
    known), categories (numbers, in order; an empty list where there are none).
    social: both directions of a friendship are published, relation `friend`.

    Raises:
        DataError: a file is missing, empty or malformed; a rating, compliment or mark is not allowed; a rating,
            compliment, city or category is repeated; a file names a user or business that has no rating (names file
            and line).
    """
    path = folder / "user_business.dat"
    ratings = _read(path, "user", "business", "rating")
    allow(path, ratings, "rating", pl.col("rating").is_between(SCALE.low, SCALE.high), "1 to 5")
    require_unique(path, ratings, ["user", "business"])
    users, items = (ratings.select(pl.col(name).unique().sort()) for name in ("user", "business"))

    friends = _marks(folder / "user_user.dat", "user", "friend", {"user": users["user"], "friend": users["user"]})
    path = folder / "user_compliment.dat"
    compliments = _marks(path, "user", "compliment", {"user": users["user"]})
    known = pl.col("compliment").is_between(1, COMPLIMENTS)
    allow(path, compliments, "compliment", known, f"1 to {COMPLIMENTS}")
    require_unique(path, compliments, ["user", "compliment"])
    cities = _marks(folder / "business_city.dat", "business", "city", {"business": items["business"]})
    require_unique(folder / "business_city.dat", cities, ["business"])
    categories = _marks(folder / "business_category.dat", "business", "category", {"business": items["business"]})
    require_unique(folder / "business_category.dat", categories, ["business", "category"])

    position = {"position": pl.int_range(pl.len(), dtype=pl.Int64)} if options.time == "order" else {}
    ratings.select(
        user="user",
        item="business",
        rating=pl.col("rating").cast(pl.Float32),
        timestamp=pl.lit(None, pl.Int64),
        **position,
    ).write_parquet(place / "interactions.parquet")
    received = compliments.group_by("user").agg(pl.col("compliment").alias("received"))
    has = {
        feature.name: pl.when(pl.col("received").list.contains(number).fill_null(False))
        .then(pl.lit("yes"))
        .otherwise(pl.lit("no"))
        for number, feature in enumerate(FEATURES, start=1)
    }
    people = users.join(received, on="user", how="left", maintain_order="left")
    people.select("user", **has).write_parquet(place / "users.parquet")
    listed = categories.group_by("business").agg(categories=pl.col("category").sort())
    (
        items.join(cities.select("business", "city"), on="business", how="left", maintain_order="left")
        .join(listed, on="business", how="left", maintain_order="left")
        .with_columns(pl.col("categories").fill_null([]))
        .rename({"business": "item"})
        .write_parquet(place / "items.parquet")
    )
    social = friends.select(source="user", target="friend", relation=pl.lit("friend"))
    social.write_parquet(place / "social.parquet")
    tables = ("interactions", "items", "social", "users")
    schema = RawSchema(tables=tables, features=FEATURES, scale=SCALE, unique_pairs=True, time=options.time)
    write_raw_schema(schema, place)


def _read(path: Path, *names: str) -> pl.DataFrame:
    table = read_table(path, "\t", dict.fromkeys(names, pl.Int64))
    for name in names[:2]:
        allow(path, table, name, pl.col(name) >= 0, "0 or more")
    return table


def _marks(path: Path, first: str, second: str, known: dict[str, pl.Series]) -> pl.DataFrame:
    """A file of pairs, each marked with 1, between ids of which those of `known` have a rating."""
    table = _read(path, first, second, "mark")
    allow(path, table, "mark", pl.col("mark") == 1, "1")
    for name, ids in known.items():
        kind = "business" if name == "business" else "user"
        allow(path, table, name, pl.col(name).is_in(ids.implode()), f"a {kind} of user_business.dat")
    return table
