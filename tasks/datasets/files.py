"""Files declared once: which columns a table of text, or JSON objects, have, and what may stand in them.

A format reads by the declaration, and a replica is written by the same one. polars parses, and only what polars refuses
is gone through line by line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from tasks.core.errors import DataError
from tasks.datasets import allowed
from tasks.datasets.text import (
    LATIN_1_OR_UTF_8,
    SHOWN,
    YEAR_2100,
    Pairs,
    allow,
    blocks,
    content,
    n_lines,
    only_header,
    require_header,
    require_unique,
)

Kind = type[pl.DataType] | pl.DataType
INTEGERS: dict[Kind, int] = {pl.Int8: 2**7 - 1, pl.Int32: 2**31 - 1, pl.Int64: 2**63 - 1}
FLOATS = (pl.Float32, pl.Float64)
Listed = Mapping[str, tuple[pl.Series, str]]
"""Column -> the values that another file lists, and how a message calls them."""
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")
_UNIT = "\x1f"  # ASCII's own separator of fields: polars takes one byte only


@dataclass(frozen=True)
class Column:
    """What may stand in a column."""

    kind: Kind = pl.String
    low: float | None = None
    high: float | None = None
    values: Collection[Any] = ()
    """All values there are; any, where there are none."""
    pattern: str = ""
    """Regular expression of a text."""
    what: str = ""
    """What a message says is allowed; of a range and of values it follows from them."""
    empty: bool = False
    """Whether a field may be empty, and then reads as null."""

    def rule(self, name: str) -> tuple[pl.Expr, str] | None:
        """Which values of the column `name` are allowed, and how a message says that; None where all are."""
        value = pl.col(name)
        if self.values:
            return value.is_in(list(self.values)), self.what or " or ".join(map(str, self.values))
        if self.pattern:
            return value.str.contains(self.pattern), self.what
        if self.low is None:
            return None
        if self.high is None:
            return value >= self.low, self.what or f"{self.low:.15g} or more"
        what = self.what or (f"{self.low:.15g} to {self.high:.15g}" if self.high > self.low else f"{self.low:.15g}")
        return value.is_between(self.low, self.high), what


SECONDS = Column(pl.Int64, 0, YEAR_2100 - 1, what=allowed.SECONDS)


def check(
    path: Path,
    table: pl.DataFrame,
    columns: Mapping[str, Column],
    listed: Listed | None = None,
    first_line: int | pl.Series = 1,
) -> None:
    """Refuse rows with a value that its column, or another file, does not allow.

    Args:
        first_line: as `allow` has it.

    Raises:
        DataError: as `allow`.
    """
    rules = {name: rule for name, column in columns.items() if (rule := column.rule(name))}
    rules |= {name: (pl.col(name).is_in(values.implode()), what) for name, (values, what) in (listed or {}).items()}
    for name, (right, what) in rules.items():
        allow(path, table, name, right, what, first_line)


@dataclass(frozen=True)
class TextTable:
    """A file whose lines have exactly these columns."""

    name: str
    """Its path below the folder of the data set."""
    columns: Mapping[str, Column]
    separator: str = ","
    """One character or several."""
    headed: bool | str = False
    """Whether the first line names the columns; a text: what it must be."""
    encoding: str = "utf-8"
    """A codec's name, or `LATIN_1_OR_UTF_8`."""
    quoted: bool = False
    """Whether a field may stand between quotation marks, and have separators in it then."""
    multiline: bool = False
    """Whether quoted fields may have line ends, too."""
    unique: tuple[str, ...] = ()
    """Columns that no two rows have in common; of a file that is read in batches two of int32."""

    @property
    def header(self) -> str | None:
        """What the first line must be; None where there is no header."""
        return self.separator.join(self.columns) if self.headed is True else self.headed or None

    @property
    def first_line(self) -> int:
        """Number of the line of the first row."""
        return 1 if self.header is None else 2

    def read(self, folder: Path, listed: Listed | None = None) -> pl.DataFrame:
        """The whole table; row i is line `first_line` + i.

        Raises:
            DataError: as `text.content` and `parse`; another header; a value is not allowed or not known; rows have the
                same key (names file and line).
        """
        path = folder / self.name
        text = content(path, self.encoding)
        if self.header is not None:
            line, _, text = text.partition("\n")
            require_header(path, line, self.header)
            if not text.strip():
                raise only_header(path)
        table = self.parse(path, text.encode(), self.first_line)
        check(path, table, self.columns, listed, self.first_line)
        if self.unique:
            require_unique(path, table, list(self.unique), self.first_line)
        return table

    def batches(self, folder: Path, listed: Listed | None = None) -> Iterator[tuple[int, pl.DataFrame]]:
        """The table some lines at a time, with the number of their first line; memory grows with `unique` alone.

        Raises:
            DataError: as `read`.
        """
        path, pairs = folder / self.name, Pairs()
        for line, lines in blocks(path, header=self.header):
            table = self.parse(path, lines, line)
            check(path, table, self.columns, listed, line)
            if self.unique:
                pairs.add(*(table[name] for name in self.unique))
            yield line, table
        if self.unique:
            first, second = self.unique
            pairs.require_unique(path, (first, second), self.first_line)

    def parse(self, path: Path, lines: bytes, line: int = 1) -> pl.DataFrame:
        """UTF-8 lines without header as a table, with every field and of its type; row i is line `line` + i of `path`.

        Raises:
            DataError: a line has more or fewer fields, an empty one, or one of another type.
        """
        separator = self.separator
        if len(separator) > 1:
            if (at := lines.find(_UNIT.encode())) >= 0:
                number = line + lines.count(b"\n", 0, at)
                raise DataError(f"{path}:{number}: holds a control character (0x1f); is it the right file?")
            lines, separator = lines.replace(separator.encode(), _UNIT.encode()), _UNIT
        schema = {name: column.kind for name, column in self.columns.items()}
        quote = '"' if self.quoted else None
        try:
            table = pl.read_csv(
                io.BytesIO(lines), separator=separator, has_header=False, schema=schema, quote_char=quote
            )
        except pl.exceptions.PolarsError as error:
            raise self._complaint(path, lines, separator, line, str(error).partition("\n")[0]) from error
        required = table.select(name for name, column in self.columns.items() if not column.empty)
        missing = any(series.null_count() for series in required)
        if self.quoted:  # an empty field between quotes reads as an empty text
            missing |= any((series == "").any() for series in required.select(pl.col(pl.String)))
        if missing or not self._is_regular(lines, separator, len(table)):
            raise self._complaint(path, lines, separator, line, "quotation marks")
        return table

    def _is_regular(self, lines: bytes, separator: str, rows: int) -> bool:
        """Whether polars let nothing pass.

        A field may be missing at a line's end where it may be empty; a quotation mark that neither begins nor ends a
        field swallows what is after it.
        """
        if self.quoted and b'"' in lines:
            quote, between = (b'"[^"]*"' if self.multiline else b'"[^"\n]*"'), re.escape(separator.encode())
            field = b"(^|%b)%b(?:%b)*(?=%b|\r?$)" % (between, quote, quote, between)
            if b'"' in (lines := re.sub(field, rb"\g<1>0", lines, flags=re.MULTILINE)):
                return False
        return n_lines(lines) == rows and lines.count(separator.encode()) == rows * (len(self.columns) - 1)

    def _complaint(self, path: Path, lines: bytes, separator: str, line: int, otherwise: str) -> DataError:
        """The slow way through lines that could not be read: find the first one at fault."""
        number = line
        try:
            if self.multiline:
                records = csv.reader(io.StringIO(lines.decode(), newline=""), delimiter=separator, strict=True)
                for fields in records:
                    self._check_types(fields)
                    number = line + records.line_num
            for number, raw in enumerate(() if self.multiline else io.BytesIO(lines), start=line):  # noqa: B007  # errors name it
                text = raw.decode().removesuffix("\n").removesuffix("\r")
                fields = text.split(separator)
                if self.quoted:
                    fields = next(csv.reader([text], delimiter=separator, strict=True)) or [""]
                self._check_types(fields)
        except UnicodeDecodeError as bad:
            return DataError(f"{path}:{number}: byte 0x{bad.object[bad.start]:02x} is not utf-8; is the file whole?")
        except csv.Error:
            if self.multiline:
                return DataError(f"{path}:{number}: a quotation mark is in the wrong place, or missing")
            return DataError(f"{path}:{number}: a quoted field does not end on its line")
        except DataError as error:
            return DataError(f"{path}:{number}: {error}")
        between = re.escape(separator)
        if self.quoted and (stray := re.search(rf'(?:^|{between})[^"\n{between}]+"', text := lines.decode(), re.M)):
            number = line + text.count("\n", 0, stray.end())
            return DataError(f"{path}:{number}: a quotation mark is in the wrong place")
        return DataError(f"{path}: not readable as a table of {len(self.columns)} columns ({otherwise})")

    def _check_types(self, fields: list[str]) -> None:
        """Refuse a record unless its fields are there and have their types."""
        if len(fields) != len(self.columns):
            names = f"{', '.join(list(self.columns)[:4])}{', ...' if len(self.columns) > 4 else ''}"
            raise DataError(f"{len(fields)} fields instead of {len(self.columns)} ({names})")
        for (name, column), field in zip(self.columns.items(), fields, strict=True):
            if not field and not column.empty:
                raise DataError(f"{name} is empty")
            largest = INTEGERS.get(column.kind) if field else None
            if largest and not (_DIGITS.fullmatch(field) and abs(int(field)) <= largest):
                raise DataError(f"{name} is {field[:SHOWN]!r}, not an integer up to {largest}")
            if field and column.kind in FLOATS and not is_number(field):
                raise DataError(f"{name} is {field[:SHOWN]!r}, not a number")

    def write(self, folder: Path, tables: Iterable[pl.DataFrame]) -> None:
        """Write the file of these tables' rows, as `append` does, below the header."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            if self.header is not None:
                out.write(f"{self.header}\n".encode())
            for table in tables:
                self.append(out, table)

    def append(self, out: BinaryIO, table: pl.DataFrame) -> None:
        """Write rows, of which the columns are in any order; null is an empty field."""
        separator = self.separator if len(self.separator) == 1 else _UNIT
        codec = "latin-1" if self.encoding == LATIN_1_OR_UTF_8 else self.encoding
        style: dict[str, Any] = {
            "include_header": False,
            "separator": separator,
            "quote_style": "necessary" if self.quoted else "never",
        }
        rows = table.select(*self.columns)
        if separator == self.separator and codec == "utf-8":
            rows.write_csv(out, **style)
        else:
            out.write(rows.write_csv(**style).replace(separator, self.separator).encode(codec))


def json_rows(path: Path, lines: bytes, columns: Mapping[str, Column], line: int) -> pl.DataFrame:
    """These fields of JSON objects, one a line; row i is line `line` + i of `path`. Lists and objects read as text.

    Raises:
        DataError: a line is no JSON object; a field is missing, or of another type.
    """
    try:
        table = pl.read_ndjson(lines, schema=dict.fromkeys(columns, pl.String))
    except pl.exceptions.PolarsError as error:
        raise _no_object(path, lines, line, error) from error
    if len(table) < n_lines(lines):  # polars skips empty lines
        raise _no_object(path, lines, line, "empty line")
    for name, column in columns.items():
        if table[name].null_count() and not column.empty:
            at = line + table[name].is_null().arg_true()[0]
            raise DataError(f"{path}:{at}: {name} is missing; is it the right file?")
        if column.kind != pl.String:
            number = pl.col(name).cast(column.kind, strict=False)
            what = "a number" if column.kind in FLOATS else "an integer"
            allow(path, table, name, pl.col(name).is_null() | number.is_not_null(), what, line)
            table = table.with_columns(number)
    return table


def _no_object(path: Path, lines: bytes, line: int, otherwise: object) -> DataError:
    """The slow way through lines that could not be read: find the first one at fault."""
    for number, text in enumerate(io.BytesIO(lines), start=line):
        try:
            record = json.loads(content := text.decode(), parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            why = getattr(error, "msg", str(error))
            return DataError(f"{path}:{number}: is no whole JSON object ({why}); one a line is read")
        if not isinstance(record, dict):
            return DataError(f"{path}:{number}: is {content[:40]!r}, not a JSON object; is it the right file?")
    return DataError(f"{path}: not readable as JSON lines ({' '.join(str(otherwise).split())})")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def is_number(field: str) -> bool:
    """Whether a field is a number, as polars reads them: of ASCII, without blanks after it."""
    try:
        float(field)
    except ValueError:
        return False
    return field.isascii() and field.rstrip() == field and "_" not in field
