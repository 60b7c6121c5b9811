"""MovieLens 100K (Harper & Konstan, 2015): where it comes from, and its raw format as its README tells it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from tasks.contracts import Feature, RatingScale
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import NoOptions, Places, RemoteFile, Source, local_file
from tasks.datasets.files import SECONDS, Column, TextTable
from tasks.datasets.text import content
from tasks.raw import write_raw

ADDRESS = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
ARCHIVE = RemoteFile(
    address=ADDRESS,
    size=4_924_029,
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
RATINGS = TextTable(
    "u.data",
    {"user": Column(pl.Int32), "item": Column(pl.Int32), "rating": Column(pl.Int32, 1, 5), "timestamp": SECONDS},
    "\t",
    encoding="latin-1",
    unique=("user", "item"),
)
USERS = TextTable(
    "u.user",
    {
        "user": Column(pl.Int32),
        "age": Column(pl.Int32, 1, MAX_AGE),
        "gender": Column(values=GENDERS),
        "occupation": Column(),
        "zip_code": Column(empty=True),
    },
    "|",
    encoding="latin-1",
    unique=("user",),
)


def items_table(genres: Iterable[str]) -> TextTable:
    """u.item, which has a flag for every genre of u.genre."""
    columns = {"item": Column(pl.Int32), "title": Column()}
    columns |= dict.fromkeys(("release_date", "video_date", "url"), Column(empty=True))
    columns |= dict.fromkeys(genres, Column(pl.Int8, values=(0, 1)))
    return TextTable("u.item", columns, "|", encoding="latin-1", unique=("item",))


def write_lists(folder: Path, genres: Iterable[str], occupations: Iterable[str], sizes: tuple[int, int, int]) -> None:
    """Write u.genre, u.occupation and u.info.

    sizes: users, items and ratings.
    """
    lists = {
        "u.genre": [f"{name}|{number}" for number, name in enumerate(genres)] + [""],
        "u.occupation": occupations,
        "u.info": [f"{size} {what}" for size, what in zip(sizes, ("users", "items", "ratings"), strict=True)],
    }
    for name, lines in lists.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="latin-1")


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """Fill `folder` with the files of `MEMBERS`.

    An official archive is verified as a whole, and in every archive u.data, u.user and u.item by what they contain,
    so the folder is the same wherever it came from.

    Raises:
        DataError: the archive cannot be had, or is not what was published.
    """
    with local_file(ARCHIVE, places) as archive:
        unpack(archive, folder, MEMBERS)


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `destination`.

    users: `years`, `age` (group), gender, occupation, zip_code. items: title, dates, url and a flag per genre.

    Raises:
        DataError: a file is missing, empty or malformed; a rating, gender, age, genre flag or occupation is not
            allowed; an id or a (user, item) pair is repeated; a rating names an unknown user or item (names file
            and line).
    """
    occupations = _names(folder / "u.occupation")
    genres = [line.partition("|")[0] for line in _names(folder / "u.genre")]
    jobs = pl.Series(occupations), f"one of the {len(occupations)} in u.occupation"
    users = USERS.read(folder, {"occupation": jobs})
    items = items_table(genres).read(folder)
    listed = {"user": (users["user"], "listed in u.user"), "item": (items["item"], "listed in u.item")}
    ratings = RATINGS.read(folder, listed)
    years = pl.col("age")
    group = pl.when(years < 35).then(pl.lit(AGES[0])).when(years <= 45).then(pl.lit(AGES[1])).otherwise(pl.lit(AGES[2]))
    categories = {"gender": GENDERS, "age": AGES, "occupation": occupations}
    write_raw(
        destination,
        {"interactions": ratings, "users": users.with_columns(years=years, age=group), "items": items},
        features=tuple(
            Feature(name=name, kind="categorical", categories=values, sensitive=True)
            for name, values in categories.items()
        ),
        scale=SCALE,
        unique_pairs=True,
        time="seconds",
    )


def _names(path: Path) -> tuple[str, ...]:
    lines = [line.strip() for line in content(path, "latin-1").splitlines()]
    return tuple(line for line in lines if line)
