"""MovieLens 100K, 1M, 20M, 25M, 32M and Latest, small (Harper & Konstan, 2015): sources, and formats as READMEs say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from tasks.core.contracts import Feature, RatingScale
from tasks.core.errors import DataError
from tasks.core.raw import raw_writer, write_raw
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import FormFile, NoOptions, Options, Places, RemoteFile, Source, local_file
from tasks.datasets.files import SECONDS, Column, Listed, TextTable
from tasks.datasets.text import LATIN_1_OR_UTF_8, blocks, content, line_count

CONDITIONS = (
    "For research only: no commercial use {}; publications must "
    "cite F. M. Harper and J. A. Konstan, The MovieLens Datasets: History and Context, ACM TiiS 5(4), 2015, "
    "https://doi.org/10.1145/2827872. Full text: {}."
)
TERMS = "and no redistribution without permission"
GENDERS = ("F", "M")
SCALE, HALF_STARS = RatingScale(low=1, high=5, step=1), RatingScale(low=0.5, high=5, step=0.5)
_RATINGS = {"user": Column(pl.Int32), "item": Column(pl.Int32), "rating": Column(pl.Int32, 1, 5), "timestamp": SECONDS}


def _source(
    name: str, title: str, holds: str, file: tuple[int, str], options: str, terms: str = TERMS, readme: str = "README"
) -> Source:
    """file: size and SHA-256 of the archive; terms: of use and redistribution."""
    address = f"https://files.grouplens.org/datasets/movielens/{name}.zip"
    return Source(
        name=name,
        address=address,
        holds=holds,
        entry=f"{{source: {name.replace('-', '_')}, {options}}}",
        files=(RemoteFile(address, *file, f"{name}/{name}.zip"),),
        licence=f"{title}, (c) GroupLens Research, University of Minnesota.",
        terms=CONDITIONS.format(terms, readme),
    )


@dataclass(frozen=True)
class Release:
    """One of the data sets."""

    SOURCE: Source
    members: Mapping[str, str | None]
    """Path in the archive -> SHA-256, None where any content will do."""
    convert: Callable[[Path, Path, Any], None]
    n_ratings: int | None = None
    """Rows of ratings.csv, where its content is not known."""
    parts: Mapping[str, tuple[FormFile, str, str]] = field(default_factory=dict)
    """The option `archive` -> a part that a mirror may have, what it is, and SHA-256 of its ratings."""
    ObtainOptions: type[Options] = NoOptions
    ReadOptions: type[Options] = NoOptions

    def source(self, options: Options) -> Source:
        """SOURCE, or what there is to say of a part."""
        if (archive := getattr(options, "archive", "official")) not in self.parts:
            return self.SOURCE
        file, holds, _ = self.parts[archive]
        return replace(self.SOURCE, name=Path(file.name).stem, holds=holds, files=(file,), about=self.SOURCE.size)

    def obtain(self, folder: Path, places: Places, options: Options) -> None:
        """Fill `folder` with the members of the archive, and next to a part a NOTE of what it is.

        An official archive is verified as a whole, and in every archive what is read of it by its content (of ML-20M by
        the number of ratings), so the folder is the same wherever it came from.

        Raises:
            ByHandError: a part is neither in the mirror nor placed.
            DataError: the archive cannot be had, or is not what was published.
        """
        members, file = dict(self.members), self.SOURCE.files[0]
        if (archive := getattr(options, "archive", "official")) in self.parts:
            file, note, members["ml-1m/ratings.dat"] = self.parts[archive]
            (folder / "NOTE").write_text(f"Not the published archive but {note}.\n", encoding="utf-8")
        with local_file(file, places) as path:
            unpack(path, folder, members)
            if self.n_ratings and (n := line_count(folder / "ratings.csv") - 1) != self.n_ratings:
                raise DataError(
                    f"{path}: ratings.csv has {n:,} ratings, published are {self.n_ratings:,}; get the archive from "
                    "its official address"
                )


def _sensitive(categories: Mapping[str, tuple[str, ...]]) -> tuple[Feature, ...]:
    return tuple(
        Feature(name=name, kind="categorical", categories=values, sensitive=True) for name, values in categories.items()
    )


# 100K: u.data and others, in Latin-1.

AGE_GROUPS = ("under-35", "35-45", "over-45")
"""GERAI's age groups (docs/methods.md §2): 35 and 45 belong to the middle one."""
RATINGS_100K = TextTable("u.data", _RATINGS, "\t", encoding="latin-1", unique=("user", "item"))
USERS_100K = TextTable(
    "u.user",
    {
        "user": Column(pl.Int32),
        "age": Column(pl.Int32, 1, 120),
        "gender": Column(values=GENDERS),
        "occupation": Column(),
        "zip_code": Column(empty=True),
    },
    "|",
    encoding="latin-1",
    unique=("user",),
)


