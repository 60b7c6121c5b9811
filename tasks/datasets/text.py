"""Reading text tables strictly: nothing is guessed, and what is wrong is named with its file and line.

polars parses, and only what polars refuses is gone through line by line. `read_table` is for files that fit in memory;
larger ones are read in `blocks` of whole lines, each parsed by `parse`, so that memory does not grow with the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import DataError

INTEGERS: dict[type[pl.DataType], int] = {pl.Int8: 2**7 - 1, pl.Int32: 2**31 - 1, pl.Int64: 2**63 - 1}
FLOATS = (pl.Float32, pl.Float64)
LATIN_1_OR_UTF_8 = "latin-1 or utf-8"
"""Encoding of a file that some hands on re-encoded: one of the two, never both."""
YEAR_2100 = 4_102_444_800
"""In seconds since 1970. Time stamps from here on are milliseconds."""
BLOCK = 64 << 20
"""Bytes of a large file that are read at a time."""
LONGEST_LINE = 1 << 20
SHOWN = 80
"""Characters of a wrong text that a message shows."""
INTERACTIONS = pa.schema(
    [("user", pa.int64()), ("item", pa.int64()), ("rating", pa.float32()), ("timestamp", pa.int64())]
)
"""The columns that `interactions_writer` takes."""
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")
_UNIT = "\x1f"  # ASCII's own separator of fields: polars takes one byte only


def content(path: Path, encoding: str = "utf-8") -> str:
    """The file's text.

    Args:
        encoding: a codec's name, or `LATIN_1_OR_UTF_8`.

    Raises:
        DataError: it is missing, empty, not of this encoding, or has a NUL byte (names the line).
    """
    try:
        raw = path.read_bytes()
        _refuse_nul(path, raw, 1)
        text = _decode(path, raw) if encoding == LATIN_1_OR_UTF_8 else raw.decode(encoding)
    except FileNotFoundError:
        raise _missing_file(path) from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: byte 0x{raw[error.start]:02x} is not {encoding}; is the file whole?") from None
    if not text.strip():
        raise _empty_file(path)
    return text


def _refuse_nul(path: Path, lines: bytes, line: int) -> None:
    """Text has none, and what reads it later may stop there."""
    if (at := lines.find(b"\0")) >= 0:
        number = line + lines.count(b"\n", 0, at)
        raise DataError(f"{path}:{number}: holds a NUL byte; is it a text file, in UTF-8 or Latin-1?")


def _missing_file(path: Path) -> DataError:
    return DataError(f"{path}: not found; run the download stage again")


def _empty_file(path: Path) -> DataError:
    return DataError(f"{path}: is empty; run the download stage again")


def _decode(path: Path, raw: bytes) -> str:
    if _is_utf_8(raw):
        return raw.decode()
    # Latin-1 decodes anything: a file of which some lines are UTF-8 would read without complaint, and wrongly.
    special = [(number, line) for number, line in enumerate(raw.split(b"\n"), start=1) if not line.isascii()]
    kinds = {_is_utf_8(line): number for number, line in reversed(special)}
    if len(kinds) == 2:
        raise DataError(
            f"{path}:{max(kinds.values())}: is {'UTF-8' if kinds[True] > kinds[False] else 'Latin-1'}, line "
            f"{min(kinds.values())} is not; one of the encodings is wrong, get the file again"
        )
    return raw.decode("latin-1")


def _is_utf_8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_table(
    path: Path,
    separator: str,
    columns: Mapping[str, type[pl.DataType]],
    *,
    encoding: str = "utf-8",
    may_be_empty: Collection[str] = (),
    header: str | None = None,
    quote: str | None = None,
) -> pl.DataFrame:
    """Read a table whose lines have exactly these columns; row i is line i + 1, or i + 2 where there is a header.

    A field that may be empty and is reads as null.

    Args:
        header: what the first line must be; None where there is no header.
        quote: the character that fields with a separator in them are put between; None where there is none.

    Raises:
        DataError: as `content`; another header; a line has more or fewer fields, an empty one, or one of another type.
    """
    text = content(path, encoding)
    if header is not None:
        line, _, text = text.partition("\n")
        _require_header(path, line, header)
        if not text.strip():
            raise _only_header(path)
    if len(separator) > 1:
        text = _single_separator(path, text, separator)
        separator = _UNIT
    first_line = 1 if header is None else 2
    return parse(path, text.encode(), separator, columns, first_line=first_line, may_be_empty=may_be_empty, quote=quote)


def _single_separator(path: Path, text: str, separator: str) -> str:
    if _UNIT in text:
        line = text.count("\n", 0, text.index(_UNIT)) + 1
        raise DataError(f"{path}:{line}: holds a control character (0x1f); is it the right file?")
    return text.replace(separator, _UNIT)


def _require_header(path: Path, line: str, header: str) -> None:
    if (line := line.removesuffix("\r")) != header:
        raise DataError(f"{path}:1: the header is {line[:SHOWN]!r}, not {header!r}; is it the right file?")


def _only_header(path: Path) -> DataError:
    return DataError(f"{path}: has a header and nothing else; run the download stage again")


def blocks(path: Path, *, header: str | None = None, size: int = BLOCK) -> Iterator[tuple[int, bytes]]:
    """Whole lines of a large file, about `size` bytes at a time, with the number of their first line.

    Args:
        header: what the first line must be (it is not among the blocks); None where there is no header.

    Raises:
        DataError: the file is missing or empty; another header; a line is longer than `LONGEST_LINE`; a NUL byte.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise _missing_file(path) from None
    with file:
        line = 1
        if header is not None:
            first_line = file.readline(LONGEST_LINE)
            if not first_line.strip():
                raise _empty_file(path)
            _require_header(path, first_line.removesuffix(b"\n").decode(errors="backslashreplace"), header)
            line = 2
        start = line
        while lines := file.read(size):
            rest = file.readline(LONGEST_LINE)
            lines += rest
            if len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
                at = line + lines.count(b"\n")
                raise DataError(f"{path}:{at}: is longer than {LONGEST_LINE:,} bytes; is it the right file?")
            if line == start and lines.isspace():
                break
            _refuse_nul(path, lines, line)
            yield line, lines
            line += lines.count(b"\n") + (not lines.endswith(b"\n"))
        if line == start:
            raise _empty_file(path) if header is None else _only_header(path)


