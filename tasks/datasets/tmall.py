"""Tmall: the log of the IJCAI-15 repeat buyers competition, and its raw format as the competition's page tells it."""

from __future__ import annotations

import calendar
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.contracts import Feature
from tasks.datasets.fetch import FormFile, Options, Places, Source, copy_verified
from tasks.datasets.text import allow, blocks, parse, read_table, require_unique
from tasks.errors import DataError
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://tianchi.aliyun.com/dataset/42"
_ASK = "data set 42, Repeat Buyers Prediction (IJCAI-15), after a login; unpack data_format1.zip"
LOG = FormFile(
    name="tmall/user_log_format1.csv",
    page=PAGE,
    what=f"{_ASK}: user_log_format1.csv",
    mirror_path="tmall/user_log_format1.csv",
    size=1_910_208_392,
    sha256="a6bc8eabc40b61a562a5e45c91e9b822418d0d863576b28a9ccd549451e55a92",
)
INFO = FormFile(
    name="tmall/user_info_format1.csv",
    page=PAGE,
    what=f"{_ASK}: user_info_format1.csv",
    mirror_path="tmall/user_info_format1.csv",
    size=4_546_137,
    sha256="6f2e496fe602b672c1013eca1334b671501ccd39ddde010517658317eecccde1",
)
FRAGMENT = FormFile(
    name="tmall/user_log_small.csv",
    page="https://github.com/QingMengK/BigData",
    what="user_log_small.csv, a fragment of the log that a tutorial uses",
    mirror_path="tmall/user_log_small.csv",
    size=474_332,
    sha256="15bcb173093130364b05ab22adddb52cc60f84b9ea5c9173b614b5d9827cf29c",
)
SOURCE = Source(
    name="tmall",
    address=PAGE,
    synthetic=False,
    holds="54,925,330 clicks, carts, purchases and favourites by 424,170 users in half a year; gender, age",
    size=1_914_754_529,
    entry="{source: tmall, obtain: {layout: official}, format: tmall, read: {layout: official}}",
    files=(LOG, INFO),
    licence=(
        "Repeat Buyers Prediction (IJCAI-15), (c) Alibaba, from Tianchi. For research only: no commercial use and no "
        "redistribution; the terms are those accepted at the download. Publications should name Tianchi and the "
        "IJCAI-15 Repeat Buyers Prediction competition."
    ),
)

YEAR = 2014
"""The log gives month and day alone. Its half year ends with 11 November 2014, and only the order of days matters."""
ACTIONS = ("click", "cart", "buy", "favourite")
"""In the order of their numbers in the log."""
GENDERS = ("unknown", "female", "male")
AGES = ("unknown", "under-18", "18-24", "25-29", "30-34", "35-39", "40-49", "50+")

LOG_NAME, INFO_NAME, FRAGMENT_NAME = (Path(file.name).name for file in (LOG, INFO, FRAGMENT))
_INTEGERS = {"user_id": pl.Int64, "item_id": pl.Int64, "cat_id": pl.Int32}
_LOG = _INTEGERS | {"seller_id": pl.Int32, "brand_id": pl.Int32, "time_stamp": pl.Int32, "action_type": pl.Int8}
_FILLED_AT_RANDOM = ("age_range", "gender", "province")
_FRAGMENT = (
    _INTEGERS
    | {"merchant_id": pl.Int32, "brand_id": pl.Int32, "month": pl.Int32, "day": pl.Int32, "action": pl.Int8}
    | dict.fromkeys(_FILLED_AT_RANDOM, pl.String)
)
INTERACTIONS = pa.schema(
    [("user", pa.int64()), ("item", pa.int64()), ("rating", pa.float32()), ("timestamp", pa.int64())]
    + [("action", pa.int8())]
    + [(name, pa.int32()) for name in ("day", "category", "seller", "brand")]
)
"""action: a number of `ACTIONS`; day: mmdd; brand is null where it is blank."""
_AGES = dict(enumerate((None, *AGES[1:], AGES[-1])))  # 7 and 8 are both 50 and over
_GENDERS = {0: "female", 1: "male", 2: None}
_SECONDS = {
    100 * month + day: int(datetime(YEAR, month, day, tzinfo=UTC).timestamp())
    for month in range(1, 13)
    for day in range(1, calendar.monthrange(YEAR, month)[1] + 1)
}


class ObtainOptions(Options):
    """Which files, and so how they are laid out."""

    layout: Literal["official", "small"]
    """`small` is a fragment of 9,999 rows of 62 users, laid out otherwise and without a table of users."""


ReadOptions = ObtainOptions


def source(options: ObtainOptions) -> Source:
    """What is said about the files that `options` ask for."""
    if options.layout == "official":
        return SOURCE
    holds = "9,999 clicks, purchases and favourites by 62 users: a fragment of the log, without a table of users"
    return replace(SOURCE, address=FRAGMENT.page, holds=holds, size=474_332, files=(FRAGMENT,))


def obtain(folder: Path, places: Places, options: ObtainOptions) -> None:
    """Fill `folder` with the log and, in the official layout, the table of users.

    Raises:
        DataError: a file cannot be had, or is not what was published.
    """
    copy_verified((LOG, INFO) if options.layout == "official" else (FRAGMENT,), folder, places)


