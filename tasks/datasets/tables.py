"""Tables that a user brings: the wanted columns, typed, some rows at a time.

Text with one row a line and usual separators, with a header or without (numbers in the order of MovieLens: user, item,
rating, time; anything else by position: column_1, column_2), RecBole's atomic files, JSON lines, each of them packed by
gzip or alone in a zip archive; and Parquet.
What a file is, its first line shows. What is wrong is named with the file and its line (of Parquet: its row, from 1).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core.errors import DataError
from tasks.datasets import files
from tasks.datasets.text import BLOCK, LONGEST_LINE, YEAR_2100, allow, blocks, n_lines, opened

PARQUET = ".parquet"
SUFFIXES = (
    ".csv", ".tsv", ".txt", ".dat", ".data", ".inter", ".user", ".item", ".jsonl", ".json", ".gz", ".zip", PARQUET
)  # fmt: skip
BATCH = 1 << 20
"""Rows of a Parquet file that are read at a time."""
MOST_COLUMNS = 10_000
"""Of a text table: all of them are parsed, whichever are wanted."""
SEPARATORS = (",", "\t", ";", "|")
LONGER_SEPARATORS = ("::", ", ")
ORDER = ("user", "item", "rating", "timestamp")
"""Columns of a table of numbers without a header."""
UNCLEAN = r"^\s|\s$|\p{Cc}"
"""Blanks around a text, or control characters in it."""
RATINGS, TIMES = 1000.0, 1e6
"""Numbers without a header are taken for ratings up to there, and for times from there on."""
POSITION = re.compile(r"column_[1-9][0-9]*")
"""The names of the columns of text without a header, from column_1 on."""
FIRST_LINES = 100
"""After the one that names the columns: where a row ends that begins with quoted text."""
JSON = re.compile(r"\s*(\[\s*)?(\{|$)")
"""How a record begins, or a list of them."""
ATOMIC = re.compile(r"(.+):(token|token_seq|float|float_seq)")
"""A column's name and type in RecBole's files."""
ISO = "a date and time as 2024-05-31T18:30:00 or 2024-05-31T18:30:00+02:00, or a date as 2024-05-31"
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What polars raises at a broken Parquet file."""
Numbered = tuple[pl.Series, pl.DataFrame]
"""Rows, and the number of the line on which each begins."""
_MARK = b"\xef\xbb\xbf"  # the byte order mark
_TYPES: dict[str, type[pl.DataType]] = {"number": pl.Float64, "whole": pl.Int64}


@dataclass(frozen=True)
class Column:
    """A column that is read.

    Ids and text arrive as text, a number as float64, a whole one as int64, a time as text or, from Parquet, as it is;
    `any` of text, numbers and times as text.
    """

    kind: Literal["id", "text", "number", "whole", "time", "any"]
    may_be_empty: bool = False
    """An empty field then reads as null; otherwise it is refused."""


@dataclass(frozen=True)
class Form:
    """How a table is written."""

    kind: Literal["text", "json", "parquet"]
    names: list[str]
    """Of its columns, in their order."""
    separator: str = ""
    """Between the fields of text."""
    header: Sequence[str] = ()
    """What the first line of text says of the columns: their names, and in RecBole's files their types, too."""


