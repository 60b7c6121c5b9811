"""The Netflix Prize data (2006): where they come from, and their format as the prize's README tells it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from tasks.contracts import RatingScale
from tasks.datasets.fetch import FormFile, NoOptions, Options, Places, Source, copy, copy_verified
from tasks.datasets.text import (
    BLOCK,
    INTERACTIONS,
    LATIN_1_OR_UTF_8,
    YEAR_2100,
    Pairs,
    allow,
    blocks,
    content,
    interactions_writer,
    parse,
    require_unique,
)  # fmt: skip
from tasks.errors import ByHandError, DataError
from tasks.raw import RawSchema, write_raw_schema

PAGE = "https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data"
COMBINED = tuple(
    FormFile(
        name=f"netflix/combined_data_{number}.txt",
        page=PAGE,
        what=f"combined_data_{number}.txt, unpacked",
        mirror_path=f"netflix/combined_data_{number}.txt",
    )
    for number in range(1, 5)
)
PREFIX = FormFile(
    name="netflix/combined_data_1.txt",
    page=PAGE,
    what="combined_data_1.txt, of it the first 42,833 lines: movies 1 to 20",
    mirror_path="netflix/combined_data_1.txt",
    size=881_198,
    sha256="3d775a3cfb0bee198e0b3b347468b45e2a264cf213f7f4d9a8496cc6a1d0efdc",
)
TRAINING_SET = FormFile(
    name="netflix/training_set",
    page=PAGE,
    what="the prize's own training_set.tar, unpacked: a folder of mv_0000001.txt to mv_0017770.txt; nobody hands it "
    "out any more, who has none takes the four files of this page (`ratings: combined`)",
    mirror_path="netflix/training_set",
)
TITLES = FormFile(
    name="netflix/movie_titles.csv",
    page=PAGE,
    what="movie_titles.csv (in the prize's own archive it is called movie_titles.txt)",
    mirror_path="netflix/movie_titles.csv",
    size=577_547,
    sha256="5c1b39b39ed1f5b58da872414a49b77e921fa8a069f15b3d36f78a0705e6a153",
)
SOURCE = Source(
    name="netflix",
    address=PAGE,
    synthetic=False,
    holds="100,480,507 ratings by 480,189 customers of 17,770 films; nothing about the customers",
    size=2_081_556_480,  # of the prize's training_set.tar; the four files have the same in them
    entry="{source: netflix, obtain: {ratings: combined}, format: netflix, read: {}}",
    files=(*COMBINED, TITLES),
    licence=(
        "Netflix Prize data, (c) Netflix, since withdrawn. For research only: no commercial use and no "
        "redistribution without permission, no endorsement implied; publications must acknowledge the data set. The "
        "customers are pseudonymous and some were re-identified: never link them to anything."
    ),
)
NOTE = "Not the whole Netflix Prize data but a genuine first part: all ratings of movies 1 to 20.\n"
PUBLISHED = (100_480_507, 17_770)
"""Ratings and movies with ratings."""
MAX_CUSTOMER = 2_649_429
"""Customers have ids from 1 to this one, with gaps."""
SCALE = RatingScale(low=1, high=5, step=1)
DAY = 86_400
LONGEST_MOVIE = 1 << 28
"""Bytes of one movie's ratings: five times as much as ratings by all customers there could be would take."""
_ROW = {"user": pl.Int32, "rating": pl.Int32, "date": pl.String}
_HEADER = re.compile(rb"([0-9]{1,9}):\r?(?:\n|\Z)")

ReadOptions = NoOptions


class ObtainOptions(Options):
    """Which ratings: the four files of today's page, the prize's folder of a file per movie, or a small first part."""

    ratings: Literal["combined", "training_set", "first-20-movies"]


@dataclass(frozen=True)
class _Movie:
    """A movie's rows as they lie in a file; `first_line` is the number of the first, `count` how many they are."""

    id: int
    path: Path
    first_line: int
    count: int
    rows: bytes


def source(options: ObtainOptions) -> Source:
    """SOURCE, with what is needed and there for these options."""
    if options.ratings == "combined":
        return SOURCE
    if options.ratings == "training_set":
        return replace(SOURCE, files=(TRAINING_SET, TITLES))
    holds = "42,813 ratings by 38,152 customers of the first 20 of 17,770 films; nothing about the customers"
    return replace(SOURCE, holds=holds, size=881_198 + 577_547, files=(PREFIX, TITLES))