def items_100k(genres: Iterable[str]) -> TextTable:
    """u.item, which has a flag for every genre of u.genre."""
    columns = {"item": Column(pl.Int32), "title": Column()}
    columns |= dict.fromkeys(("release_date", "video_date", "url"), Column(empty=True))
    columns |= dict.fromkeys(genres, Column(pl.Int8, values=(0, 1)))
    return TextTable("u.item", columns, "|", encoding="latin-1", unique=("item",))


def _convert_100k(folder: Path, destination: Path, _: NoOptions) -> None:
    """users: `years`, `age` (group), gender, occupation, zip_code. items: title, dates, url and a flag per genre."""
    occupations = _names(folder / "u.occupation")
    genres = [line.partition("|")[0] for line in _names(folder / "u.genre")]
    jobs = pl.Series(occupations), "in u.occupation"
    users = USERS_100K.read(folder, {"occupation": jobs})
    items = items_100k(genres).read(folder)
    listed = {"user": (users["user"], "in u.user"), "item": (items["item"], "in u.item")}
    ratings, years = RATINGS_100K.read(folder, listed), pl.col("age")
    young, middle, old = map(pl.lit, AGE_GROUPS)
    group = pl.when(years < 35).then(young).when(years <= 45).then(middle).otherwise(old)
    write_raw(
        destination,
        {"interactions": ratings, "users": users.with_columns(years=years, age=group), "items": items},
        features=_sensitive({"gender": GENDERS, "age": AGE_GROUPS, "occupation": occupations}),
        scale=SCALE,
        unique_pairs=True,
        time="seconds",
    )


def _names(path: Path) -> tuple[str, ...]:
    lines = [line.strip() for line in content(path, "latin-1").splitlines()]
    return tuple(line for line in lines if line)


ML_100K = Release(
    _source(
        "ml-100k",
        "MovieLens 100K",
        "100,000 ratings by 943 users of 1,682 films; gender, age, occupation",
        (4_924_029, "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"),
        "obtain: {}, format: ml_100k, read: {}",
    ),
    {
        "ml-100k/README": None,
        "ml-100k/u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
        "ml-100k/u.genre": None,
        "ml-100k/u.info": None,
        "ml-100k/u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
        "ml-100k/u.occupation": None,
        "ml-100k/u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
    },
    _convert_100k,
)

# 1M: ratings.dat and others, with two colons between fields.

