"""Yelp's open dataset (JSON lines): where it comes from, and its raw format by Yelp's documentation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
from pydantic import model_validator

from tasks.core.contracts import Feature, RatingScale
from tasks.core.raw import raw_writer, write_raw
from tasks.datasets import allowed
from tasks.datasets.fetch import Options, Source, by_option, copied, form_files
from tasks.datasets.files import Column, Listed, check, json_rows
from tasks.datasets.text import allow, blocks, require_unique

PAGE = "https://business.yelp.com/data/resources/open-dataset/"
FILES = form_files(
    "yelp",
    PAGE,
    "the open dataset (JSON), after agreeing to its terms; unpack the archive: {}",
    dict.fromkeys(f"yelp_academic_dataset_{kind}.json" for kind in ("user", "review", "business")),
)
SAMPLE = form_files(
    "yelp-open-sample",
    "https://github.com/B1ueF10WER/Business_Rating_Prediction_Project",
    "{} of that project (999 reviews with every text emptied, 1,000 businesses)",
    {
        "yelp_academic_dataset_review.json": (
            210_798,
            "c623ac2f94dd43407d21af28902eff9418964226c09243380681482dea0cda54",
        ),
        "yelp_academic_dataset_business.json": (
            793_182,
            "89f4334da0e66782b74d7d5d48761aa0124ae2cf0e3a3922c159864132bf23f2",
        ),
    },
)
SOURCE = Source(
    name="yelp",
    address=PAGE,
    holds="7 million reviews of businesses by 2 million users (by release); six counts per user, friends",
    about=8_800_000_000,
    entry=(
        "{source: yelp, obtain: {part: whole}, format: yelp, "
        "read: {users: true, businesses: true, friends: false, outsiders: leave-out}}"
    ),
    files=FILES,
    licence="Yelp Open Dataset, (c) Yelp Inc.",
    terms=(
        "For academic and other non-commercial use under the Dataset User Agreement "
        "that is accepted at the download; no redistribution."
    ),
)

SCALE = RatingScale(low=1, high=5, step=1)
COUNTS = ("review_count", "useful", "funny", "cool", "fans")
FEATURES = (
    Feature(name="average_stars", kind="numeric", low=SCALE.low, high=SCALE.high),
    *(Feature(name=name, kind="numeric") for name in COUNTS),
)
"""DIPSGNN's six (docs/methods.md §3). Counts have no public bounds."""
_ID = "[A-Za-z0-9_-]{22}"
_FRIENDS = (
    rf"^(None|{_ID}(, ?{_ID})*)?$",  # one text, since 2018
    rf'^\[("None"|"{_ID}"(, "{_ID}")*)?\]$',  # before: a list, here as polars writes it
)
DATE = "%Y-%m-%d %H:%M:%S"
_TEXT = pa.string()
_INTERACTIONS = pa.schema(
    {"user": _TEXT, "item": _TEXT, "rating": pa.float32(), "timestamp": pa.int64(), "review": _TEXT}
)
_SOCIAL = pa.schema({"source": _TEXT, "target": _TEXT, "relation": _TEXT})
_OUTSIDERS = "take both files from one release, or set read.outsiders to leave-out"


@dataclass(frozen=True)
class Records:
    """A file of JSON objects, one a line."""

    name: str
    fields: str
    """All of them, as published."""
    columns: Mapping[str, Column]
    """Those that are read, none of which may be missing."""

    def batches(self, folder: Path, columns: Collection[str] = ()) -> Iterator[tuple[int, pl.DataFrame]]:
        """These columns (default: all), some lines at a time, with the number of the first line.

        Raises:
            DataError: a line is no JSON object; a field is missing, of another type, or not allowed.
        """
        path, read = folder / self.name, {name: self.columns[name] for name in columns or self.columns}
        for first, lines in blocks(path):
            table = json_rows(path, lines, read, first)
            check(path, table, read, first_line=first)
            yield first, table

    def write(self, folder: Path, tables: Iterable[pl.DataFrame]) -> None:
        """Write the file of these tables' rows."""
        with (folder / self.name).open("wb") as out:
            for table in tables:
                table.select(self.fields.split()).write_ndjson(out)


_KEY = Column(pattern=f"^{_ID}$", what=allowed.KEY)
REVIEWS = Records(
    FILES[1].below,
    "review_id user_id business_id stars useful funny cool text date",
    {
        "review_id": _KEY,
        "user_id": _KEY,
        "business_id": _KEY,
        "stars": Column(pl.Float64, values=SCALE.levels),
        "date": Column(),
    },
)
USERS = Records(
    FILES[0].below,
    "user_id name review_count yelping_since useful funny cool elite friends fans average_stars compliment_hot "
    "compliment_more compliment_profile compliment_cute compliment_list compliment_note compliment_plain "
    "compliment_cool compliment_funny compliment_writer compliment_photos",
    {
        "user_id": _KEY,
        **dict.fromkeys(COUNTS, Column(pl.Int64, 0)),
        "average_stars": Column(pl.Float64, SCALE.low, SCALE.high),
        "friends": Column(pattern="|".join(_FRIENDS), what=allowed.KEYS),
    },
)
BUSINESSES = Records(
    FILES[2].below,
    "business_id name address city state postal_code latitude longitude stars review_count is_open attributes "
    "categories hours",
    {"business_id": _KEY, "name": Column(), "city": Column()},
)


class ObtainOptions(Options):
    """Which files."""

    part: Literal["whole", "sample"]
    """`sample` is a public part of the official files without users: 999 reviews and 1,000 businesses."""


