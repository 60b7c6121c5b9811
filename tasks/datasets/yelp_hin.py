"""The Yelp subset of HERec (Shi et al., 2018): where it comes from, and its raw format as its files show it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from tasks.core.contracts import Feature, RatingScale
from tasks.core.raw import write_raw
from tasks.datasets.fetch import NoOptions, Options, Source, copied, form_files
from tasks.datasets.files import Column, TextTable

PAGE = "https://github.com/librahu/HIN-Datasets-for-Recommendation-and-Network-Embedding"
FILES = form_files(
    "yelp-hin",
    PAGE,
    "Yelp/{}",
    {
        "user_business.dat": (2_490_385, "d57853e95c3f49f0060f31ee9365ab3fffe1010999c76863c3cd9628b91e994d"),
        "user_user.dat": (2_015_188, "d360f88f66b7ba9a1fd460b8c414dba1bec6489773283083a614a77925bcaaed"),
        "user_compliment.dat": (728_264, "e7f5c15155bf0843e3bdf9fb4743bb3ebf76826b4108e9e194fd637e0bb05ed6"),
        "business_category.dat": (439_981, "d3c1499e406c0a842b3c08c478ffe7bf26a8758b630e0b056d0f4bcf18c01a5b"),
        "business_city.dat": (145_353, "09c009dfa16709aff52de4831b9cb30f45a16dcfce1db06858d54af6ef5f7d1e"),
    },
)
SOURCE = Source(
    name="yelp-hin",
    address=PAGE,
    holds="198,397 ratings by 16,239 users of 14,284 businesses; 158,590 links between users; compliments, cities",
    entry="{source: yelp_hin, obtain: {}, format: yelp_hin, read: {time: none}}",
    files=FILES,
    licence=(
        "A part of the Yelp Open Dataset, (c) Yelp Inc., whose agreement allows academic and other non-commercial use "
        "and no redistribution; its page names no licence of its own."
    ),
    terms=(
        "Publications should cite C. Shi, B. Hu, W. X. Zhao, P. S. Yu, Heterogeneous Information Network Embedding for "
        "Recommendation, IEEE TKDE 31(2), 2019."
    ),
)

SCALE = RatingScale(low=1, high=5, step=1)
COMPLIMENTS = 11
"""Kinds of compliments, numbered from 1; the files do not say which is which."""
FEATURES = tuple(
    Feature(name=f"compliment-{number}", kind="categorical", categories=("no", "yes"))
    for number in range(1, COMPLIMENTS + 1)
)
_ID, _MARK = Column(pl.Int64, 0), Column(pl.Int64, 1, 1)


def _marks(name: str, first: str, second: str, kind: Column = _ID, unique: tuple[str, ...] = ()) -> TextTable:
    """A file of pairs, each marked with 1."""
    return TextTable(name, {first: _ID, second: kind, "mark": _MARK}, "\t", unique=unique)


RATINGS = TextTable(
    "user_business.dat",
    {"user": _ID, "business": _ID, "rating": Column(pl.Int64, 1, 5)},
    "\t",
    unique=("user", "business"),
)
FRIENDS = _marks("user_user.dat", "user", "friend")
RECEIVED = _marks("user_compliment.dat", "user", "compliment", Column(pl.Int64, 1, COMPLIMENTS), ("user", "compliment"))
CATEGORIES = _marks("business_category.dat", "business", "category", unique=("business", "category"))
CITIES = _marks("business_city.dat", "business", "city", unique=("business",))
ObtainOptions = NoOptions
obtain = copied(lambda _: SOURCE)


class ReadOptions(Options):
    """What stands for time, which the files do not have."""

    time: Literal["none", "order"]
    """`order`: the place in the file counts as time. It is not: rows are sorted by user and business."""


def convert(folder: Path, destination: Path, options: ReadOptions) -> None:
    """Write the raw tables (`tasks.core.raw.RAW_COLUMNS`) into `destination`; users and items are those of the ratings.

    interactions: timestamp null; `position`, the place in the file from 0, with `time: order`.
    users: whether (`yes`, `no`) the user has received each kind of compliment. items: city (a number, null where not
    known), categories (numbers, in order; an empty list where there are none).
    social: both directions of a friendship, as published, relation `friend`.

    Raises:
        DataError: see `tasks.datasets`.
    """
    ratings = RATINGS.read(folder)
    users, items = (ratings.select(pl.col(name).unique().sort()) for name in ("user", "business"))
    user, business = (users["user"], f"a user of {RATINGS.name}"), (items["business"], f"a business of {RATINGS.name}")
    friends = FRIENDS.read(folder, {"user": user, "friend": user})
    compliments = RECEIVED.read(folder, {"user": user})
    cities, categories = (table.read(folder, {"business": business}) for table in (CITIES, CATEGORIES))

    position = {"position": pl.int_range(pl.len(), dtype=pl.Int64)} if options.time == "order" else {}
    interactions = ratings.select("user", "rating", item="business", timestamp=pl.lit(None, pl.Int64), **position)
    received = compliments.group_by("user").agg(received="compliment")
    people = users.join(received, on="user", how="left", maintain_order="left")
    has = {
        feature.name: pl.when(pl.col("received").list.contains(number)).then(pl.lit("yes")).otherwise(pl.lit("no"))
        for number, feature in enumerate(FEATURES, start=1)
    }
    listed = categories.group_by("business").agg(categories=pl.col("category").sort())
    businesses = items.join(cities.select("business", "city"), on="business", how="left", maintain_order="left")
    businesses = businesses.join(listed, on="business", how="left", maintain_order="left")
    write_raw(
        destination,
        {
            "interactions": interactions.select("user", "item", "rating", "timestamp", *position),
            "users": people.select("user", **has),
            "items": businesses.with_columns(pl.col("categories").fill_null([])).rename({"business": "item"}),
            "social": friends.select(source="user", target="friend", relation=pl.lit("friend")),
        },
        features=FEATURES,
        scale=SCALE,
        unique_pairs=True,
        time=options.time,
    )