AGES = {1: "under-18", 18: "18-24", 25: "25-34", 35: "35-44", 45: "45-49", 50: "50-55", 56: "56+"}
OCCUPATIONS = (  # their numbers are 0 to 20
    "other or not specified", "academic/educator", "artist", "clerical/admin", "college/grad student",
    "customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker", "K-12 student", "lawyer",
    "programmer", "retired", "sales/marketing", "scientist", "self-employed", "technician/engineer",
    "tradesman/craftsman", "unemployed", "writer",
)  # fmt: skip
RATINGS_1M = TextTable("ratings.dat", _RATINGS, "::", unique=("user", "item"))
USERS_1M = TextTable(
    "users.dat",
    {
        "user": Column(pl.Int32, 1),
        "gender": Column(values=GENDERS),
        "age": Column(pl.Int32, values=AGES),
        "occupation": Column(pl.Int32, 0, len(OCCUPATIONS) - 1),
        "zip_code": Column(),
    },
    "::",
    unique=("user",),
)
_FILMS = {"item": Column(pl.Int32, 1), "title": Column(), "genres": Column()}
ITEMS_1M = TextTable("movies.dat", _FILMS, "::", encoding=LATIN_1_OR_UTF_8, unique=("item",))


class ArchiveOptions(Options):
    """Which archive: the published one, or one of the two parts of it that a mirror may have."""

    archive: Literal["official", "no-timestamps", "first-487650-rows"]


class TimeOptions(Options):
    """What says which rating came first: `seconds` its time stamp, `order` its line in a copy without time stamps.

    A user's lines are published in an order of their own, not that of their time stamps: sequences made of it are
    sequences of nothing in particular.
    """

    time: Literal["seconds", "order"]


def _convert_1m(folder: Path, destination: Path, options: TimeOptions) -> None:
    """users: gender, age (group), occupation, zip_code. items: title, and genres with "|" between them."""
    users, items = USERS_1M.read(folder), ITEMS_1M.read(folder)
    listed = {"user": (users["user"], "in users.dat"), "item": (items["item"], "in movies.dat")}
    users = users.with_columns(
        pl.col("age").replace_strict(AGES, return_dtype=pl.String),
        pl.col("occupation").replace_strict(dict(enumerate(OCCUPATIONS)), return_dtype=pl.String),
    )
    write_raw(
        destination,
        {"interactions": _ratings_1m(folder, options, listed), "users": users, "items": items},
        features=_sensitive({"gender": GENDERS, "age": tuple(AGES.values()), "occupation": OCCUPATIONS}),
        scale=SCALE,
        unique_pairs=True,
        time=options.time,
    )


def _ratings_1m(folder: Path, options: TimeOptions, listed: Listed) -> pl.DataFrame:
    """Copies without time stamps go round; none is invented: `position` is the order of lines."""
    path = folder / RATINGS_1M.name
    _, lines = next(blocks(path, size=1))
    without = lines.count(RATINGS_1M.separator.encode()) == len(RATINGS_1M.columns) - 2
    if without and options.time == "seconds":
        raise DataError(
            f"{path}:1: 3 fields, so this copy has no time stamps; get the published archive, or say `time: order` in "
            "params.yaml to take the order of the lines for it"
        )
    if not without and options.time == "order":
        raise DataError(f"{path}:1: is not a copy without time stamps; say `time: seconds` in params.yaml")
    if not without:
        return RATINGS_1M.read(folder, listed)
    columns = {name: column for name, column in RATINGS_1M.columns.items() if name != "timestamp"}
    ratings = replace(RATINGS_1M, columns=columns).read(folder, listed)
    return ratings.with_columns(timestamp=pl.lit(None, pl.Int64), position=pl.int_range(pl.len(), dtype=pl.Int64))


def _part(name: str, holds: str, sha256: str) -> tuple[FormFile, str, str]:
    file = FormFile(
        name=f"ml-1m-{name}.zip",
        page="https://grouplens.org/datasets/movielens/1m/",
        what="a part that only a mirror has (DPREC_MIRROR); the publisher has ml-1m.zip (say `archive: official`)",
        mirror_path=f"ml-1m/ml-1m-{name}.zip",
    )
    return file, holds, sha256


