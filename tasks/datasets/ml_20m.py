"""MovieLens 20M (Harper & Konstan, 2015): where it comes from, and its CSV format, which smaller releases share."""

from __future__ import annotations

from collections.abc import Mapping
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


LICENCE = (
    "{name}, (c) GroupLens Research, University of Minnesota. For research only: no commercial use without permission, "
    "and redistribution {redistribution}; publications must cite F. M. Harper and J. A. Konstan, The MovieLens "
    "Datasets: History and Context, ACM TiiS 5(4), 2015, https://doi.org/10.1145/2827872. Full text: README.txt."
)


@dataclass(frozen=True)
class Release:
    """One data set in this format."""

    SOURCE: Source
    ratings: int
    """Rows of its ratings.csv."""
    members: Mapping[str, str | None]
    """Path in the archive -> SHA-256."""
    ObtainOptions = ReadOptions = NoOptions

    def obtain(self, folder: Path, places: Places, _: NoOptions) -> None:
        """Fill `folder` with README.txt, ratings.csv and movies.csv.

        An official archive is verified as a whole. Of what a mirror has packed anew, the files are verified by their
        content where that is known (ml-latest-small), and by the published number of ratings.

        Raises:
            DataError: the archive cannot be had, or is not what was published.
        """
        with local_file(self.SOURCE.files[0], places) as archive:
            unpack(archive, folder, self.members)
            if (n_ratings := line_count(folder / "ratings.csv") - 1) != self.ratings:
                raise DataError(
                    f"{archive}: ratings.csv has {n_ratings:,} ratings, published are {self.ratings:,}; get the "
                    "archive from its official address"
                )

    def convert(self, folder: Path, destination: Path, _: NoOptions) -> None:
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


def _release(archive: RemoteFile, title: str, redistribution: str, holds: str, ratings: int, *sha256: str) -> Release:
    """sha256: of movies.csv and ratings.csv, where they are known."""
    name = Path(archive.name).stem
    source = Source(
        name=name,
        address=archive.address,
        synthetic=False,
        holds=holds,
        size=archive.size,
        entry=f"{{source: {name.replace('-', '_')}, obtain: {{}}, format: ml_20m, read: {{}}}}",
        files=(archive,),
        licence=LICENCE.format(name=title, redistribution=redistribution),
    )
    members = zip(("README.txt", "movies.csv", "ratings.csv"), (None, *(sha256 or (None, None))), strict=True)
    return Release(source, ratings, {f"{name}/{member}": digest for member, digest in members})


ML_20M = _release(
    RemoteFile(
        address="https://files.grouplens.org/datasets/movielens/ml-20m.zip",
        size=198_702_078,
        sha256="96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        mirror_path="ml-20m/ml-20m.zip",
    ),
    "MovieLens 20M",
    "only with permission",
    "20,000,263 ratings in half stars by 138,493 users of 26,744 films; nothing about the users",
    20_000_263,
)
LATEST_SMALL = _release(
    RemoteFile(
        address="https://files.grouplens.org/datasets/movielens/ml-latest-small.zip",
        size=978_202,
        sha256="696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
        mirror_path="ml-latest-small/ml-latest-small.zip",
    ),
    "MovieLens Latest (small)",
    "under the same conditions",
    "100,836 ratings in half stars by 610 users of 9,724 films (September 2018); nothing about the users",
    100_836,
    "5a5f32dd9bb3797b8e728a1b98958789d2b13f294a69fdfbc5727f8a9611aa07",
    "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646",
)
"""A source of its own, since what a source is called decides which printed numbers stand beside its results."""
