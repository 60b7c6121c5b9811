"""The Netflix Prize data (2006): where they come from, and their format by the prize's README."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from tasks.core.contracts import RatingScale
from tasks.core.errors import DamagedError, DataError
from tasks.core.raw import INTERACTIONS, raw_writer, write_raw
from tasks.datasets import allowed
from tasks.datasets.fetch import NoOptions, Options, Places, Source, by_option, copy_files, form_files
from tasks.datasets.files import Column, TextTable, check
from tasks.datasets.text import LATIN_1_OR_UTF_8, YEAR_2100, allow, blocks, content, n_lines, require_unique

PAGE = "https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data"
COMBINED = form_files("netflix", PAGE, "{}, unpacked", {f"combined_data_{n}.txt": None for n in range(1, 5)})
(PREFIX,) = form_files(
    "netflix",
    PAGE,
    "{}, of it the first 42,833 lines: movies 1 to 20",
    {"combined_data_1.txt": (881_198, "3d775a3cfb0bee198e0b3b347468b45e2a264cf213f7f4d9a8496cc6a1d0efdc")},
)
(TRAINING_SET,) = form_files(
    "netflix",
    PAGE,
    "the prize's own {}.tar, unpacked: a folder of mv_0000001.txt to mv_0017770.txt; no one hands it out any more, who "
    "has none takes the four files of this page (`ratings: combined`)",
    {"training_set": None},
)
(TITLES,) = form_files(
    "netflix",
    PAGE,
    "{} (in the prize's own archive it is called movie_titles.txt)",
    {"movie_titles.csv": (577_547, "5c1b39b39ed1f5b58da872414a49b77e921fa8a069f15b3d36f78a0705e6a153")},
)
SOURCE = Source(
    name="netflix",
    address=PAGE,
    holds="100,480,507 ratings by 480,189 customers of 17,770 films; nothing about the customers",
    about=2_081_556_480,  # of the prize's training_set.tar; the four files have the same in them
    entry="{source: netflix, obtain: {ratings: combined}, format: netflix, read: {}}",
    files=(*COMBINED, TITLES),
    licence="Netflix Prize data, (c) Netflix, since withdrawn.",
    terms=(
        "For research only: no commercial use and no "
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
ROWS = TextTable(
    "combined_data_*.txt or training_set/mv_*.txt",
    {"user": Column(pl.Int32, 1, MAX_CUSTOMER), "rating": Column(pl.Int32, 1, 5), "date": Column()},
)
"""The lines below one of a movie, which is its number and a colon."""
_MARKED = replace(ROWS, columns={name: replace(column, empty=True) for name, column in ROWS.columns.items()})
_HEADER = re.compile(rb"[0-9]{1,9}:\r?(?:\n|\Z)")

ReadOptions = NoOptions


class ObtainOptions(Options):
    """Which ratings: the four files of today's page, the prize's folder of a file per movie, or a small first part."""

    ratings: Literal["combined", "training_set", "first-20-movies"]


source = by_option(
    "ratings",
    {
        "combined": SOURCE,
        "training_set": replace(SOURCE, files=(TRAINING_SET, TITLES)),
        "first-20-movies": replace(
            SOURCE,
            holds="42,813 ratings by 38,152 customers of the first 20 of 17,770 films; nothing about the customers",
            about=0,
            files=(PREFIX, TITLES),
        ),
    },
)


def obtain(folder: Path, places: Places, options: ObtainOptions) -> None:
    """Fill `folder` with movie_titles.csv and the ratings, and next to the first part a NOTE of what it is.

    No checksums of the ratings are published: they are verified by their number and that of their movies. The first
    part is known by its content.

    Raises:
        ByHandError: a file is neither placed nor in the mirror.
        DataError: a file is not what was published, or not all of it.
    """
    copy_files([TITLES], folder, places)
    if options.ratings == "first-20-movies":
        copy_files([PREFIX], folder, places)
        (folder / "NOTE").write_text(NOTE, encoding="utf-8")
        return
    if options.ratings == "combined":
        copy_files(COMBINED, folder, places)
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
    raise TRAINING_SET.missing(places.placed, *(folder / "mv_*.txt" for folder in folders))


def counts(files: list[Path]) -> tuple[int, int]:
    """Lines of ratings and lines that name a movie, in all of the files."""
    lines = movies = 0
    for path in files:
        for _, text in blocks(path):
            lines += n_lines(text)
            movies += text.count(b":")
    return lines - movies, movies


def convert(folder: Path, destination: Path, _: NoOptions) -> None:
    """Write the raw tables (`tasks.core.raw.RAW_COLUMNS`): interactions, and items with `year` and `title`.

    A rating's time is the day at 00:00 UTC. The ratings are combined_data_*.txt or training_set/mv_*.txt; they are read
    in blocks, so memory does not grow with them.
    """
    items = titles(folder / "movie_titles.csv")
    listed, begun = set(items["item"]), dict[int, str]()
    with raw_writer(destination / "interactions.parquet") as write:
        for path in _files(folder):
            for rows in _ratings(path, listed, begun):
                write(rows)
    write_raw(destination, {"interactions": None, "items": items}, scale=SCALE, unique_pairs=True, time="seconds")


def _files(folder: Path) -> list[Path]:
    files = sorted([*folder.glob("combined_data_*.txt"), *folder.glob("training_set/mv_*.txt")])
    if not files:
        raise DamagedError(f"{folder}: no combined_data_*.txt or training_set/mv_*.txt; run the download stage again")
    return files


def titles(path: Path) -> pl.DataFrame:
    """movie_titles.csv: item int64, year int32 (null where NULL), title (with the commas it has).

    Raises:
        DataError: the file is missing, empty or malformed; an id is repeated (names the line).
    """
    lines = content(path, LATIN_1_OR_UTF_8).removesuffix("\n").split("\n")
    table = pl.DataFrame({"line": lines}).select(pl.col("line").str.strip_suffix("\r"))
    allow(path, table, "line", pl.col("line").str.contains(r"^[0-9]{1,9},([0-9]{4}|NULL),."), "'MovieID,Year,Title'")
    item, year, title = (pl.col("line").str.splitn(",", 3).struct[destination] for destination in range(3))
    table = table.select(item=item.cast(pl.Int64), year=pl.when(year != "NULL").then(year).cast(pl.Int32), title=title)
    require_unique(path, table, ["item"])
    return table


def _ratings(path: Path, listed: set[int], begun: dict[int, str]) -> Iterator[pl.DataFrame]:
    """user, item, rating, timestamp of a file, some lines at a time.

    Args:
        listed: the movies that have a title.
        begun: movie -> where it began, in this file and those before; the file's are added.
    """
    current = pl.DataFrame(schema={"line": pl.Int64, "item": pl.Int32, "user": pl.Int32})
    """What was read of the last movie; without a user its own line."""
    for first, lines in blocks(path):
        table = _parse(path, lines, first)
        header = pl.col("rating").is_null()
        for line, movie in table.filter(header).select("line", "user").iter_rows():
            if movie not in listed:
                raise DataError(f"{path}:{line}: movie {movie} is not in movie_titles.csv")
            if movie in begun:
                raise DataError(f"{path}:{line}: movie {movie} is repeated (first at {begun[movie]}); keep one of them")
            begun[movie] = f"{path}:{line}"
        item = pl.coalesce(pl.when(header).then("user").forward_fill(), pl.lit(current["item"].last(), pl.Int32))
        day = pl.col("date").str.to_date("%Y-%m-%d", strict=False)
        table = table.with_columns(item=item, user=pl.when(~header).then("user"), timestamp=day.cast(pl.Int64) * DAY)
        check(path, table, ROWS.columns, first_line=first)
        # A cut date such as 2005-11-1 would be another day.
        in_time = (pl.col("date").str.len_bytes() == 10) & pl.col("timestamp").is_between(0, YEAR_2100 - 1)
        right = header | in_time.fill_null(False)
        allow(path, table, "date", right, allowed.DAY, first)
        current = pl.concat([current, table.select(current.columns)])
        rated = current.drop_nulls("user")
        require_unique(path, rated, ["item", "user"], rated["line"])
        yield table.drop_nulls("user").select(INTERACTIONS.names)
        current = current.filter(pl.col("item") == current["item"].last())


def _parse(path: Path, lines: bytes, first: int) -> pl.DataFrame:
    """line, user, rating, date; of the line of a movie its number as the user, and nothing else."""
    if first == 1 and not _HEADER.match(lines):
        start = lines.partition(b"\n")[0][:80].decode(errors="backslashreplace")
        raise DataError(f"{path}:1: {start!r} is not 'MovieID:'; is it the right file?")
    marked = lines.replace(b":\r\n", b",,\n").replace(b":\n", b",,\n")
    marked = marked[:-1] + b",," if marked.endswith(b":") else marked
    with suppress(DataError):
        table = _MARKED.parse(path, marked, first)
        empty = table.select(pl.all().null_count()).row(0)
        if empty == (0, lines.count(b":"), lines.count(b":")):
            return table.with_columns(line=pl.int_range(first, first + pl.len()))
    for number, line in enumerate(io.BytesIO(lines), start=first):
        if _HEADER.fullmatch(line):
            continue
        if b":" in line:
            text = line.removesuffix(b"\n")[:80].decode(errors="backslashreplace")
            raise DataError(f"{path}:{number}: {text!r} is neither 'MovieID:' nor 'CustomerID,Rating,Date'")
        ROWS.parse(path, line, number)
    raise DataError(f"{path}: not readable as ratings below the lines of movies")