def line_count(path: Path) -> int:
    """Lines of a large file; a last one without line end counts."""
    return sum(lines.count(b"\n") + (not lines.endswith(b"\n")) for _, lines in blocks(path))


def parse(
    path: Path,
    lines: bytes,
    separator: str,
    columns: Mapping[str, type[pl.DataType]],
    *,
    first_line: int = 1,
    may_be_empty: Collection[str] = (),
    quote: str | None = None,
) -> pl.DataFrame:
    """A table of UTF-8 lines without header, as `read_table` reads them; row i is line `first_line` + i of `path`.

    Raises:
        DataError: a line has more or fewer fields, an empty one, or one of another type.
    """
    try:
        table = pl.read_csv(
            io.BytesIO(lines), separator=separator, has_header=False, schema=dict(columns), quote_char=quote
        )
    except pl.exceptions.PolarsError as error:
        raise _complaint(path, lines, separator, columns, first_line, may_be_empty, quote, error) from error
    # A field missing at a line's end reads as null, which is legal where the field may be empty: count separators too.
    ragged = lines.count(separator.encode()) != len(table) * (len(columns) - 1) if quote is None else False
    # A quote that is never closed swallows the lines after it.
    ragged |= quote is not None and len(table) != lines.count(b"\n") + (not lines.endswith(b"\n"))
    required = [name for name in columns if name not in may_be_empty]
    missing = pl.col(required).null_count() > 0
    if quote is not None:  # an empty field between quotes reads as an empty text
        missing |= (pl.col(required).cast(pl.String) == "").any()
    if ragged or table.select(pl.any_horizontal(missing)).item():
        raise _complaint(path, lines, separator, columns, first_line, may_be_empty, quote, None)
    return table


def _complaint(
    path: Path,
    lines: bytes,
    separator: str,
    columns: Mapping[str, type[pl.DataType]],
    first_line: int,
    may_be_empty: Collection[str],
    quote: str | None,
    error: Exception | None,
) -> DataError:
    """The slow way through lines that could not be read: find the first one at fault."""
    for number, raw in enumerate(io.BytesIO(lines), start=first_line):
        try:
            line = raw.decode().removesuffix("\n").removesuffix("\r")
            fields = _fields(line, separator, quote)
        except UnicodeDecodeError as bad:
            return DataError(f"{path}:{number}: byte 0x{raw[bad.start]:02x} is not utf-8; is the file whole?")
        except csv.Error:
            return DataError(f"{path}:{number}: a quoted field does not end on its line")
        if len(fields) != len(columns):
            names = f"{', '.join(list(columns)[:4])}{', ...' if len(columns) > 4 else ''}"
            return DataError(f"{path}:{number}: {len(fields)} fields instead of {len(columns)} ({names})")
        for (name, kind), field in zip(columns.items(), fields, strict=True):
            if not field and name not in may_be_empty:
                return DataError(f"{path}:{number}: {name} is empty")
            if not field:
                continue
            if kind in INTEGERS and not (_DIGITS.fullmatch(field) and abs(int(field)) <= INTEGERS[kind]):
                return DataError(f"{path}:{number}: {name} is {field[:SHOWN]!r}, not an integer up to {INTEGERS[kind]}")
            if kind in FLOATS and not _is_number(field):
                return DataError(f"{path}:{number}: {name} is {field[:SHOWN]!r}, not a number")
    reason = str(error).partition("\n")[0]
    return DataError(f"{path}: not readable as a table of {len(columns)} columns ({reason})")


