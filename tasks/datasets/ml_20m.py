"""MovieLens 20M (Harper & Konstan, 2015): where it comes from, and its CSV format, which smaller releases share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tasks.contracts import RatingScale
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import NoOptions, Places, RemoteFile, Source, local_file
from tasks.datasets.files import SECONDS, Column, TextTable
from tasks.datasets.text import line_count, raw_writer
from tasks.errors import DataError
from tasks.raw import write_raw


@dataclass(frozen=True)
class Release:
    """One data set in this format. ratings: rows of its ratings.csv; members: path in the archive -> SHA-256."""

    archive: RemoteFile
    holds: str
    ratings: int
    members: dict[str, str | None]


RELEASE = Release(
    archive=RemoteFile(
        address="https://files.grouplens.org/datasets/movielens/ml-20m.zip",
        size=198_702_078,
        md5="cd245b17a1ae2cc31bb14903e1204af3",
        sha256="96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        mirror_path="ml-20m/ml-20m.zip",
    ),
    holds="20,000,263 ratings in half stars by 138,493 users of 26,744 films; nothing about the users",
    ratings=20_000_263,
    members=dict.fromkeys(("ml-20m/README.txt", "ml-20m/movies.csv", "ml-20m/ratings.csv")),
)
LICENCE = (
    "(c) GroupLens Research, University of Minnesota. For research only: no commercial use without permission, and "
    "redistribution {redistribution}; publications must cite F. M. Harper and J. A. Konstan, The MovieLens Datasets: "
    "History and Context, ACM TiiS 5(4), 2015, https://doi.org/10.1145/2827872. Full text: README.txt."
)


def release_source(name: str, release: Release, entry: str, licence: str) -> Source:
    """What is said of a release before anything of it is there."""
    return Source(
        name=name,
        address=release.archive.address,
        synthetic=False,
        holds=release.holds,
        size=release.archive.size,
        entry=entry,
        files=(release.archive,),
        licence=licence,
    )


SOURCE = release_source(
    "ml-20m",
    RELEASE,
    "{source: ml_20m, obtain: {}, format: ml_20m, read: {}}",
    "MovieLens 20M, " + LICENCE.format(redistribution="only with permission"),
)
ObtainOptions = ReadOptions = NoOptions
SCALE = RatingScale(low=0.5, high=5, step=0.5)
RATINGS = TextTable(
    "ratings.csv",
    {
        "user": Column(pl.Int32, 1),
        "item": Column(pl.Int32),
        "rating": Column(pl.Float64, values=SCALE.levels, what="0.5 to 5 in steps of 0.5"),
        "timestamp": SECONDS,
    },
    headed="userId,movieId,rating,timestamp",
    unique=("user", "item"),
)
ITEMS = TextTable(
    "movies.csv",
    {"item": Column(pl.Int32, 1), "title": Column(), "genres": Column()},
    headed="movieId,title,genres",
    quoted=True,
    unique=("item",),
)


def obtain(folder: Path, places: Places, _: NoOptions) -> None:
    """See `obtain_release`."""
    obtain_release(folder, places, RELEASE)


def obtain_release(folder: Path, places: Places, release: Release) -> None:
    """Fill `folder` with README.txt, ratings.csv and movies.csv.

    An official archive is verified as a whole. Of what a mirror has packed anew, the files are verified by their
    content where that is known (ml-latest-small), and by the published number of ratings.

    Raises:
        DataError: the archive cannot be had, or is not what was published.
    """
    with local_file(release.archive, places) as archive:
        unpack(archive, folder, release.members)
        if (n_ratings := line_count(folder / "ratings.csv") - 1) != release.ratings:
            raise DataError(
                f"{archive}: ratings.csv has {n_ratings:,} ratings, published are {release.ratings:,}; get the archive "
                "from its official address"
            )


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`): interactions, and items with `title` and `genres`.

    ratings.csv is read in blocks: memory does not grow with it but for 8 bytes a rating, which find repeated ones.

    Raises:
        DataError: a file is missing, empty or malformed; a rating or time stamp is not allowed; an id or a (user,
            item) pair is repeated; a rating names an unknown item (names file and line).
    """
    items = ITEMS.read(folder)
    with raw_writer(destination / "interactions.parquet") as write:
        for _line, ratings in RATINGS.batches(folder, {"item": (items["item"], "listed in movies.csv")}):
            write(ratings)
    write_raw(destination, {"interactions": None, "items": items}, scale=SCALE, unique_pairs=True, time="seconds")
