"""MovieLens 20M and its small sibling (Harper & Konstan, 2015): where they come from, and their CSV format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow.parquet as pq

from tasks.contracts import RatingScale
from tasks.datasets.archive import unpack
from tasks.datasets.fetch import NoOptions, Options, Places, RemoteFile, Source, local_file
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
    """One data set of the family. ratings: rows of its ratings.csv; members: path in the archive -> SHA-256."""

    archive: RemoteFile
    holds: str
    ratings: int
    members: dict[str, str | None]


RELEASES = {
    "ml-20m": Release(
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
    ),
    "ml-latest-small": Release(
        archive=RemoteFile(
            address="https://files.grouplens.org/datasets/movielens/ml-latest-small.zip",
            size=978_202,
            md5=None,
            sha256="696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
            mirror_path="ml-latest-small/ml-latest-small.zip",
        ),
        holds="100,836 ratings in half stars by 610 users of 9,724 films (September 2018); nothing about the users",
        ratings=100_836,
        members={
            "ml-latest-small/README.txt": None,
            "ml-latest-small/movies.csv": "5a5f32dd9bb3797b8e728a1b98958789d2b13f294a69fdfbc5727f8a9611aa07",
            "ml-latest-small/ratings.csv": "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
        },
    ),
}
LICENCE = (
    "(c) GroupLens Research, University of Minnesota. For research only: no commercial use without permission, and "
    "redistribution {redistribution}; publications must cite F. M. Harper and J. A. Konstan, The MovieLens Datasets: "
    "History and Context, ACM TiiS 5(4), 2015, https://doi.org/10.1145/2827872. Full text: README.txt."
)
SOURCE = Source(
    name="ml-20m",
    address=RELEASES["ml-20m"].archive.address,
    synthetic=False,
    holds=RELEASES["ml-20m"].holds,
    size=RELEASES["ml-20m"].archive.size,
    entry="{source: ml_20m, obtain: {archive: ml-20m}, format: ml_20m, read: {}}",
    files=(RELEASES["ml-20m"].archive,),
    licence="MovieLens 20M, " + LICENCE.format(redistribution="only with permission"),
)

ReadOptions = NoOptions
SCALE = RatingScale(low=0.5, high=5, step=0.5)
_RATINGS_HEADER = "userId,movieId,rating,timestamp"
_RATING = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float64, "timestamp": pl.Int64}
_ITEM = {"item": pl.Int32, "title": pl.String, "genres": pl.String}


class ObtainOptions(Options):
    """Which data set: both are in the same format."""

    archive: Literal["ml-20m", "ml-latest-small"]


def source(options: ObtainOptions) -> Source:
    """SOURCE, or the same of the small data set."""
    if options.archive == "ml-20m":
        return SOURCE
    release = RELEASES[options.archive]
    return replace(
        SOURCE,
        name=options.archive,
        address=release.archive.address,
        holds=release.holds,
        size=release.archive.size,
        entry=SOURCE.entry.replace("ml-20m", options.archive),
        files=(release.archive,),
        licence="MovieLens Latest (small), " + LICENCE.format(redistribution="under the same conditions"),
    )


def obtain(folder: Path, places: Places, options: ObtainOptions) -> None:
    """Fill `folder` with README.txt, ratings.csv and movies.csv.

    An official archive is verified as a whole. Of what a mirror has packed anew, the files are verified by their
    content where that is known (ml-latest-small), and by the published number of ratings.

    Raises:
        DataError: the archive cannot be had, or is not what was published.
    """
    release = RELEASES[options.archive]
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