def form(path: Path, separator: str | None = None, wanted: Iterable[str] = ()) -> Form:
    """How a table is written, by its first line or its schema.

    Args:
        separator: that of text, where it is known; otherwise the first line shows it.
        wanted: columns; one called by its position that the first line does not name says that there is no header.

    Raises:
        DataError: the file is missing, empty or of another kind, or its first line or its schema cannot be read.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: is none of {', '.join(SUFFIXES)}; save it as CSV or Parquet")
    if path.suffix.lower() == PARQUET:
        if path.suffix != PARQUET:
            raise DataError(f"{path}: would be read as text; rename it to {path.stem}{PARQUET}")
        try:
            return Form("parquet", list(pl.read_parquet_schema(path)))
        except UNREADABLE as error:
            raise not_parquet(path, error) from None
    line, after = _first_lines(path)
    if JSON.match(line):
        return Form("json", _keys(path, path.stat().st_mtime_ns))
    separator = separator or _separator(line, after)
    short = separator.strip(" ") if separator != " " else separator
    if line.count('"') % 2:
        raise DataError(f"{path}:1: a quoted name does not end on its line")
    try:
        fields = next(csv.reader([line.replace("::", "\t")], delimiter="\t" if short == "::" else short), [""])
    except csv.Error as error:
        raise DataError(f"{path}:1: does not name columns ({error})") from None
    fields = [field.strip() for field in fields]
    positions = [f"column_{position}" for position in range(1, len(fields) + 1)]
    if any(POSITION.fullmatch(name) and name not in fields for name in wanted):
        return Form("text", positions, separator)
    numbers = [float(field) for field in fields if files.is_number(field)]
    if len(fields) > 1 and len(numbers) == len(fields):
        if numbers == list(range(len(fields))):
            raise DataError(f"{path}:1: numbers the columns, or is data; put a line before it that names them")
        likely = all(abs(rating) <= RATINGS for rating in numbers[2:3]) and all(time >= TIMES for time in numbers[3:])
        return Form(
            "text", list(ORDER[: len(fields)]) if likely and len(fields) <= len(ORDER) else positions, separator
        )
    atomic = [ATOMIC.fullmatch(field) for field in fields]
    return Form("text", [match[1] for match in atomic if match] if all(atomic) else fields, separator, fields)


@lru_cache
def _keys(path: Path, _: int) -> list[str]:
    """The fields of all records, found once as long as the file is what it was at the time `_`."""
    names: dict[str, None] = {}
    for _, lines in blocks(path):
        for line in lines.removeprefix(_MARK).decode(errors="replace").split("\n"):
            try:
                keys = json.loads(line).keys()
            except (ValueError, RecursionError, AttributeError):  # a line at fault is named when it is read
                continue
            if not keys <= names.keys():
                names |= dict.fromkeys(keys)
    if not names:
        raise DataError(f"{path}:1: is no JSON object; write one record a line, without a list around them")
    return list(names)


def _separator(line: str, after: list[str]) -> str:
    """What the first line has most of, of several characters if the row after it has it, too; else a comma."""
    row = re.sub(r'"[^"]*("|$)', "", "".join(after)).partition("\n")[0]  # without what is between quotes
    for longer in LONGER_SEPARATORS:
        count = line.count(longer)
        if count and count == line.count(longer[0]) // longer.count(longer[0]) and longer in (row or longer):
            return longer
    return max(SEPARATORS, key=line.count)


def _first_lines(path: Path) -> tuple[str, list[str]]:
    """The first line, and what can be read of `FIRST_LINES` after it."""
    with opened(path) as file:
        raw, *after = [file.readline(LONGEST_LINE) for _ in range(1 + FIRST_LINES)]
    if not raw.strip():
        raise DataError(f"{path}{':1' if raw else ''}: is empty; the first line must name the columns")
    if raw.startswith((b"PAR1\x15", b"PK\x05\x06")):  # packed Parquet, an empty archive
        raise DataError(f"{path}: holds no text; unpack it, and name a table of Parquet *{PARQUET}")
    if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
        raise DataError(f"{path}:1: is longer than {LONGEST_LINE:,} bytes; is it the right file?")
    line = _utf_8(path, raw.removeprefix(_MARK), 1).removesuffix("\n").removesuffix("\r")
    if "\0" in line:
        raise DataError(f"{path}:1: holds a NUL byte; is it a text file, in UTF-8?")
    if "\r" in line:
        raise DataError(f"{path}:1: lines end in a carriage return alone; save the file with other line ends")
    return line, [text.decode(errors="replace") for text in after]


def batches(path: Path, separator: str | None, columns: Mapping[str, Column]) -> Iterator[Numbered]:
    """The wanted columns of a table, some rows at a time.

    Text is UTF-8 with one row per line, fields may be quoted with ", and every line has as many fields as the header.

    Args:
        separator: between the fields of text; None for what its first line shows.
        columns: name in the header -> how to read it.

    Raises:
        DataError: the file is empty or malformed, lacks a column, or a field is missing or of another type.
    """
    shape = form(path, separator, columns)
    if len(shape.names) > MOST_COLUMNS:
        raise DataError(
            f"{path}:1: {len(shape.names):,} columns, more than the limit of {MOST_COLUMNS:,}; leave some out"
        )
    _require_columns(path if shape.kind == "parquet" else f"{path}:1", shape.names, columns)
    read = {"text": _text, "json": _json, "parquet": _parquet}[shape.kind](path, shape, columns)
    empty = True
    for lines, rows in read:
        empty = False
        for name in (name for name, column in columns.items() if column.kind == "id"):
            clean = ~pl.col(name).str.contains(UNCLEAN)
            allow(path, rows, name, clean, "an id without blanks around it or control characters", lines)
        yield lines, rows
    if empty:
        raise DataError(f"{path}: has {'a header and nothing else' if shape.header else 'no rows'}")


def read_table(
    path: Path, separator: str | None, columns: Mapping[str, Column], at_least: int | None = None
) -> Numbered:
    """The batches as one.

    at_least: so many first rows are enough; None: all rows.
    """
    parts: list[Numbered] = []
    for part in batches(path, separator, columns):
        parts.append(part)
        if at_least is not None and sum(len(rows) for _, rows in parts) >= at_least:
            break
    lines, rows = zip(*parts, strict=True)
    return pl.concat(lines), pl.concat(rows)


def in_seconds(
    path: Path, rows: pl.DataFrame, column: str, lines: pl.Series, kind: Literal["seconds", "milliseconds", "iso"]
) -> pl.DataFrame:
    """The same rows with int64 seconds since 1970, rounded down; times without a zone are UTC.

    Raises:
        DataError: a time is malformed, or not between 1970 and 2100.
    """
    value = pl.col(column)
    if kind != "iso":
        allow(path, rows, column, value.is_finite(), "a number", lines)
    if kind == "milliseconds":
        right = value.is_between(0, 1000 * YEAR_2100, closed="left")
        allow(path, rows, column, right, "milliseconds between 1970 and 2100", lines)
        return rows.with_columns((value / 1000).floor().cast(pl.Int64))
    if kind == "iso":
        seconds = rows.select(iso_seconds(value) if rows[column].dtype == pl.String else value.dt.epoch("s"))[column]
        allow(path, rows, column, pl.lit(seconds).is_not_null(), ISO, lines)
        rows = rows.with_columns(seconds)
    else:
        rows = rows.with_columns(value.floor().cast(pl.Int64))
    files.check(path, rows, {column: files.SECONDS}, first_line=lines)
    return rows


def iso_seconds(text: pl.Expr) -> pl.Expr:
    """Seconds since 1970, null where the text is none of the three ways to write a time, or ends in another zone."""
    text = text.str.replace(r"^(\d{4}-\d{2}-\d{2}) ", "${1}T").str.replace(r"^(\d{4}-\d{2}-\d{2})$", "${1}T00:00")
    text = text.str.replace("( UTC|Z)$", "+00:00").str.replace(r"(T\d{2}:\d{2})([+-]\d{2}:\d{2})?$", "${1}:00${2}")
    text = text.str.replace(r"(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?)$", "${1}+00:00")
    return text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", strict=False, time_zone="UTC").dt.epoch("s")


def _text(path: Path, shape: Form, columns: Mapping[str, Column]) -> Iterator[Numbered]:
    fields = {name: files.Column(empty=True) for name in shape.names} | _fields(columns)
    if len(fields) < len(shape.names):
        raise DataError(f"{path}:1: two columns have the same name; give each its own")
    waiting, start = b"", 1
    for line, lines in blocks(path):
        if line == 1:
            lines = lines.removeprefix(_MARK)
            if shape.header:
                line, (_, _, lines) = 2, lines.partition(b"\n")
        start, lines, waiting = (start if waiting else line), waiting + lines, b""
        if lines.count(b'"') % 2:  # a quoted field goes on in the next block
            ends, ends_row = _line_ends(lines)
            end = int(ends[ends_row].max(initial=-1)) + 1
            lines, waiting = lines[:end], lines[end:]
        if rows := lines.rstrip(b"\r\n"):
            read = _parsed(path, shape, fields, rows, start).select(list(columns))
            yield _numbered(rows, start, len(read)), read
        start += lines.count(b"\n")
        if len(waiting) > BLOCK:
            break
    if waiting:  # a quote is missing, which is refused
        _parsed(path, shape, fields, waiting, start)


def _parsed(path: Path, shape: Form, fields: dict[str, files.Column], lines: bytes, line: int) -> pl.DataFrame:
    _utf_8(path, lines, line)
    quoted = b'"' in lines
    text = files.TextTable(path.name, fields, shape.separator, quoted=quoted, multiline=quoted)
    rows = text.parse(path, lines, line)
    if len(shape.separator) > 1:  # which stands between quotes as what polars had for it
        rows = rows.with_columns(pl.col(pl.String).str.replace_all("\x1f", shape.separator, literal=True))
    return rows


def _numbered(lines: bytes, line: int, n_rows: int) -> pl.Series:
    """The number of the line on which each row begins: a line end between quotes ends none."""
    if n_lines(lines) == n_rows:
        return pl.int_range(line, line + n_rows, eager=True)
    _, ends_row = _line_ends(lines)
    return pl.Series(np.concatenate([[line], line + 1 + np.flatnonzero(ends_row)]))


def _line_ends(lines: bytes) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where lines end, and which of these ends are not between quotes, so that a row ends there, too."""
    text = np.frombuffer(lines, np.uint8)
    quotes, ends = (np.flatnonzero(text == ord(character)) for character in '"\n')
    return ends, np.searchsorted(quotes, ends) % 2 == 0