def obtain(folder: Path, places: Places, options: ObtainOptions) -> None:
    """Fill `folder` with movie_titles.csv and the ratings, and beside the first part a NOTE of what it is.

    Nobody published checksums of the ratings: they are verified by their number and that of their movies. The first
    part is known by its content.

    Raises:
        ByHandError: a file is neither placed nor in the mirror.
        DataError: a file is not what was published, or not all of it.
    """
    copy_verified([TITLES], folder, places)
    if options.ratings == "first-20-movies":
        copy_verified([PREFIX], folder, places)
        (folder / "NOTE").write_text(NOTE, encoding="utf-8")
        return
    if options.ratings == "combined":
        for file in COMBINED:
            copy(file, folder, places)
    else:
        (folder / "training_set").mkdir()
        for path in _training_set(places):
            shutil.copyfile(path, folder / "training_set" / path.name)
    sizes = counts(_files(folder))
    if sizes != PUBLISHED:
        raise DataError(
            f"{folder}: the files have {sizes[0]:,} ratings of {sizes[1]:,} movies, published are {PUBLISHED[0]:,} of "
            f"{PUBLISHED[1]:,}; get them again, whole"
        )


def _training_set(places: Places) -> list[Path]:
    """The files of the placed folder, or of the mirror's."""
    folders = [places.placed / TRAINING_SET.name]
    if places.mirror_folder is not None:
        folders.append(places.mirror_folder / TRAINING_SET.mirror_path)
    for folder in folders:
        if files := sorted(folder.glob("mv_*.txt")):
            return files
    looked = " or ".join(str(folder) for folder in folders)
    raise ByHandError(f"no mv_*.txt in {looked}\n{TRAINING_SET.instruction(places.placed)}")


def counts(files: list[Path]) -> tuple[int, int]:
    """Lines of ratings and lines that name a movie, in all of the files."""
    lines = movies = 0
    for path in files:
        for _, text in blocks(path):
            lines += text.count(b"\n") + (not text.endswith(b"\n"))
            movies += text.count(b":")
    return lines - movies, movies


def convert(folder: Path, place: Path, _: NoOptions) -> None:
    """Write the raw tables (`tasks.raw.RAW_COLUMNS`) into `place`: interactions, and items with `year` and `title`.

    A rating's time is the day at 00:00 UTC. The ratings are combined_data_*.txt or training_set/mv_*.txt; they are read
    in blocks of whole movies, so memory does not grow with them.

    Raises:
        DataError: a file is missing, empty or malformed; a rating, customer or date is not allowed; a movie is not in
            movie_titles.csv, has no ratings or is there twice; a customer rated a movie twice (names file and line).
    """
    items = titles(folder / "movie_titles.csv")
    items.write_parquet(place / "items.parquet")
    with interactions_writer(place / "interactions.parquet") as out:
        _ratings(_files(folder), set(items["item"]), out)
    write_raw_schema(RawSchema(tables=("interactions", "items"), scale=SCALE, unique_pairs=True, time="seconds"), place)


def _files(folder: Path) -> list[Path]:
    combined = sorted(folder.glob("combined_data_*.txt"))
    single = sorted((folder / "training_set").glob("mv_*.txt"))
    if combined and single:
        raise DataError(f"{folder}: has {combined[0].name} and training_set/, the same ratings twice; keep one of them")
    if not combined and not single:
        raise DataError(f"{folder}: no combined_data_*.txt or training_set/mv_*.txt; run the download stage again")
    return combined or single


def titles(path: Path) -> pl.DataFrame:
    """movie_titles.csv: item int64, year int32 (null where NULL), title (with the commas it has).

    Raises:
        DataError: the file is missing, empty or malformed; an id is repeated (names the line).
    """
    lines = content(path, LATIN_1_OR_UTF_8).removesuffix("\n").split("\n")
    table = pl.DataFrame({"line": lines}).select(pl.col("line").str.strip_suffix("\r"))
    allow(path, table, "line", pl.col("line").str.contains(r"^[0-9]{1,9},([0-9]{4}|NULL),."), "'MovieID,Year,Title'")
    item, year, title = (pl.col("line").str.splitn(",", 3).struct[place] for place in range(3))
    table = table.select(item=item.cast(pl.Int64), year=pl.when(year != "NULL").then(year).cast(pl.Int32), title=title)
    require_unique(path, table, ["item"])
    return table


def _ratings(files: list[Path], known: set[int], out: pq.ParquetWriter) -> None:
    seen: dict[int, str] = {}
    for movies in _blocks_of_movies(files):
        for movie in movies:
            header = f"{movie.path}:{movie.first_line - 1}"
            if movie.id not in known:
                raise DataError(f"{header}: movie {movie.id} is not in movie_titles.csv")
            if movie.id in seen:
                raise DataError(f"{header}: movie {movie.id} is repeated (first at {seen[movie.id]}); keep one of them")
            if not movie.count:
                raise DataError(f"{header}: movie {movie.id} has no ratings; is the file whole?")
            seen[movie.id] = header
        out.write_table(_table(movies).to_arrow().cast(INTERACTIONS))


