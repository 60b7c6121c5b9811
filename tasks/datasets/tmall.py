"""Tmall: the log of the IJCAI-15 repeat buyers competition, and its raw format by the competition's page."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa

from tasks.core.contracts import Feature
from tasks.core.raw import raw_writer, write_raw
from tasks.datasets import allowed
from tasks.datasets.fetch import Options, Source, by_option, copied, form_files
from tasks.datasets.files import Column, TextTable
from tasks.datasets.text import allow

PAGE = "https://tianchi.aliyun.com/dataset/42"
LOG_FILE, INFO_FILE = form_files(
    "tmall",
    PAGE,
    "data set 42, Repeat Buyers Prediction (IJCAI-15), after a login; unpack data_format1.zip: {}",
    {
        "user_log_format1.csv": (1_910_208_392, "a6bc8eabc40b61a562a5e45c91e9b822418d0d863576b28a9ccd549451e55a92"),
        "user_info_format1.csv": (4_546_137, "6f2e496fe602b672c1013eca1334b671501ccd39ddde010517658317eecccde1"),
    },
)
(FRAGMENT_FILE,) = form_files(
    "tmall",
    "https://github.com/QingMengK/BigData",
    "{}, a fragment of the log that a tutorial uses",
    {"user_log_small.csv": (474_332, "15bcb173093130364b05ab22adddb52cc60f84b9ea5c9173b614b5d9827cf29c")},
)
SOURCE = Source(
    name="tmall",
    address=PAGE,
    holds="54,925,330 clicks, carts, purchases and favourites by 424,170 users in half a year; gender, age",
    entry="{source: tmall, obtain: {layout: official}, format: tmall, read: {layout: official}}",
    files=(LOG_FILE, INFO_FILE),
    licence="Repeat Buyers Prediction (IJCAI-15), (c) Alibaba, from Tianchi.",
    terms=(
        "For research only: no commercial use and no "
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
_ID, _NUMBER = Column(pl.Int64, 0), Column(pl.Int32, 0)
_EVENT = {
    "user_id": _ID,
    "item_id": _ID,
    "cat_id": _NUMBER,
    "seller_id": _NUMBER,
    "brand_id": replace(_NUMBER, empty=True),
}
_ACTION = Column(pl.Int8, 0, len(ACTIONS) - 1)
USERS = TextTable(
    INFO_FILE.below,
    {
        "user_id": _ID,
        "age_range": Column(pl.Int8, values=_AGES, empty=True),
        "gender": Column(pl.Int8, values=_GENDERS, empty=True),
    },
    headed=True,
    unique=("user_id",),
)
LOG = TextTable(
    LOG_FILE.below,
    _EVENT | {"time_stamp": Column(pl.Int32, values=_SECONDS, what=allowed.MONTH_AND_DAY), "action_type": _ACTION},
    headed=True,
)
FRAGMENT = TextTable(
    FRAGMENT_FILE.below,
    {
        **_EVENT,
        "month": Column(pl.Int32, 1, 12),
        "day": Column(pl.Int32),
        "action_type": _ACTION,
        **dict.fromkeys(("age_range", "gender", "province"), Column(empty=True)),
    },
    headed="user_id,item_id,cat_id,merchant_id,brand_id,month,day,action,age_range,gender,province",
)


class ObtainOptions(Options):
    """Which files, and so how they are laid out."""

    layout: Literal["official", "small"]
    """`small` is a fragment of 9,999 rows of 62 users, laid out otherwise and without a table of users."""


ReadOptions = ObtainOptions


_FRAGMENT = replace(
    SOURCE,
    address=FRAGMENT_FILE.page,
    holds="9,999 clicks, purchases and favourites by 62 users: a fragment of the log, without a table of users",
    files=(FRAGMENT_FILE,),
)
source = by_option("layout", {"official": SOURCE, "small": _FRAGMENT})
obtain = copied(source)


def convert(folder: Path, destination: Path, options: ReadOptions) -> None:
    """Write the raw tables (`tasks.core.raw.RAW_COLUMNS`) into `destination`.

    interactions: rows in the order of the log, repeats included; rating null; timestamp 00:00 UTC of the day in `YEAR`;
    the other columns are those of `INTERACTIONS`.
    users, in the official layout alone: gender and age, null where the file leaves them blank or says unknown. The
    fragment has such columns too, but they change from row to row for the same user, so they are not read.
    """
    target = destination / "interactions.parquet"
    if options.layout == "small":
        _write_log(target, _fragment(folder))
        write_raw(destination, {"interactions": None}, time="seconds")
        return
    users = USERS.read(folder).select(
        user="user_id", gender=pl.col("gender").replace_strict(_GENDERS), age=pl.col("age_range").replace_strict(_AGES)
    )
    listed = {"user_id": (users["user"], f"a user of {USERS.name}: get both files again from the same place")}
    _write_log(target, (log for _, log in LOG.batches(folder, listed)))
    features = (
        Feature(name="gender", kind="categorical", categories=GENDERS, unknown="unknown", sensitive=True),
        Feature(name="age", kind="categorical", categories=AGES, unknown="unknown", sensitive=True),
    )
    write_raw(destination, {"interactions": None, "users": users}, features=features, time="seconds")


def _fragment(folder: Path) -> Iterator[pl.DataFrame]:
    for first, log in FRAGMENT.batches(folder):
        log = log.with_columns(time_stamp=100 * pl.col("month") + pl.col("day").clip(0, 99))
        listed = pl.col("time_stamp").is_in(list(_SECONDS))
        allow(folder / FRAGMENT.name, log, "day", listed, allowed.DAY_OF_MONTH, first)
        yield log


def _write_log(target: Path, logs: Iterable[pl.DataFrame]) -> None:
    with raw_writer(target, INTERACTIONS, differences=("user", "item")) as write:
        for log in logs:
            seconds = pl.col("time_stamp").replace_strict(_SECONDS, return_dtype=pl.Int64)
            write(
                log.select(
                    user="user_id",
                    item="item_id",
                    rating=pl.lit(None, pl.Float32),
                    timestamp=seconds,
                    action="action_type",
                    day="time_stamp",
                    category="cat_id",
                    seller="seller_id",
                    brand="brand_id",
                )
            )