def _json(path: Path, _: Form, columns: Mapping[str, Column]) -> Iterator[Numbered]:
    ids = "|".join(re.escape(name) for name, column in columns.items() if column.kind == "id")
    fraction = re.compile(rf'"({ids})"\s*:\s*-?\d+[.eE]'.encode())  # a double, of which two users may have the same
    for line, lines in blocks(path):
        lines = (lines.removeprefix(_MARK) if line == 1 else lines).rstrip(b"\r\n")
        _utf_8(path, lines, line)
        if match := fraction.search(lines):
            at = line + lines.count(b"\n", 0, match.start())
            raise DataError(f"{path}:{at}: {match[1].decode()} is a number with a point; ids are text or whole numbers")
        if lines:
            texts = {
                name: files.Column(pl.Int64 if column.kind == "whole" else pl.String, empty=column.may_be_empty)
                for name, column in columns.items()
            }
            rows = files.json_rows(path, lines, texts, line)
            read = rows.select(_cast(path, rows[name], column, line) for name, column in columns.items())
            yield pl.int_range(line, line + len(rows), eager=True), read


def _fields(columns: Mapping[str, Column]) -> dict[str, files.Column]:
    return {
        name: files.Column(_TYPES.get(column.kind, pl.String), empty=column.may_be_empty)
        for name, column in columns.items()
    }