class ReadOptions(Options):
    """Which files are read, and what becomes of records that point outside them."""

    users: bool
    """Whether there is a file of users: their features. Without it, users are those of the reviews."""
    businesses: bool
    """Whether there is a file of businesses: title and city. Without it, businesses are those of the reviews."""
    friends: bool
    """Whether the users' lists of friends are read; needs `users`."""
    outsiders: Literal["refuse", "leave-out"]
    """What becomes of a friend, reviewer or business that the dump names but has no record of.

    The dump is a part of Yelp: most friends have no record in it, and in some releases a few reviewers have none.
    `leave-out` leaves out those friendships and reviews, and left_out.json counts them.
    """

    @model_validator(mode="after")
    def _friends_are_users(self) -> ReadOptions:
        if self.friends and not self.users:
            raise ValueError("friends are listed in the file of users: set users to true, or friends to false")
        return self


_SAMPLE = replace(
    SOURCE,
    address=SAMPLE[0].page,
    holds="999 reviews (texts emptied) of 822 businesses by 993 users, and 1,000 businesses: a sample",
    about=0,
    files=SAMPLE,
)
source = by_option("part", {"whole": SOURCE, "sample": _SAMPLE})  # Yelp publishes no checksums of the whole
obtain = copied(source)


def convert(folder: Path, destination: Path, options: ReadOptions) -> None:
    """Write the raw tables (`tasks.core.raw.RAW_COLUMNS`) into `destination`, rows in the order of the files.

    interactions: one review each, also `review`, its id; dates without a time are 00:00, all are taken as UTC.
    users: `FEATURES`; `friends`, the number of friends listed (outsiders included), where friends are read.
    items: title, city. social: a friend listed by `source`, relation `friend`.
    left_out.json: how many reviews and friends were left out (see `ReadOptions.outsiders`).
    """
    tables: dict[str, pl.DataFrame | None] = {"interactions": None}
    left_out, listed = {"reviews": 0, "friends": 0}, dict[str, tuple[pl.Series, str]]()
    if options.businesses:
        tables["items"] = items = _read(
            folder, BUSINESSES, BUSINESSES.columns, {"business_id": "item", "name": "title"}
        )
        listed["business_id"] = items["item"], f"in {BUSINESSES.name}: {_OUTSIDERS}"
    if options.users:
        columns = [name for name in USERS.columns if options.friends or name != "friends"]
        tables["users"] = users = _read(folder, USERS, columns, {"user_id": "user"})
        listed["user_id"] = users["user"], f"in {USERS.name}: {_OUTSIDERS}"
        if options.friends:
            tables |= {
                "users": users.with_columns(pl.col("friends").str.count_matches(_ID).cast(pl.Int64)),
                "social": None,
            }
            left_out["friends"] = _write_friends(folder, destination / "social.parquet", listed["user_id"], options)
    left_out["reviews"] = _write_reviews(folder, destination / "interactions.parquet", listed, options)
    features = FEATURES if options.users else ()
    write_raw(destination, tables, features=features, scale=SCALE, time="seconds")
    (destination / "left_out.json").write_text(json.dumps(left_out) + "\n", encoding="utf-8")


def _read(folder: Path, records: Records, columns: Collection[str], names: dict[str, str]) -> pl.DataFrame:
    """These columns of all records, whose ids are unique, under new names."""
    table = pl.concat([rows for _, rows in records.batches(folder, columns)])
    require_unique(folder / records.name, table, [next(iter(names))])
    return table.rename(mapping=names)


def _write_reviews(folder: Path, target: Path, listed: Listed, options: ReadOptions) -> int:
    """Returns how many reviews were left out, since they name none of the users or businesses that are listed."""
    path, ids, left_out = folder / REVIEWS.name, [], 0
    with raw_writer(target, _INTERACTIONS, differences=()) as write:
        for first, table in REVIEWS.batches(folder):
            forms = (pl.col("date").str.to_datetime(form, strict=False) for form in (DATE, "%Y-%m-%d"))
            table = table.with_columns(timestamp=pl.coalesce(forms).dt.epoch("s"))
            dated = pl.col("timestamp").is_not_null()
            allow(path, table, "date", dated, allowed.MOMENT, first)
            ids.append(table["review_id"])
            left_out += len(table)
            if options.outsiders == "refuse":
                check(path, table, {}, listed, first)
            for column, (values, _) in listed.items():
                table = table.filter(pl.col(column).is_in(values.implode()))
            left_out -= len(table)
            write(table.rename({"user_id": "user", "business_id": "item", "stars": "rating", "review_id": "review"}))
    require_unique(path, pl.concat(ids).to_frame(), ["review_id"])
    return left_out


def _write_friends(folder: Path, target: Path, users: tuple[pl.Series, str], options: ReadOptions) -> int:
    """Returns how many friends were left out, since they have no record."""
    left_out = 0
    with raw_writer(target, _SOCIAL, differences=()) as write:
        for first, table in USERS.batches(folder, ("user_id", "friends")):
            lists = {"friend": pl.col("friends").str.extract_all(_ID), "line": first + pl.int_range(pl.len())}
            pairs = table.select("user_id", **lists).explode("friend").drop_nulls()
            if options.outsiders == "refuse":
                check(folder / USERS.name, pairs, {}, {"friend": users}, pairs["line"])
            inside = pairs.filter(pl.col("friend").is_in(users[0].implode()))
            left_out += len(pairs) - len(inside)
            write(inside.select(source="user_id", target="friend", relation=pl.lit("friend")))
    return left_out
