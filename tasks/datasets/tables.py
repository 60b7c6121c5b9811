"""Tables with a header that a user brings, CSV or Parquet: the wanted columns, typed, some rows at a time.

What is wrong is named with the file and its line (of a Parquet file: its row, counted from 1).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.datasets import files
from tasks.datasets.text import LONGEST_LINE, YEAR_2100, allow, blocks
from tasks.errors import DataError

PARQUET = ".parquet"
BATCH = 1 << 20
"""Rows of a Parquet file that are read at a time."""
MOST_COLUMNS = 10_000
"""Of a text table: all of them are parsed, whichever are wanted."""
ISO = "a date and time as 2024-05-31T18:30:00 or 2024-05-31T18:30:00+02:00, or a date as 2024-05-31"
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


def first_line(path: Path) -> int:
    """The number of the first row of a table."""
    return 1 if path.suffix == PARQUET else 2


def batches(path: Path, separator: str | None, columns: Mapping[str, Column]) -> Iterator[tuple[int, pl.DataFrame]]:
    """The wanted columns of a table, some rows at a time, with the number of their first line.

    Text is UTF-8 with one row per line, fields may be quoted with ", and every line has as many fields as the header.

    Args:
        separator: between the fields of text, one character; None where there is none.
        columns: name in the header -> how to read it.

    Raises:
        DataError: the file is empty or malformed, lacks a column, or a field is missing or of another type.
    """
    read = _parquet(path, columns) if path.suffix == PARQUET else _text(path, separator, columns)
    empty = True
    for line, rows in read:
        empty = False
        yield line, rows
    if empty:
        raise DataError(f"{path}: has no rows")


def in_seconds(
    path: Path, rows: pl.DataFrame, column: str, line: int, kind: Literal["seconds", "milliseconds", "iso"]
) -> pl.DataFrame:
    """The same rows with int64 seconds since 1970, rounded down; times without a zone are UTC.

    Raises:
        DataError: a time is malformed, or not between 1970 and 2100.
    """
    value = pl.col(column)
    if kind == "milliseconds":
        right = value.is_between(0, 1000 * YEAR_2100 - 1)
        allow(path, rows, column, right, "milliseconds between 1970 and 2100", line, complete=False)
        return rows.with_columns(value // 1000)
    if kind == "iso":
        seconds = rows.select(_iso(value) if rows[column].dtype == pl.String else value.dt.epoch("s"))[column]
        allow(path, rows, column, pl.lit(seconds).is_not_null(), ISO, line, complete=False)
        rows = rows.with_columns(seconds)
    files.check(path, rows, {column: files.SECONDS}, first_line=line, complete=False)
    return rows


def _iso(text: pl.Expr) -> pl.Expr:
    """Null where the text is none of the three ways to write a time, each brought into the longest one."""
    text = text.str.replace(r"^(\d{4}-\d{2}-\d{2}) ", "${1}T").str.replace(r"^(\d{4}-\d{2}-\d{2})$", "${1}T00:00")
    text = text.str.replace("Z$", "+00:00").str.replace(r"(T\d{2}:\d{2})([+-]\d{2}:\d{2})?$", "${1}:00${2}")
    text = text.str.replace(r"(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?)$", "${1}+00:00")
    return text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", strict=False, time_zone="UTC").dt.epoch("s")


def _text(path: Path, separator: str | None, columns: Mapping[str, Column]) -> Iterator[tuple[int, pl.DataFrame]]:
    if separator is None:
        raise DataError(f"{path}: the separator is null in params.yaml; say which one the file has")
    with path.open("rb") as file:
        first = file.readline(LONGEST_LINE)
    if len(first) == LONGEST_LINE and not first.endswith(b"\n"):
        raise DataError(f"{path}:1: is longer than {LONGEST_LINE:,} bytes; is it the right file?")
    if not first.strip():
        raise DataError(f"{path}: is empty, or its first line is")
    header = _utf_8(path, first, 1).removesuffix("\n").removesuffix("\r")
    if "\r" in header:
        raise DataError(f"{path}:1: lines end in a carriage return alone; save the file with other line ends")
    names = next(csv.reader([header.removeprefix("\ufeff")], delimiter=separator), [""])
    if len(names) > MOST_COLUMNS:
        raise DataError(f"{path}:1: {len(names):,} columns, more than the limit of {MOST_COLUMNS:,}; leave some out")
    _require_columns(f"{path}:1", names, columns)
    fields = {name: files.Column(empty=True) for name in names} | {
        name: files.Column(_TYPES.get(column.kind, pl.String), empty=column.may_be_empty)
        for name, column in columns.items()
    }
    if len(fields) < len(names):
        raise DataError(f"{path}:1: two columns have the same name; give each its own")
    for line, lines in blocks(path, header=header):
        _utf_8(path, lines, line)
        rows = files.TextTable(path.name, fields, separator, quoted=b'"' in lines).parse(path, lines, line)
        yield line, rows.select(list(columns))


def _utf_8(path: Path, lines: bytes, line: int) -> str:
    try:
        return lines.decode()
    except UnicodeDecodeError as error:
        at = line + lines.count(b"\n", 0, error.start)
        raise DataError(f"{path}:{at}: byte 0x{lines[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def _require_columns(where: str, names: list[str], columns: Mapping[str, Column]) -> None:
    listed = ", ".join(repr(name[:80]) for name in names[:8]) + (", ..." if len(names) > 8 else "")
    for name in columns:
        if (times := names.count(name)) != 1:
            what = f"column {name!r} is there {times} times" if times else f"no column {name!r}"
            raise DataError(f"{where}: {what} (has {listed}); correct `read` in params.yaml, or its separator")


def _parquet(path: Path, columns: Mapping[str, Column]) -> Iterator[tuple[int, pl.DataFrame]]:
    try:
        with pq.ParquetFile(path) as file:
            _require_columns(str(path), file.schema_arrow.names, columns)
            row = 1
            for batch in file.iter_batches(BATCH, columns=list(columns)):
                rows = from_arrow(batch)
                yield row, rows.select(_cast(path, rows[name], column, row) for name, column in columns.items())
                row += len(rows)
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        why = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable Parquet file ({why}); save it again") from error


def from_arrow(rows: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    """Rows of a Parquet file for polars, which panics at text that is not UTF-8, in metadata too.

    Raises:
        ValueError: there is such text, or another value that its type does not have.
    """
    rows.validate(full=True)
    return pl.DataFrame({name: pl.from_arrow(rows.column(name)) for name in rows.schema.names})


def _cast(path: Path, values: pl.Series, column: Column, row: int) -> pl.Series:
    kind = values.dtype
    text = kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum)
    moment = kind == pl.Date or isinstance(kind, pl.Datetime)
    right, wanted = {
        "id": (text or kind.is_integer(), "whole numbers or text"),
        "text": (text or kind.is_integer() or kind == pl.Boolean, "text"),
        "number": (kind.is_numeric(), "numbers"),
        "whole": (kind.is_integer(), "whole numbers"),
        "time": (text or moment, "times or text"),
        "any": (text or kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean, "text, numbers or times"),
    }[column.kind]
    if not right and kind != pl.Null:
        raise DataError(f"{path}: column {values.name!r} holds {kind}, not {wanted}; save it as such")
    if not column.may_be_empty and values.null_count():
        at = row + values.is_null().arg_true()[0]
        raise DataError(f"{path}:{at}: {values.name} is empty")
    return values if column.kind == "time" and moment else values.cast(_TYPES.get(column.kind, pl.String))