def _blocks_of_movies(files: list[Path]) -> Iterator[list[_Movie]]:
    """All movies in the order of the files, about `BLOCK` bytes of them or more at a time."""
    movies, held = [], 0
    for path in files:
        for first_line, text in _sections(path):
            movies += _movies(path, first_line, text)
            held += len(text)
            if held >= BLOCK:
                yield movies
                movies, held = [], 0
    if movies:
        yield movies


def _sections(path: Path) -> Iterator[tuple[int, bytes]]:
    """The file in pieces that begin with a movie's header and end where another's begins, with their first line."""
    held, first_line = b"", 1
    for _, lines in blocks(path, size=BLOCK):
        if not held and not _HEADER.match(lines):
            start = lines.partition(b"\n")[0][:80].decode(errors="backslashreplace")
            raise DataError(f"{path}:1: {start!r} is not 'MovieID:'; is it the right file?")
        held += lines
        last_header = max(held.rfind(b":\n"), held.rfind(b":\r\n"))
        cut = held.rfind(b"\n", 0, last_header) + 1 if last_header >= 0 else 0
        if cut:
            yield first_line, held[:cut]
            first_line += held.count(b"\n", 0, cut)
            held = held[cut:]
        if len(held) > LONGEST_MOVIE:
            raise DataError(f"{path}:{first_line}: more than {LONGEST_MOVIE:,} bytes without another 'MovieID:'")
    yield first_line, held


def _movies(path: Path, first_line: int, text: bytes) -> list[_Movie]:
    """The movies of a section."""
    if not text.endswith(b"\n"):
        text += b"\n"
    headers = list(_headers(path, first_line, text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    movies, line = [], first_line
    for header, end in zip(headers, ends, strict=True):
        rows = text[header.end() : end]
        count = rows.count(b"\n")
        movies.append(_Movie(int(header[1]), path, line + 1, count, rows))
        line += 1 + count
    return movies


def _headers(path: Path, first_line: int, text: bytes) -> Iterator[re.Match[bytes]]:
    """The lines 'MovieID:' of a section, found by their colon, which no other line has."""
    colon = text.find(b":")
    while colon >= 0:
        start = text.rfind(b"\n", 0, colon) + 1
        header = _HEADER.match(text, start)
        if header is None:
            line = text[start : start + 80].partition(b"\n")[0].decode(errors="backslashreplace")
            number = first_line + text.count(b"\n", 0, start)
            raise DataError(f"{path}:{number}: {line!r} is neither 'MovieID:' nor 'CustomerID,Rating,Date'")
        yield header
        colon = text.find(b":", header.end())


def _table(movies: list[_Movie]) -> pl.DataFrame:
    """user, item, rating, timestamp of whole movies."""
    try:
        table = _rows(movies[0].path, b"".join(movie.rows for movie in movies), 1)
        items = np.array([movie.id for movie in movies])
        table = table.with_columns(item=np.repeat(items, [movie.count for movie in movies]))
        pairs = Pairs()
        pairs.add(table["item"], table["user"])
        pairs.require_unique(movies[0].path, ("item", "user"))
    except DataError:
        # Line numbers are right only movie by movie.
        for movie in movies:
            require_unique(movie.path, _rows(movie.path, movie.rows, movie.first_line), ["user"], movie.first_line)
        raise
    return table.select("user", "item", "rating", "timestamp")


def _rows(path: Path, rows: bytes, first_line: int) -> pl.DataFrame:
    """user int32, rating int32, timestamp int64 of lines 'CustomerID,Rating,Date'."""
    table = parse(path, rows, ",", _ROW, first_line=first_line)

    def require(column: str, allowed: pl.Expr, what: str) -> None:
        allow(path, table, column, allowed, what, first_line, complete=False)

    require("user", pl.col("user").is_between(1, MAX_CUSTOMER), f"1 to {MAX_CUSTOMER}")
    require("rating", pl.col("rating").is_between(1, 5), "1 to 5")
    day = pl.col("date").str.to_date("%Y-%m-%d", strict=False)
    table = table.with_columns(timestamp=day.cast(pl.Int64) * DAY)
    # A cut date such as 2005-11-1 would be another day.
    complete = pl.col("date").str.len_bytes() == len("2005-11-10")
    in_time = pl.col("timestamp").is_between(0, YEAR_2100 - 1)
    require("date", complete & in_time.fill_null(False), "a day between 1970 and 2100 (yyyy-mm-dd)")
    return table.drop("date")
