"""Yelp's open dataset (JSON lines): where it comes from, and its raw format as Yelp's documentation tells it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import model_validator

from tasks.contracts import Feature, RatingScale
from tasks.datasets.fetch import FormFile, Options, Places, Source, copy_verified
from tasks.datasets.text import allow, blocks, require_unique
from tasks.disk import rename
from tasks.errors import DataError
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://business.yelp.com/data/resources/open-dataset/"
_ASK = "the open dataset (JSON), after agreeing to its terms; unpack the archive"


def _file(kind: str) -> FormFile:
    name = f"yelp/yelp_academic_dataset_{kind}.json"
    return FormFile(name=name, page=PAGE, what=f"{_ASK}: {Path(name).name}", mirror_path=name)


USER, REVIEW, BUSINESS = (_file(kind) for kind in ("user", "review", "business"))
SAMPLE = (
    FormFile(
        name="yelp-open-sample/yelp_academic_dataset_review.json",
        page="https://github.com/B1ueF10WER/Business_Rating_Prediction_Project",
        what="the 999 reviews of that project, with every text emptied",
        mirror_path="yelp-open-sample/yelp_academic_dataset_review.json",
        size=210_798,
        sha256="c623ac2f94dd43407d21af28902eff9418964226c09243380681482dea0cda54",
    ),
    FormFile(
        name="yelp-open-sample/yelp_academic_dataset_business.json",
        page="https://github.com/B1ueF10WER/Business_Rating_Prediction_Project",
        what="the 1,000 businesses of that project",
        mirror_path="yelp-open-sample/yelp_academic_dataset_business.json",
        size=793_182,
        sha256="89f4334da0e66782b74d7d5d48761aa0124ae2cf0e3a3922c159864132bf23f2",
    ),
)
SOURCE = Source(
    name="yelp",
    address=PAGE,
    synthetic=False,
    holds="7 million reviews of businesses by 2 million users (by release); six counts per user, friends",
    size=8_800_000_000,
    entry=(
        "{source: yelp, obtain: {part: whole}, format: yelp, "
        "read: {users: true, businesses: true, friends: false, outsiders: leave-out}}"
    ),
    files=(USER, REVIEW, BUSINESS),
    licence=(
        "Yelp Open Dataset, (c) Yelp Inc. For academic and other non-commercial use under the Dataset User Agreement "
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
_REVIEW = {
    "review_id": pl.String,
    "user_id": pl.String,
    "business_id": pl.String,
    "stars": pl.Float64,
    "date": pl.String,
}
_USER = {"user_id": pl.String, **dict.fromkeys(COUNTS, pl.Int64), "average_stars": pl.Float64}
_BUSINESS = {"business_id": pl.String, "name": pl.String, "city": pl.String}
_WORDS = {pl.String: "text", pl.Int64: "an integer", pl.Float64: "a number"}


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


def source(options: ObtainOptions) -> Source:
    """What is said about the files that `options` ask for."""
    if options.part == "whole":
        return SOURCE
    holds = "999 reviews (texts emptied) of 822 businesses by 993 users, and 1,000 businesses: a sample"
    return replace(SOURCE, address=SAMPLE[0].page, holds=holds, size=1_003_980, files=SAMPLE)


def obtain(folder: Path, places: Places, options: ObtainOptions) -> None:
    """Fill `folder` with the files of reviews and businesses and, of the whole dataset, of users.

    Raises:
        DataError: a file cannot be had, or (sample) is not the known one; Yelp publishes no checksums of the whole.
    """
    copy_verified((USER, REVIEW, BUSINESS) if options.part == "whole" else SAMPLE, folder, places)


def convert(folder: Path, place: Path, options: ReadOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `place`, rows in the order of the files.

    interactions: one review each, also `review`, its id; dates without a time are 00:00, all are taken as UTC.
    users: `FEATURES`; `friends`, the number of friends listed (outsiders included), where friends are read.
    items: title, city. social: a friend listed by `source`, relation `friend`.
    left_out.json: how many reviews and friends were left out (see `ReadOptions.outsiders`).

    Raises:
        DataError: a file is missing, empty or malformed; a line is no whole JSON object or lacks a field; an id, date,
            rating or feature is not allowed; an id is repeated; with `outsiders: refuse`, a review or friend names a
            user or business without a record (names file and line).
    """
    tables = ["interactions"]
    left_out = {"reviews": 0, "friends": 0}
    reviews = folder / Path(REVIEW.name).name
    _write_reviews(reviews, place / "interactions.parquet")
    if options.businesses:
        tables.append("items")
        _write_businesses(folder / Path(BUSINESS.name).name, place / "items.parquet")
        left_out["reviews"] += _require_known(place, "item", "items", reviews, "business_id", options)
    if options.users:
        tables.append("users")
        users = folder / Path(USER.name).name
        _write_users(users, place / "users.parquet", friends=options.friends)
        left_out["reviews"] += _require_known(place, "user", "users", reviews, "user_id", options)
        if options.friends:
            tables.append("social")
            left_out["friends"] = _write_friends(users, place, options)
    features = FEATURES if options.users else ()
    write_raw_schema(RawSchema(tables=tuple(tables), features=features, scale=SCALE, time="seconds"), place)
    (place / "left_out.json").write_text(json.dumps(left_out) + "\n", encoding="utf-8")


