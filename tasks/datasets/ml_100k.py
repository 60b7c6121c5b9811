"""MovieLens 100K (Harper & Konstan, 2015): where it comes from, and its raw format as its README tells it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tasks.contracts import Feature, RatingScale
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import NoOptions, Places, RemoteFile, Source, local_file
from tasks.datasets.text import allow, allow_seconds, content, read_table, require_unique
from tasks.raw import RawSchema, write_raw_schema

ADDRESS = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
ARCHIVE = RemoteFile(
    address=ADDRESS,
    size=4_924_029,
    md5="0e33842e24a9c977be4e0107933c0723",
    sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    mirror_path="ml-100k/ml-100k.zip",
)
SOURCE = Source(
    name="ml-100k",
    address=ADDRESS,
    synthetic=False,
    holds="100,000 ratings by 943 users of 1,682 films; gender, age, occupation",
    size=ARCHIVE.size,
    entry="{source: ml_100k, obtain: {}, format: ml_100k, read: {}}",
    files=(ARCHIVE,),
    licence=(
        "MovieLens 100K, (c) GroupLens Research, University of Minnesota. For research only: no commercial use and no "
        "redistribution without permission; publications must cite F. M. Harper and J. A. Konstan, The MovieLens "
        "Datasets: History and Context, ACM TiiS 5(4), 2015, https://doi.org/10.1145/2827872. Full text: README."
    ),
)
MEMBERS = {
    "ml-100k/README": None,
    "ml-100k/u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    "ml-100k/u.genre": None,
    "ml-100k/u.info": None,
    "ml-100k/u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
    "ml-100k/u.occupation": None,
    "ml-100k/u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
}

ObtainOptions = NoOptions
ReadOptions = NoOptions
GENDERS = ("F", "M")
MAX_AGE = 120
AGES = ("under-35", "35-45", "over-45")
"""GERAI's age groups (docs/methods.md §2): 35 and 45 belong to the middle one."""
SCALE = RatingScale(low=1, high=5, step=1)
_DATA = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Int32, "timestamp": pl.Int64}
_USER = {"user": pl.Int32, "age": pl.Int32, "gender": pl.String, "occupation": pl.String, "zip_code": pl.String}
_ITEM = {"item": pl.Int32, "title": pl.String, "release_date": pl.String, "video_date": pl.String, "url": pl.String}


@dataclass(frozen=True)
class Published:
    """The raw files as tables, rows in file order (row i is line i + 1), ids as published.

    ratings: user int32, item int32, rating int32 in 1..5, timestamp int64 (seconds since 1970); every pair once.
    users: user int32, age int32 (years), gender "F" or "M", occupation, zip_code.
    items: item int32, title, release_date, video_date, url (text, null where empty), one int8 0/1 per genre.
    genres, occupations: the published lists, in their order.
    """

    ratings: pl.DataFrame
    users: pl.DataFrame
    items: pl.DataFrame
    genres: tuple[str, ...]
    occupations: tuple[str, ...]


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """Fill `folder` with the files of `MEMBERS`.

    An official archive is verified as a whole, and in every archive u.data, u.user and u.item by what they contain,
    so the folder is the same wherever it came from.

    Raises:
        DataError: the archive cannot be had, or is not what was published.
    """
    with local_file(ARCHIVE, places) as archive:
        unpack(archive, folder, MEMBERS)


def read(folder: Path) -> Published:
    """Read the raw files of ML-100K's format.

    Raises:
        DataError: a file is missing, empty or malformed; a rating, gender, age, genre flag or occupation is not
            allowed; an id or a (user, item) pair is repeated; a rating names an unknown user or item (names file
            and line).
    """
    occupations = _names(folder / "u.occupation")
    genres = tuple(line.partition("|")[0] for line in _names(folder / "u.genre"))

    users = read_table(folder / "u.user", "|", _USER, encoding="latin-1", may_be_empty={"zip_code"})
    allow(folder / "u.user", users, "age", pl.col("age").is_between(1, MAX_AGE), f"1 to {MAX_AGE}")
    allow(folder / "u.user", users, "gender", pl.col("gender").is_in(GENDERS), " or ".join(GENDERS))
    known = pl.col("occupation").is_in(occupations)
    allow(folder / "u.user", users, "occupation", known, f"one of the {len(occupations)} in u.occupation")
    require_unique(folder / "u.user", users, ["user"])

    flags = _ITEM | dict.fromkeys(genres, pl.Int8)
    items = read_table(folder / "u.item", "|", flags, encoding="latin-1", may_be_empty=_ITEM.keys() - {"item", "title"})
    for genre in genres:
        allow(folder / "u.item", items, genre, pl.col(genre).is_between(0, 1), "0 or 1")
    require_unique(folder / "u.item", items, ["item"])

    ratings = read_table(folder / "u.data", "\t", _DATA, encoding="latin-1")
    allow(folder / "u.data", ratings, "rating", pl.col("rating").is_between(1, 5), "1 to 5")
    allow_seconds(folder / "u.data", ratings, "timestamp")
    for column, table in (("user", users), ("item", items)):
        known = pl.col(column).is_in(table[column].implode())
        allow(folder / "u.data", ratings, column, known, f"listed in u.{column}")
    require_unique(folder / "u.data", ratings, ["user", "item"])
    return Published(ratings, users, items, genres, occupations)


def convert(folder: Path, place: Path, _: NoOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `place`; users have `years` and `age`, their group.

    Raises:
        DataError: as `read`.
    """
    raw = read(folder)
    years = pl.col("age")
    group = pl.when(years < 35).then(pl.lit(AGES[0])).when(years <= 45).then(pl.lit(AGES[1])).otherwise(pl.lit(AGES[2]))
    ids = pl.col("user", "item").cast(pl.Int64)
    raw.ratings.with_columns(ids, pl.col("rating").cast(pl.Float32)).write_parquet(place / "interactions.parquet")
    users = raw.users.with_columns(pl.col("user").cast(pl.Int64), years=years, age=group)
    users.write_parquet(place / "users.parquet")
    raw.items.with_columns(pl.col("item").cast(pl.Int64)).write_parquet(place / "items.parquet")
    categories = {"gender": GENDERS, "age": AGES, "occupation": raw.occupations}
    features = tuple(
        Feature(name=name, kind="categorical", categories=values, sensitive=True) for name, values in categories.items()
    )
    tables = ("interactions", "items", "users")
    schema = RawSchema(tables=tables, features=features, scale=SCALE, unique_pairs=True, time="seconds")
    write_raw_schema(schema, place)


def _names(path: Path) -> tuple[str, ...]:
    lines = [line.strip() for line in content(path, "latin-1").splitlines()]
    return tuple(line for line in lines if line)
