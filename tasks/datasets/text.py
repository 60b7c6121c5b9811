"""Reading text tables strictly: nothing is guessed, and what is wrong is named with its file and line.

For files that fit in memory; polars parses them, and only a file that polars refuses is gone through line by line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl

from tasks.errors import DataError

INTEGERS: dict[type[pl.DataType], int] = {pl.Int8: 2**7 - 1, pl.Int32: 2**31 - 1, pl.Int64: 2**63 - 1}
_DIGITS = re.compile(r"[+-]?[0-9]{1,19}")


def content(path: Path, encoding: str = "utf-8") -> str:
    """The file's text.

    Raises:
        DataError: it is missing, empty, or not of this encoding (names the line).
    """
    try:
        raw = path.read_bytes()
        text = raw.decode(encoding)
    except FileNotFoundError:
        raise DataError(f"{path}: not found; run the download stage again") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: byte 0x{raw[error.start]:02x} is not {encoding}; is the file whole?") from None
    if not text.strip():
        raise DataError(f"{path}: is empty; run the download stage again")
    return text


def read_table(
    path: Path,
    separator: str,
    columns: Mapping[str, type[pl.DataType]],
    *,
    encoding: str = "utf-8",
    may_be_empty: Collection[str] = (),
) -> pl.DataFrame:
    """Read a table without header or quotes whose lines have exactly these columns; row i is line i + 1.

    A field that may be empty and is reads as null.

    Raises:
        DataError: as `content`; a line has more or fewer fields, an empty one, or one of another type.
    """
    text = content(path, encoding)
    if len(separator) > 1:
        text = _single(path, text, separator)
        separator = _UNIT
    try:
        table = pl.read_csv(
            io.BytesIO(text.encode()), separator=separator, has_header=False, schema=dict(columns), quote_char=None
        )
    except pl.exceptions.PolarsError as error:
        raise _complaint(path, text, separator, columns, may_be_empty, error) from error
    # A field missing at a line's end reads as null, which is legal where the field may be empty: count separators too.
    ragged = text.count(separator) != len(table) * (len(columns) - 1)
    required = [name for name in columns if name not in may_be_empty]
    if ragged or table.select(pl.any_horizontal(pl.col(required).null_count() > 0)).item():
        raise _complaint(path, text, separator, columns, may_be_empty, None)
    return table


_UNIT = "\x1f"  # ASCII's own separator of fields: polars takes one byte only


def _single(path: Path, text: str, separator: str) -> str:
    if _UNIT in text:
        line = text.count("\n", 0, text.index(_UNIT)) + 1
        raise DataError(f"{path}:{line}: holds a control character (0x1f); is it the right file?")
    return text.replace(separator, _UNIT)


def _complaint(
    path: Path,
    text: str,
    separator: str,
    columns: Mapping[str, type[pl.DataType]],
    may_be_empty: Collection[str],
    error: Exception | None,
) -> DataError:
    """The slow way through a file that could not be read: find the first line at fault."""
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        fields = line.removesuffix("\r").split(separator)
        if len(fields) != len(columns):
            names = f"{', '.join(list(columns)[:4])}{', ...' if len(columns) > 4 else ''}"
            return DataError(f"{path}:{number}: {len(fields)} fields instead of {len(columns)} ({names})")
        for (name, kind), field in zip(columns.items(), fields, strict=True):
            if not field and name not in may_be_empty:
                return DataError(f"{path}:{number}: {name} is empty")
            if not field:
                continue
            if kind in INTEGERS and not (_DIGITS.fullmatch(field) and abs(int(field)) <= INTEGERS[kind]):
                return DataError(f"{path}:{number}: {name} is {field!r}, not an integer up to {INTEGERS[kind]}")
    return DataError(f"{path}: not readable as a table of {len(columns)} columns ({error})")


def allow(path: Path, table: pl.DataFrame, column: str, allowed: pl.Expr, what: str, first_line: int = 1) -> None:
    """Refuse a table unless `allowed` is true for every row; missing values pass.

    Raises:
        DataError: names the first line, its value, what is allowed, and how many lines are at fault.
    """
    wrong = table.select(row=(~allowed).arg_true())["row"]
    if len(wrong):
        value = table[column][wrong[0]]
        more = f" ({len(wrong)} such lines)" if len(wrong) > 1 else ""
        raise DataError(f"{path}:{wrong[0] + first_line}: {column} is {value!r}, not {what}{more}")


def once(path: Path, table: pl.DataFrame, key: list[str], first_line: int = 1) -> None:
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
    named = ", ".join(f"{name} {value}" for name, value in zip(key, first, strict=True))
    raise DataError(f"{path}:{lines[1]}: {named} is repeated (first on line {lines[0]}); keep one of these lines")