def _fields(line: str, separator: str, quote: str | None) -> list[str]:
    if quote is None:
        return line.split(separator)
    return next(csv.reader([line], delimiter=separator, quotechar=quote, strict=True)) or [""]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def allow(
    path: Path,
    table: pl.DataFrame,
    column: str,
    allowed: pl.Expr,
    what: str,
    first_line: int = 1,
    *,
    complete: bool = True,
) -> None:
    """Refuse a table unless `allowed` is true for every row; missing values pass.

    Raises:
        DataError: names the first line, its value, what is allowed, and how many lines are at fault (at least, where
            the table is not the whole file).
    """
    wrong = table.select(row=(~allowed).arg_true())["row"]
    if len(wrong):
        value = table[column][wrong[0]]
        value = value[:SHOWN] if isinstance(value, str) else value
        more = f" ({'' if complete else 'at least '}{len(wrong)} such lines)" if len(wrong) > 1 else ""
        raise DataError(f"{path}:{wrong[0] + first_line}: {column} is {value!r}, not {what}{more}")


def allow_seconds(path: Path, table: pl.DataFrame, column: str, first_line: int = 1, *, complete: bool = True) -> None:
    """Refuse time stamps before 1970 or, as milliseconds are, from 2100 on.

    Raises:
        DataError: as `allow`.
    """
    what = "seconds between 1970 and 2100 (are these milliseconds?)"
    allow(path, table, column, pl.col(column).is_between(0, YEAR_2100 - 1), what, first_line, complete=complete)


def require_unique(path: Path, table: pl.DataFrame, key: list[str], first_line: int = 1) -> None:
    """Refuse a table in which two rows have the same `key`.

    Raises:
        DataError: names both lines.
    """
    repeated = table.select(key).is_duplicated()
    if not repeated.any():
        return
    rows = table.select(key).with_row_index("row").filter(repeated)
    first = rows.row(0)[1:]
    same = pl.all_horizontal(pl.col(name) == value for name, value in zip(key, first, strict=True))
    lines = rows.filter(same)["row"] + first_line
    raise _repeat_error(path, dict(zip(key, first, strict=True)), lines[0], lines[1])


def _repeat_error(path: Path, key: Mapping[str, object], first: int, again: int) -> DataError:
    named = ", ".join(f"{name} {value}" for name, value in key.items())
    return DataError(f"{path}:{again}: {named} is repeated (first on line {first}); keep one of these lines")


class Pairs:
    """Two int32 columns of a large file that must not have the same values twice: 8 bytes a row while it is read."""

    def __init__(self) -> None:
        self._keys: list[NDArray[np.int64]] = []

    def add(self, first: pl.Series, second: pl.Series) -> None:
        """Take the next rows of the file; ids are 0 or more."""
        self._keys.append((first.cast(pl.Int64).to_numpy() << 32) | second.to_numpy())

    def require_unique(self, path: Path, names: tuple[str, str], first_line: int = 1) -> None:
        """Refuse a pair that is there twice.

        Raises:
            DataError: names both lines.
        """
        keys = np.concatenate(self._keys)
        if (keys[1:] > keys[:-1]).all():
            return
        ordered = np.sort(keys)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            key = keys[np.isin(keys, twice)][0]
            lines = np.flatnonzero(keys == key) + first_line
            raise _repeat_error(path, {names[0]: key >> 32, names[1]: key & 0xFFFFFFFF}, lines[0], lines[1])


def interactions_writer(path: Path) -> pq.ParquetWriter:
    """A raw table of interactions (`INTERACTIONS`) to which a large file's rows are appended as they are read."""
    # Ids and times as differences: against a dictionary, half the time and less space.
    differences = dict.fromkeys(("user", "item", "timestamp"), "DELTA_BINARY_PACKED")
    return pq.ParquetWriter(
        path, INTERACTIONS, compression="zstd", use_dictionary=["rating"], column_encoding=differences
    )