ML_1M = Release(
    _source(
        "ml-1m",
        "MovieLens 1M",
        "1,000,209 ratings by 6,040 users of 3,706 films; gender, age group, occupation",
        (5_917_549, "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"),
        "obtain: {archive: official}, format: ml_1m, read: {time: seconds}",
    ),
    {
        "ml-1m/README": None,
        "ml-1m/movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
        "ml-1m/ratings.dat": "506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f",
        "ml-1m/users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
    },
    _convert_1m,
    parts={
        "no-timestamps": _part(
            "no-timestamps",
            "all 1,000,209 ratings of MovieLens 1M in the published order of lines, without their time stamps",
            "2dad134c8b493373beed8d2a42e18ec2a93606fd957bd76c0bfbdef5c514b985",
        ),
        "first-487650-rows": _part(
            "first-487650-rows",
            "the first 487,650 of 1,000,209 lines of MovieLens 1M's ratings.dat: users 1 to 2999, whole",
            "1273c4edfe3c0ff9e3a0a0d55819faeb947da0ad7df3927333b51ebefbeedc3d",
        ),
    },
    ObtainOptions=ArchiveOptions,
    ReadOptions=TimeOptions,
)

# 20M, and smaller releases of its kind: ratings.csv and movies.csv.

RATINGS_20M = TextTable(
    "ratings.csv",
    _RATINGS | {"user": Column(pl.Int32, 1)} | {"rating": Column(pl.Float64, values=HALF_STARS.levels)},
    headed="userId,movieId,rating,timestamp",
    unique=("user", "item"),
)
ITEMS_20M = TextTable("movies.csv", _FILMS, headed="movieId,title,genres", quoted=True, unique=("item",))


def _convert_20m(folder: Path, destination: Path, _: NoOptions) -> None:
    """ratings.csv is read in blocks: memory grows with it by 8 bytes a rating alone, which find repeated ones."""
    items = ITEMS_20M.read(folder)
    with raw_writer(destination / "interactions.parquet") as write:
        for _line, ratings in RATINGS_20M.batches(folder, {"item": (items["item"], "in movies.csv")}):
            write(ratings)
    write_raw(destination, {"interactions": None, "items": items}, scale=HALF_STARS, unique_pairs=True, time="seconds")


def _csv_release(name: str, n_ratings: int, holds: str, size: int, sha256: str) -> Release:
    """A release of ML-20M's kind."""
    return Release(
        _source(
            f"ml-{name.lower()}",
            f"MovieLens {name}",
            f"{n_ratings:,} ratings in half stars by {holds} films; nothing about the users",
            (size, sha256),
            "obtain: {}, format: ml_20m, read: {}",
            "without permission, and redistribution only with permission",
            "README.txt",
        ),
        {f"ml-{name.lower()}/{file}": None for file in ("README.txt", "movies.csv", "ratings.csv")},
        _convert_20m,
        n_ratings=n_ratings,
    )


ML_20M = _csv_release(
    "20M",
    20_000_263,
    "138,493 users of 26,744",
    198_702_078,
    "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
)
# Sums of these two are as others have published them; neither archive was read.
ML_25M = _csv_release(
    "25M",
    25_000_095,
    "162,541 users of 59,047",
    261_978_986,
    "8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
)
ML_32M = _csv_release(
    "32M",
    32_000_204,
    "200,948 users of 84,432",
    238_950_008,
    "e4a68655d7386b8f95f2f2424b2ff975dfdd15ffd59e0d864a14dca43e99d6ee",
)
LATEST_SMALL = Release(
    _source(
        "ml-latest-small",
        "MovieLens Latest (small)",
        "100,836 ratings in half stars by 610 users of 9,724 films (September 2018); nothing about the users",
        (978_202, "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436"),
        "obtain: {}, format: ml_20m, read: {}",
        "without permission, and redistribution under the same conditions",
        "README.txt",
    ),
    {
        "ml-latest-small/README.txt": None,
        "ml-latest-small/movies.csv": "5a5f32dd9bb3797b8e728a1b98958789d2b13f294a69fdfbc5727f8a9611aa07",
        "ml-latest-small/ratings.csv": "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
    },
    _convert_20m,
)
"""A source apart, since what a source is called decides which printed numbers stand next to its results."""
