"""MovieLens 100K (Harper & Konstan, 2015): where it comes from, and its raw format as its README tells it."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tasks.datasets.archive import unpack
from tasks.datasets.fetch import RemoteFile, Source, fetched
from tasks.errors import DataError

SOURCE = Source(
    name="ml-100k",
    address="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
    synthetic=False,
    licence=(
        "MovieLens 100K, (c) GroupLens Research, University of Minnesota. For research only: no commercial use and no "
        "redistribution without permission; publications must cite F. M. Harper and J. A. Konstan, The MovieLens "
        "Datasets: History and Context, ACM TiiS 5(4), 2015, https://doi.org/10.1145/2827872. Full text: README."
    ),
)
ARCHIVE = RemoteFile(
    address=SOURCE.address,
    size=4_924_029,
    md5="0e33842e24a9c977be4e0107933c0723",
    sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
    mirror_path="ml-100k/ml-100k.zip",
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

GENDERS = ("F", "M")
MAX_AGE = 120
_DATA = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Int32, "timestamp": pl.Int64}
_USER = {"user": pl.Int32, "age": pl.Int32, "gender": pl.String, "occupation": pl.String, "zip_code": pl.String}
_ITEM = {"item": pl.Int32, "title": pl.String, "release_date": pl.String, "video_date": pl.String, "url": pl.String}
_INTEGERS: dict[type[pl.DataType], int] = {pl.Int8: 2**7 - 1, pl.Int32: 2**31 - 1, pl.Int64: 2**63 - 1}
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")
_MAY_BE_EMPTY = {"zip_code", "release_date", "video_date", "url"}


@dataclass(frozen=True)
class RawTables:
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


def obtain(folder: Path, *, mirror: str | None, placed: Path, downloads: Path, progress: bool) -> None:
    """Fill `folder` with the files of `MEMBERS`; arguments as in `tasks.datasets.fetch.fetched`.

    An official archive is verified as a whole, and in every archive u.data, u.user and u.item by what they contain,
    so the folder is the same wherever it came from.

    Raises:
        DataError: the archive cannot be had, or is not what was published.
    """
    with fetched(ARCHIVE, mirror=mirror, placed=placed, downloads=downloads, progress=progress) as archive:
        unpack(archive, folder, MEMBERS)


def read(folder: Path) -> RawTables:
    """Read the raw files of ML-100K's format.

    Raises:
        DataError: a file is missing, empty or malformed; a rating, gender, age, genre flag or occupation is not
            allowed; an id or a (user, item) pair is repeated; a rating names an unknown user or item (names file
            and line).
    """
    occupations = _names(folder / "u.occupation")
    genres = tuple(line.partition("|")[0] for line in _names(folder / "u.genre"))

    users = _table(folder / "u.user", "|", _USER)
    _allow(folder / "u.user", users, "age", pl.col("age").is_between(1, MAX_AGE), f"1 to {MAX_AGE}")
    _allow(folder / "u.user", users, "gender", pl.col("gender").is_in(GENDERS), " or ".join(GENDERS))
    known = pl.col("occupation").is_in(occupations)
    _allow(folder / "u.user", users, "occupation", known, f"one of the {len(occupations)} in u.occupation")
    _once(folder / "u.user", users, ["user"])

    items = _table(folder / "u.item", "|", _ITEM | dict.fromkeys(genres, pl.Int8))
    for genre in genres:
        _allow(folder / "u.item", items, genre, pl.col(genre).is_between(0, 1), "0 or 1")
    _once(folder / "u.item", items, ["item"])

    ratings = _table(folder / "u.data", "\t", _DATA)
    _allow(folder / "u.data", ratings, "rating", pl.col("rating").is_between(1, 5), "1 to 5")
    _allow(folder / "u.data", ratings, "timestamp", pl.col("timestamp") >= 0, "0 or more")
    for column, table in (("user", users), ("item", items)):
        known = pl.col(column).is_in(table[column].implode())
        _allow(folder / "u.data", ratings, column, known, f"listed in u.{column}")
    _once(folder / "u.data", ratings, ["user", "item"])
    return RawTables(ratings, users, items, genres, occupations)


def _content(path: Path) -> str:
    """The file's text; latin-1 because u.item is, and in it every byte is a character."""
    try:
        text = path.read_bytes().decode("latin-1")
    except FileNotFoundError:
        raise DataError(f"{path}: not found; run the download stage again") from None
    if not text.strip():
        raise DataError(f"{path}: is empty; run the download stage again")
    return text


def _names(path: Path) -> tuple[str, ...]:
    lines = [line.strip() for line in _content(path).splitlines()]
    return tuple(line for line in lines if line)


def _table(path: Path, separator: str, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    text = _content(path)
    try:
        table = pl.read_csv(
            io.BytesIO(text.encode()), separator=separator, has_header=False, schema=dict(columns), quote_char=None
        )
    except pl.exceptions.PolarsError as error:
        raise _complaint(path, text, separator, columns, error) from error
    # A field missing at a line's end reads as null, which is legal where the field may be empty: count separators too.
    ragged = text.count(separator) != len(table) * (len(columns) - 1)
    required = [name for name in columns if name not in _MAY_BE_EMPTY]
    if ragged or table.select(pl.any_horizontal(pl.col(required).null_count() > 0)).item():
        raise _complaint(path, text, separator, columns, None)
    return table


def _complaint(
    path: Path, text: str, separator: str, columns: Mapping[str, type[pl.DataType]], error: Exception | None
) -> DataError:
    """The slow way through a file that could not be read: find the first line at fault."""
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        fields = line.removesuffix("\r").split(separator)
        if len(fields) != len(columns):
            names = f"{', '.join(list(columns)[:4])}{', ...' if len(columns) > 4 else ''}"
            return DataError(f"{path}:{number}: {len(fields)} fields instead of {len(columns)} ({names})")
        for (name, kind), field in zip(columns.items(), fields, strict=True):
            if not field and name not in _MAY_BE_EMPTY:
                return DataError(f"{path}:{number}: {name} is empty")
            if kind in _INTEGERS and not (_DIGITS.fullmatch(field) and abs(int(field)) <= _INTEGERS[kind]):
                return DataError(f"{path}:{number}: {name} is {field!r}, not an integer up to {_INTEGERS[kind]}")
    return DataError(f"{path}: not readable as a table of {len(columns)} columns ({error})")


def _allow(path: Path, table: pl.DataFrame, column: str, allowed: pl.Expr, what: str) -> None:
    wrong = table.select(row=(~allowed).arg_true())["row"]
    if len(wrong):
        value = table[column][wrong[0]]
        more = f" ({len(wrong)} such lines)" if len(wrong) > 1 else ""
        raise DataError(f"{path}:{wrong[0] + 1}: {column} is {value!r}, not {what}{more}")


def _once(path: Path, table: pl.DataFrame, key: list[str]) -> None:
    repeated = table.select(key).is_duplicated()
    if not repeated.any():
        return
    rows = table.select(key).with_row_index("row").filter(repeated)
    first = rows.row(0)[1:]
    lines = [row + 1 for row, *values in rows.iter_rows() if tuple(values) == first]
    named = ", ".join(f"{name} {value}" for name, value in zip(key, first, strict=True))
    raise DataError(f"{path}:{lines[1]}: {named} is repeated (first on line {lines[0]}); keep one of these lines")