def convert(folder: Path, place: Path, options: ReadOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `place`.

    interactions: rows in the order of the log, repeats included; rating null; timestamp 00:00 UTC of the day in `YEAR`;
    the other columns are those of `INTERACTIONS`.
    users, in the official layout alone: gender and age, null where the file leaves them blank or says unknown. The
    fragment has such columns too, but they change from row to row for the same user, so they are not read.

    Raises:
        DataError: a file is missing, empty or malformed; an action, day, age range or gender is not one of the known;
            a user is repeated in the table of users, or in the log and not there.
    """
    tables, features = ["interactions"], []
    if options.layout == "official":
        _write_users(folder / INFO_NAME, place / "users.parquet")
        tables.append("users")
        features = [
            Feature(name="gender", kind="categorical", categories=GENDERS, unknown="unknown", sensitive=True),
            Feature(name="age", kind="categorical", categories=AGES, unknown="unknown", sensitive=True),
        ]
        _write_log(folder / LOG_NAME, place / "interactions.parquet")
        _require_known(folder, place)
    else:
        _write_fragment(folder / FRAGMENT_NAME, place / "interactions.parquet")
    write_raw_schema(RawSchema(tables=tuple(tables), features=tuple(features), time="seconds"), place)


def _write_users(path: Path, target: Path) -> None:
    kinds = {"user_id": pl.Int64, "age_range": pl.Int8, "gender": pl.Int8}
    table = read_table(path, ",", kinds, may_be_empty=("age_range", "gender"), header=",".join(kinds))
    allow(path, table, "user_id", pl.col("user_id") >= 0, "0 or more", first_line=2)
    allow(path, table, "age_range", pl.col("age_range").is_in(list(_AGES)), "0 to 8 or blank", first_line=2)
    allow(path, table, "gender", pl.col("gender").is_in(list(_GENDERS)), "0 to 2 or blank", first_line=2)
    require_unique(path, table, ["user_id"], first_line=2)
    table.select(
        user="user_id", gender=pl.col("gender").replace_strict(_GENDERS), age=pl.col("age_range").replace_strict(_AGES)
    ).write_parquet(target)


def _write_log(path: Path, target: Path) -> None:
    with _writer(target) as out:
        for first, lines in blocks(path, header=",".join(_LOG)):
            log = parse(path, lines, ",", _LOG, first_line=first, may_be_empty=("brand_id",))
            _refuse_unknown(path, log, "action_type", first)
            known = pl.col("time_stamp").is_in(list(_SECONDS))
            allow(path, log, "time_stamp", known, "a month and day (mmdd)", first, complete=False)
            out.write_table(_interactions(log, "time_stamp", "seller_id", "action_type"))


def _write_fragment(path: Path, target: Path) -> None:
    with _writer(target) as out:
        for first, lines in blocks(path, header=",".join(_FRAGMENT)):
            log = parse(path, lines, ",", _FRAGMENT, first_line=first, may_be_empty=("brand_id", *_FILLED_AT_RANDOM))
            _refuse_unknown(path, log, "action", first)
            allow(path, log, "month", pl.col("month").is_between(1, 12), "1 to 12", first, complete=False)
            log = log.with_columns(mmdd=100 * pl.col("month") + pl.col("day").clip(0, 99))
            known = pl.col("mmdd").is_in(list(_SECONDS))
            allow(path, log, "day", known, "a day of its month", first, complete=False)
            out.write_table(_interactions(log, "mmdd", "merchant_id", "action"))


def _refuse_unknown(path: Path, log: pl.DataFrame, action: str, first: int) -> None:
    """Refuse negative ids, and actions that are none of `ACTIONS`."""
    for column in (name for name in log.columns if name.endswith("_id")):
        allow(path, log, column, pl.col(column) >= 0, "0 or more", first, complete=False)
    known = pl.col(action).is_between(0, len(ACTIONS) - 1)
    allow(path, log, action, known, f"0 to {len(ACTIONS) - 1}", first, complete=False)


def _interactions(log: pl.DataFrame, day: str, seller: str, action: str) -> pa.Table:
    seconds = pl.col(day).replace_strict(_SECONDS, return_dtype=pl.Int64)
    table = log.select(
        user="user_id",
        item="item_id",
        rating=pl.lit(None, pl.Float32),
        timestamp=seconds,
        action=action,
        day=day,
        category="cat_id",
        seller=seller,
        brand="brand_id",
    )
    return table.to_arrow().cast(INTERACTIONS)


def _writer(target: Path) -> pq.ParquetWriter:
    ids = {"user": "DELTA_BINARY_PACKED", "item": "DELTA_BINARY_PACKED"}
    others = [name for name in INTERACTIONS.names if name not in ids]
    return pq.ParquetWriter(target, INTERACTIONS, compression="zstd", use_dictionary=others, column_encoding=ids)


def _require_known(folder: Path, place: Path) -> None:
    log, users = (pl.scan_parquet(place / f"{table}.parquet") for table in ("interactions", "users"))
    strangers = log.select("user").unique().join(users, on="user", how="anti").collect(engine="streaming")["user"]
    if len(strangers):
        rows = log.select("user").with_row_index("row").filter(pl.col("user").is_in(strangers.implode()))
        row, user = rows.select(pl.all().sort_by("row").first()).collect(engine="streaming").row(0)
        raise DataError(
            f"{folder / LOG_NAME}:{row + 2}: user {user} is not in {INFO_NAME} ({len(strangers)} such users); "
            "get both files again from the same place"
        )