def _utf_8(path: Path, lines: bytes, line: int) -> str:
    try:
        return lines.decode()
    except UnicodeDecodeError as error:
        at = line + lines.count(b"\n", 0, error.start)
        raise DataError(f"{path}:{at}: byte 0x{lines[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def _require_columns(where: str | Path, names: list[str], columns: Mapping[str, Column]) -> None:
    listed = ", ".join(repr(name[:80]) for name in names[:8]) + (", ..." if len(names) > 8 else "")
    for name in columns:
        if (times := names.count(name)) != 1:
            what = f"column {name!r} is there {times} times" if times else f"no column {name!r}"
            raise DataError(f"{where}: {what} (has {listed}); correct `read` in params.yaml, or its separator")


def _parquet(path: Path, _: Form, columns: Mapping[str, Column]) -> Iterator[Numbered]:
    try:
        row = 1
        for rows in pl.scan_parquet(path, glob=False).select(list(columns)).collect_batches(chunk_size=BATCH):
            read = rows.select(_cast(path, rows[name], column, row) for name, column in columns.items())
            yield pl.int_range(row, row + len(rows), eager=True), read
            row += len(rows)
        if row <= (n_rows := pl.scan_parquet(path, glob=False).select(pl.len()).collect().item()):
            raise DataError(f"{path}: holds {row - 1:,} of {n_rows:,} rows; save it again")
    except UNREADABLE as error:
        raise not_parquet(path, error) from error


def not_parquet(path: Path, error: Exception) -> DataError:
    """What is said of a file that its suffix calls Parquet."""
    return DataError(f"{path}: not a readable Parquet file ({' '.join(str(error).split())}); save it again")


def _cast(path: Path, values: pl.Series, column: Column, row: int) -> pl.Series:
    kind = values.dtype
    text = kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum)
    moment = kind == pl.Date or isinstance(kind, pl.Datetime)
    right, wanted = {
        "id": (text or kind.is_integer(), "whole numbers or text"),
        "text": (text or kind.is_integer() or kind == pl.Boolean, "text"),
        "number": (text or kind.is_numeric(), "numbers"),
        "whole": (kind.is_integer(), "whole numbers"),
        "time": (text or moment, "times or text"),
        "any": (text or kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean, "text, numbers or times"),
    }[column.kind]
    if not right and kind != pl.Null:
        raise DataError(f"{path}: column {values.name!r} holds {kind}, not {wanted}; save it as such")
    if text:
        values = values.cast(pl.String).replace("", None)  # as in text
    if not column.may_be_empty and values.null_count():
        at = row + values.is_null().arg_true()[0]
        raise DataError(f"{path}:{at}: {values.name} is empty")
    if text and column.kind == "number":
        value = pl.col(values.name)
        is_number = value.is_null() | value.cast(pl.Float64, strict=False).is_not_null()
        allow(path, values.to_frame(), values.name, is_number, "a number", row)
    return values if column.kind == "time" and moment else values.cast(_TYPES.get(column.kind, pl.String))