def _write_reviews(path: Path, target: Path) -> None:
    columns = {"user": pa.string(), "item": pa.string(), "rating": pa.float32(), "timestamp": pa.int64()}
    with _writer(target, columns | {"review": pa.string()}) as out:
        for first, table in _records(path, _REVIEW):
            date = pl.col("date")
            forms = (date.str.to_datetime(form, strict=False) for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d"))
            table = table.with_columns(timestamp=pl.coalesce(forms).dt.epoch("s"))
            dated = pl.col("timestamp").is_not_null()
            allow(path, table, "date", dated, "a date such as 2018-10-04 11:22:33", first, complete=False)
            levels = pl.col("stars").is_in(SCALE.levels)
            allow(path, table, "stars", levels, "1, 2, 3, 4 or 5", first, complete=False)
            out(table.select("timestamp", user="user_id", item="business_id", rating="stars", review="review_id"))
    require_unique(path, pl.read_parquet(target, columns=["review"]), ["review"])


def _write_users(path: Path, target: Path, *, friends: bool) -> None:
    schema = _USER | ({"friends": pl.String} if friends else {})
    columns = {"user": pa.string(), **dict.fromkeys(COUNTS, pa.int64()), "average_stars": pa.float64()}
    with _writer(target, columns | ({"friends": pa.int64()} if friends else {})) as out:
        for first, table in _records(path, schema):
            for name in COUNTS:
                allow(path, table, name, pl.col(name) >= 0, "0 or more", first, complete=False)
            average = pl.col("average_stars").is_between(SCALE.low, SCALE.high)
            allow(path, table, "average_stars", average, "1 to 5", first, complete=False)
            if friends:
                listed = pl.any_horizontal(pl.col("friends").str.contains(form) for form in _FRIENDS)
                allow(path, table, "friends", listed, "None or ids between commas", first, complete=False)
                table = table.with_columns(pl.col("friends").str.count_matches(_ID).cast(pl.Int64))
            out(table.rename({"user_id": "user"}))
    require_unique(path, pl.read_parquet(target, columns=["user"]), ["user"])


def _write_businesses(path: Path, target: Path) -> None:
    with _writer(target, {"item": pa.string(), "title": pa.string(), "city": pa.string()}) as out:
        for _, table in _records(path, _BUSINESS):
            out(table.rename({"business_id": "item", "name": "title"}))
    require_unique(path, pl.read_parquet(target, columns=["item"]), ["item"])


def _write_friends(path: Path, place: Path, options: ReadOptions) -> int:
    """Returns how many friends were left out."""
    users = pl.scan_parquet(place / "users.parquet")
    listed = pl.scan_ndjson(path, schema={"user_id": pl.String, "friends": pl.String})
    pairs = listed.select(source="user_id", target=pl.col("friends").str.extract_all(_ID)).explode("target")
    # Users without friends have a null here, which joins with nobody.
    known = pairs.join(users.select(target="user"), on="target", how="inner", maintain_order="left")
    target = place / "social.parquet"
    known.with_columns(relation=pl.lit("friend")).sink_parquet(target, compression="zstd")
    total = users.select(pl.col("friends").sum()).collect().item()
    left_out = int(total - pl.scan_parquet(target).select(pl.len()).collect().item())
    if left_out and options.outsiders == "refuse":
        everybody = users.select("user").collect()["user"]
        for first, table in _records(path, {"user_id": pl.String, "friends": pl.String}):
            named = table.select(line=first + pl.int_range(pl.len()), friend=pl.col("friends").str.extract_all(_ID))
            named = named.explode("friend").drop_nulls().filter(~pl.col("friend").is_in(everybody.implode()))
            for line, friend in named.head(1).iter_rows():
                raise _outsider_error(path, line, "friend", friend, path.name, left_out, "friends")
    return left_out


def _require_known(place: Path, column: str, table: str, path: Path, field: str, options: ReadOptions) -> int:
    """Refuse or leave out reviews whose user or business has no record; returns how many were left out."""
    file, records = place / "interactions.parquet", pl.scan_parquet(place / f"{table}.parquet")
    strangers = pl.scan_parquet(file).select(column).unique().join(records, on=column, how="anti").collect()[column]
    if strangers.is_empty():
        return 0
    strange = pl.col(column).is_in(strangers.implode())
    rows = pl.scan_parquet(file).with_row_index("row")
    if options.outsiders == "refuse":
        unknown = rows.filter(strange).select("row", column).collect().sort("row")
        known = Path((USER if table == "users" else BUSINESS).name).name
        raise _outsider_error(path, unknown["row"][0] + 1, field, unknown[column][0], known, unknown.height, "reviews")
    rest = file.with_suffix(".rest")
    pl.scan_parquet(file).filter(~strange).sink_parquet(rest, compression="zstd")
    left_out = rows.select(pl.len()).collect().item() - pl.scan_parquet(rest).select(pl.len()).collect().item()
    rename(rest, file, durable=False)  # the stage brings the whole folder to the disk
    return int(left_out)


def _outsider_error(path: Path, line: int, field: str, value: str, known: str, count: int, what: str) -> DataError:
    return DataError(
        f"{path}:{line}: {field} {value!r} has no record in {known} ({count:,} such {what}); take both files from one "
        "release, or set read.outsiders to leave-out"
    )


def _records(path: Path, schema: Mapping[str, type[pl.DataType]]) -> Iterator[tuple[int, pl.DataFrame]]:
    """The fields of `schema`, some lines at a time, with the number of the first line; other fields are skipped.

    Raises:
        DataError: a line is no JSON object, or a field is missing, of another type or no id.
    """
    ids = [name for name in schema if name.endswith("_id")]
    for first, lines in blocks(path):
        try:
            table = pl.read_ndjson(lines, schema=dict(schema))
        except pl.exceptions.PolarsError as error:
            raise _complaint(path, first, lines, schema, str(error)) from error
        # polars skips empty lines, and reads a missing field as null.
        complete = len(table) == lines.count(b"\n") + (not lines.endswith(b"\n"))
        if not complete or table.select(pl.any_horizontal(pl.all().null_count() > 0)).item():
            raise _complaint(path, first, lines, schema, "a field is missing")
        for name in ids:
            known = pl.col(name).str.contains(f"^{_ID}$")
            allow(path, table, name, known, "an id (22 letters, digits, - or _)", first, complete=False)
        yield first, table


def _complaint(
    path: Path, first: int, lines: bytes, schema: Mapping[str, type[pl.DataType]], otherwise: str
) -> DataError:
    """The slow way through lines that could not be read: find the first one at fault."""
    for number, line in enumerate(io.BytesIO(lines), start=first):
        try:
            text = line.decode("utf-8")
            record = json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            why = getattr(error, "msg", str(error))
            return DataError(f"{path}:{number}: is no whole JSON object ({why}); is the file whole?")
        if not isinstance(record, dict):
            return DataError(f"{path}:{number}: is {text[:40]!r}, not a JSON object; is it the right file?")
        for name, kind in schema.items():
            value = record.get(name)
            if value is None:
                return DataError(f"{path}:{number}: {name} is missing; is it the right file?")
            if not _has_kind(value, kind):
                return DataError(f"{path}:{number}: {name} is {repr(value)[:80]}, not {_WORDS[kind]}")
    return DataError(f"{path}: not readable as JSON lines ({' '.join(otherwise.split())})")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _has_kind(value: object, kind: type[pl.DataType]) -> bool:
    if kind == pl.String:
        return isinstance(value, str | list)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63 and (kind == pl.Float64 or isinstance(value, int))


@contextmanager
def _writer(target: Path, columns: Mapping[str, pa.DataType]) -> Iterator[Callable[[pl.DataFrame], None]]:
    """A raw table to which rows are appended as they are read."""
    schema = pa.schema(list(columns.items()))
    with pq.ParquetWriter(target, schema, compression="zstd") as out:
        yield lambda rows: out.write_table(rows.select(schema.names).to_arrow().cast(schema))
