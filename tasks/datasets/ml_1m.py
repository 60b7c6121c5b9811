"""MovieLens 1M (Harper & Konstan, 2015): where it comes from, and its raw format as its README tells it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from tasks.contracts import Feature, RatingScale
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import FormFile, Options, Places, RemoteFile, Source, local_file
from tasks.datasets.files import SECONDS, Column, Listed, TextTable
from tasks.datasets.text import LATIN_1_OR_UTF_8, blocks
from tasks.errors import DataError
from tasks.raw import write_raw

ADDRESS = "https://files.grouplens.org/datasets/movielens/ml-1m.zip"
ARCHIVE = RemoteFile(
    address=ADDRESS,
    size=5_917_549,
    sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
    mirror_path="ml-1m/ml-1m.zip",
)
SOURCE = Source(
    name="ml-1m",
    address=ADDRESS,
    synthetic=False,
    holds="1,000,209 ratings by 6,040 users of 3,706 films; gender, age group, occupation",
    size=ARCHIVE.size,
    entry="{source: ml_1m, obtain: {archive: official}, format: ml_1m, read: {time: seconds}}",
    files=(ARCHIVE,),
    licence=(
        "MovieLens 1M, (c) GroupLens Research, University of Minnesota. For research only: no commercial use and no "
        "redistribution without permission; publications must cite F. M. Harper and J. A. Konstan, The MovieLens "
        "Datasets: History and Context, ACM TiiS 5(4), 2015, https://doi.org/10.1145/2827872. Full text: README."
    ),
)


def _part(name: str) -> FormFile:
    return FormFile(
        name=f"ml-1m-{name}.zip",
        page="https://grouplens.org/datasets/movielens/1m/",
        what="a part that only a mirror has (DPREC_MIRROR); the publisher has ml-1m.zip (say `archive: official`)",
        mirror_path=f"ml-1m/ml-1m-{name}.zip",
    )


PARTS = {name: _part(name) for name in ("no-timestamps", "first-487650-rows")}
NOTES = {
    "no-timestamps": "all 1,000,209 ratings of MovieLens 1M in the published order of lines, without their time stamps",
    "first-487650-rows": "the first 487,650 of 1,000,209 lines of MovieLens 1M's ratings.dat: users 1 to 2999, whole",
}
RATINGS_SHA256 = {
    "official": "506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f",
    "no-timestamps": "2dad134c8b493373beed8d2a42e18ec2a93606fd957bd76c0bfbdef5c514b985",
    "first-487650-rows": "1273c4edfe3c0ff9e3a0a0d55819faeb947da0ad7df3927333b51ebefbeedc3d",
}

GENDERS = ("F", "M")
AGES = {1: "under-18", 18: "18-24", 25: "25-34", 35: "35-44", 45: "45-49", 50: "50-55", 56: "56+"}
OCCUPATIONS = (  # their numbers are 0 to 20
    "other or not specified", "academic/educator", "artist", "clerical/admin", "college/grad student",
    "customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker", "K-12 student", "lawyer",
    "programmer", "retired", "sales/marketing", "scientist", "self-employed", "technician/engineer",
    "tradesman/craftsman", "unemployed", "writer",
)  # fmt: skip
SCALE = RatingScale(low=1, high=5, step=1)
RATINGS = TextTable(
    "ratings.dat",
    {"user": Column(pl.Int32), "item": Column(pl.Int32), "rating": Column(pl.Int32, 1, 5), "timestamp": SECONDS},
    "::",
    unique=("user", "item"),
)
USERS = TextTable(
    "users.dat",
    {
        "user": Column(pl.Int32, 1),
        "gender": Column(values=GENDERS),
        "age": Column(pl.Int32, values=AGES, what=f"one of the codes {', '.join(map(str, AGES))}"),
        "occupation": Column(pl.Int32, 0, len(OCCUPATIONS) - 1),
        "zip_code": Column(),
    },
    "::",
    unique=("user",),
)
ITEMS = TextTable(
    "movies.dat",
    {"item": Column(pl.Int32, 1), "title": Column(), "genres": Column()},
    "::",
    encoding=LATIN_1_OR_UTF_8,
    unique=("item",),
)


class ObtainOptions(Options):
    """Which archive: the published one, or one of the two parts of it that a mirror may have."""

    archive: Literal["official", "no-timestamps", "first-487650-rows"]


class ReadOptions(Options):
    """What says which rating came first: `seconds` its time stamp, `order` its line in a copy without time stamps.

    A user's lines are published in an order of their own, not that of their time stamps: sequences made of it are
    sequences of nothing in particular.
    """

    time: Literal["seconds", "order"]


def source(options: ObtainOptions) -> Source:
    """SOURCE, or what there is to say of a part."""
    if options.archive == "official":
        return SOURCE
    part = PARTS[options.archive]
    return replace(SOURCE, name=Path(part.name).stem, holds=NOTES[options.archive], files=(part,))


def obtain(folder: Path, places: Places, options: ObtainOptions) -> None:
    """Fill `folder` with README, ratings.dat, users.dat and movies.dat, and beside a part a NOTE of what it is.

    An official archive is verified as a whole, and in every archive what is read of it by its content, so the folder
    is the same wherever it came from.

    Raises:
        ByHandError: a part is neither in the mirror nor placed.
        DataError: the archive cannot be had, or is not what was published.
    """
    members = {
        "ml-1m/README": None,
        "ml-1m/movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
        "ml-1m/ratings.dat": RATINGS_SHA256[options.archive],
        "ml-1m/users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
    }
    with local_file(PARTS.get(options.archive, ARCHIVE), places) as archive:
        unpack(archive, folder, members)
    if note := NOTES.get(options.archive):
        (folder / "NOTE").write_text(f"Not the published archive but {note}.\n", encoding="utf-8")


def convert(folder: Path, destination: Path, options: ReadOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `destination`.

    interactions has `position` where the order of lines is the time; users has `gender`, `age` (group), `occupation`
    and `zip_code`; items has `title` and `genres` ("|" between them).

    Raises:
        DataError: a file is missing, empty or malformed; time stamps are missing, or there although the order was
            asked for; a rating, gender, age or occupation is not allowed; an id or a (user, item) pair is repeated; a
            rating names an unknown user or item (names file and line).
    """
    users, items = USERS.read(folder), ITEMS.read(folder)
    listed = {"user": (users["user"], "listed in users.dat"), "item": (items["item"], "listed in movies.dat")}
    categories = {"gender": GENDERS, "age": tuple(AGES.values()), "occupation": OCCUPATIONS}
    users = users.with_columns(
        pl.col("age").replace_strict(AGES, return_dtype=pl.String),
        pl.col("occupation").replace_strict(dict(enumerate(OCCUPATIONS)), return_dtype=pl.String),
    )
    write_raw(
        destination,
        {"interactions": _ratings(folder, options, listed), "users": users, "items": items},
        features=tuple(
            Feature(name=name, kind="categorical", categories=values, sensitive=True)
            for name, values in categories.items()
        ),
        scale=SCALE,
        unique_pairs=True,
        time=options.time,
    )


def _ratings(folder: Path, options: ReadOptions, listed: Listed) -> pl.DataFrame:
    """user, item, rating, timestamp (null without time stamps), and position (int64) where it is asked for.

    Copies without time stamps go round; none is invented.
    """
    path = folder / RATINGS.name
    _, lines = next(blocks(path, size=1))
    without = lines.count(RATINGS.separator.encode()) == len(RATINGS.columns) - 2
    if without and options.time == "seconds":
        raise DataError(
            f"{path}:1: 3 fields, so this copy has no time stamps; get the published archive, or say `time: order` in "
            "params.yaml to take the order of the lines for it"
        )
    if not without and options.time == "order":
        raise DataError(f"{path}:1: is not a copy without time stamps; say `time: seconds` in params.yaml")
    if not without:
        return RATINGS.read(folder, listed)
    columns = {name: column for name, column in RATINGS.columns.items() if name != "timestamp"}
    ratings = replace(RATINGS, columns=columns).read(folder, listed)
    return ratings.with_columns(timestamp=pl.lit(None, pl.Int64), position=pl.int_range(pl.len(), dtype=pl.Int64))
