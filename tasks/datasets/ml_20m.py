"""MovieLens 20M (Harper & Konstan, 2015): where it comes from, and its CSV format, which smaller releases share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from tasks.contracts import RatingScale
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import NoOptions, Places, RemoteFile, Source, local_file
from tasks.datasets.text import (
    BLOCK,
    INTERACTIONS,
    Pairs,
    allow,
    allow_seconds,
    blocks,
    interactions_writer,
    line_count,
    parse,
    read_table,
    require_unique,
)
from tasks.errors import DataError
from tasks.raw import RawSchema, write_raw_schema


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
_RATINGS_HEADER = "userId,movieId,rating,timestamp"
_RATING = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float64, "timestamp": pl.Int64}
_ITEM = {"item": pl.Int32, "title": pl.String, "genres": pl.String}


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


def convert(folder: Path, place: Path, _: NoOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `place`: interactions, and items with `title` and `genres`.

    ratings.csv is read in blocks: memory does not grow with it but for 8 bytes a rating, which find repeated ones.

    Raises:
        DataError: a file is missing, empty or malformed; a rating or time stamp is not allowed; an id or a (user,
            item) pair is repeated; a rating names an unknown item (names file and line).
    """
    path = folder / "movies.csv"
    items = read_table(path, ",", _ITEM, header="movieId,title,genres", quote='"')
    allow(path, items, "item", pl.col("item") >= 1, "1 or more", first_line=2)
    require_unique(path, items, ["item"], first_line=2)
    items.with_columns(pl.col("item").cast(pl.Int64)).write_parquet(place / "items.parquet")
    with interactions_writer(place / "interactions.parquet") as out:
        _ratings(folder / "ratings.csv", items["item"], out)
    write_raw_schema(RawSchema(tables=("interactions", "items"), scale=SCALE, unique_pairs=True, time="seconds"), place)


def _ratings(path: Path, items: pl.Series, out: pq.ParquetWriter) -> None:
    known = items.implode()
    pairs = Pairs()
    for first_line, lines in blocks(path, header=_RATINGS_HEADER, size=BLOCK):
        ratings = parse(path, lines, ",", _RATING, first_line=first_line)

        def require(column: str, allowed: pl.Expr, what: str) -> None:
            allow(path, ratings, column, allowed, what, first_line, complete=False)  # noqa: B023 (used at once)

        require("user", pl.col("user") >= 1, "1 or more")
        require("item", pl.col("item").is_in(known), "listed in movies.csv")
        require("rating", pl.col("rating").is_in(SCALE.levels), "0.5 to 5 in steps of 0.5")
        allow_seconds(path, ratings, "timestamp", first_line, complete=False)
        pairs.add(ratings["user"], ratings["item"])
        ids = pl.col("user", "item").cast(pl.Int64)
        out.write_table(ratings.with_columns(ids, pl.col("rating").cast(pl.Float32)).to_arrow().cast(INTERACTIONS))
    pairs.require_unique(path, ("user", "item"), first_line=2)
