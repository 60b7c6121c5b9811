"""The tables that an audit is given, CSV or Parquet: which column is what, and their rows with text ids.

Columns are recognised by usual names or named by options. What could be two things is refused. Errors are one line
that names the file, the row and the column.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.datasets.tables import PARQUET as PARQUET
from tasks.datasets.tables import Column, batches, first_line
from tasks.datasets.text import LONGEST_LINE, allow, require_unique
from tasks.errors import ConfigurationError, DataError

Role = Literal["user", "item", "rating", "score", "rank", "time"]
USUAL: Mapping[Role, str] = {
    "user": "user userid uid customer customerid visitor visitorid member memberid reader readerid",
    "item": "item itemid iid movie movieid product productid asin track trackid song songid artist artistid book "
    "bookid business businessid poi poiid news newsid article articleid",
    "rating": "rating ratings stars",
    "score": "score scores prediction predicted relevance",
    "rank": "rank ranking position",
    "time": "time timestamp datetime date when ts createdat",
}
"""Role -> names of columns, in lower case without blanks, hyphens and underscores."""
SEPARATORS = (",", "\t", ";")
MOST_CLASSES = 30
"""Values of an attribute above which text is taken for a name or an address, and numbers are grouped."""
GROUPS = 4
"""Classes of equal size into which numbers are grouped."""


@dataclass(frozen=True)
class Taken:
    """A file as it was read; `line` says it in a sentence."""

    role: str
    path: Path
    columns: Mapping[str, str]
    """Role -> column."""
    rows: int
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """What was taken for what."""
        columns = ", ".join(name if name == role else f"{name} = {role}" for role, name in self.columns.items())
        notes = "".join(f"; {note}" for note in self.notes)
        return f"{self.role}: {self.path} ({self.rows:,} rows; columns {columns}{notes})"


@dataclass(frozen=True)
class Given:
    """A table with columns named by role (ids as text, numbers as float64), and how it was read."""

    rows: pl.DataFrame
    taken: Taken


@dataclass(frozen=True)
class Names:
    """Columns that options name: role -> column. Files without such a column are read by the usual names."""

    columns: Mapping[Role, str] = field(default_factory=dict)


def interactions(path: Path, role: str, names: Names) -> Given:
    """Users' interactions: user, item and, where there is one, rating; of a pair that is repeated the last row.

    Raises:
        DataError: the file is missing, empty or malformed, a column is missing or ambiguous, an id is empty, or a
            rating is no finite number.
    """
    given = _read(path, role, names, ("user", "item"), ("rating",))
    rows = given.rows.unique(["user", "item"], keep="last", maintain_order=True)
    if (repeated := len(given.rows) - len(rows)) == 0:
        return given
    return Given(rows, _add_note(given.taken, f"{repeated:,} repeated pairs, the last of each is used"))


def lists(path: Path, role: str, names: Names) -> Given:
    """Recommendations: user, item, rank (from 1, best first) and, where there is one, score.

    The order of a user's list is that of `rank`, else of falling `score`, else of the rows.

    Raises:
        DataError: see `interactions`; or an item is twice in one list.
    """
    given = _read(path, role, names, ("user", "item"), ("rank", "score"))
    rows = given.rows
    require_unique(path, rows, ["user", "item"], first_line(path))
    if "rank" in rows.columns:
        key, note = pl.col("rank").rank("ordinal"), ""
    elif "score" in rows.columns:
        key, note = pl.col("score").rank("ordinal", descending=True), "no rank: lists are ordered by score"
    else:
        key, note = pl.int_range(1, pl.len() + 1), "no rank and no score: lists are in the order of their rows"
    rows = rows.with_columns(rank=key.over("user").cast(pl.Int64))
    return Given(rows, _add_note(given.taken, note) if note else given.taken)


def scores(path: Path, names: Names) -> Given:
    """Scores of pairs: user, item, score; they need not be of all pairs.

    Raises:
        DataError: see `lists`.
    """
    given = _read(path, "scores", names, ("user", "item", "score"), ())
    require_unique(path, given.rows, ["user", "item"], first_line(path))
    return given


def attributes(path: Path, names: Names, wanted: tuple[str, ...]) -> Given:
    """What users are: `user`, and a column of text classes (null: unknown) for every attribute.

    Numbers of more than `MOST_CLASSES` values are grouped into quarters. Text of more values, and columns with one
    value, are left out unless they are asked for.

    Args:
        wanted: the attributes that are audited; empty: every column that can be one.

    Raises:
        DataError: see `interactions`; a user is there twice, or no column is an attribute.
    """
    header = _header(path)
    user = _of_role(path, "user", header, names, required=True)
    for name in wanted:
        if name not in header:
            raise ConfigurationError(f"{path}: no column {name!r} (has {_quote(header)}); correct --attributes")
    chosen = wanted or tuple(name for name in header if name != user)
    columns = {str(user): Column("id")} | {name: Column("text", may_be_empty=True) for name in chosen}
    rows = _rows(path, header, columns)
    require_unique(path, rows, [str(user)], first_line(path))
    classes, notes = {"user": rows[str(user)]}, []
    for name in chosen:
        grouped, note = _classes(rows[name].cast(pl.String))
        if grouped is None and wanted:
            raise DataError(f"{path}: column {name!r}: {note}; it cannot be audited as an attribute")
        if note:
            notes.append(f"{name}: {note}")
        if grouped is not None:
            classes[name] = grouped
    if len(classes) == 1:
        raise DataError(f"{path}: no column is an attribute ({'; '.join(notes) or 'it has users alone'})")
    taken = Taken("users", path, {"user": str(user)} | {n: n for n in classes if n != "user"}, len(rows), tuple(notes))
    return Given(pl.DataFrame(classes), taken)


def canaries(path: Path) -> Given:
    """The file of `dprec audit canaries`: canary, witness, item and included (1: its coin put it in).

    Raises:
        DataError: see `interactions`; or `included` is neither 0 nor 1.
    """
    header = _header(path)
    columns = {name: Column("id") for name in ("canary", "witness", "item")} | {"included": Column("whole")}
    for name in columns:
        if name not in header:
            raise DataError(f"{path}: no column {name!r} (has {_quote(header)}); is it from `dprec audit canaries`?")
    rows = _rows(path, header, columns)
    allow(path, rows, "included", pl.col("included").is_in([0, 1]), "0 or 1", first_line(path))
    require_unique(path, rows, ["canary"], first_line(path))
    return Given(rows, Taken("canaries", path, {name: name for name in columns}, len(rows)))


def text_table(path: Path) -> tuple[list[str], list[list[str]], str]:
    """Header, rows and separator of a CSV file as they are, to write it again with more rows.

    Raises:
        DataError: the file is missing, empty, or not CSV.
    """
    if path.suffix == PARQUET:
        raise DataError(f"{path}: canaries are added to CSV; save the table as CSV")
    header = _header(path)
    between = separator(path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter=between))[1:]
    return header, [row for row in rows if row], between


def role_column(path: Path, role: Role, names: Names, *, required: bool = True) -> str | None:
    """The column of that role, or None.

    Raises:
        DataError: it is missing and required, or ambiguous.
    """
    return _of_role(path, role, _header(path), names, required=required)


def _read(path: Path, what: str, names: Names, required: tuple[Role, ...], optional: tuple[Role, ...]) -> Given:
    header = _header(path)
    recognised: dict[str, str] = {}
    for role in required + optional:
        column = _of_role(path, role, header, names, required=role in required)
        if column is not None:
            recognised[role] = column
    if len(set(recognised.values())) < len(recognised):
        raise DataError(f"{path}: one column is taken for two things ({_quote(list(recognised.values()))}); name them")
    ids = ("user", "item")
    rows = _rows(path, header, {name: Column("id" if role in ids else "number") for role, name in recognised.items()})
    for known_role, name in recognised.items():
        if known_role not in ids:
            allow(path, rows, name, pl.col(name).is_finite(), "a finite number", first_line(path))
    rows = rows.rename({name: role for role, name in recognised.items()})
    return Given(rows, Taken(what, path, recognised, len(rows)))


def _rows(path: Path, header: list[str], columns: Mapping[str, Column]) -> pl.DataFrame:
    for name in columns:
        if header.count(name) > 1:
            raise DataError(f"{path}:1: column {name!r} is there {header.count(name)} times")
    if path.suffix == PARQUET and any(column.kind == "text" for column in columns.values()):
        rows = pl.read_parquet(path, columns=list(columns))  # numbers may be attributes, too
        for name, column in columns.items():
            if not column.may_be_empty and (empty := rows[name].is_null().arg_true()).len():
                raise DataError(f"{path}:{empty[0] + 1}: {name} is empty")
        return rows.with_columns(pl.all().cast(pl.String)).select(list(columns))
    between = None if path.suffix == PARQUET else separator(path)
    return pl.concat([rows for _, rows in batches(path, between, columns)])


def _header(path: Path) -> list[str]:
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.suffix == PARQUET:
        try:
            return list(pq.read_schema(path).names)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{path}: not a readable Parquet file ({' '.join(str(error).split())})") from None
    return next(csv.reader([_first_line(path)], delimiter=separator(path)), [])


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.readline(LONGEST_LINE)
    if not raw.strip():
        raise DataError(f"{path}:1: is empty; the first line must name the columns")
    try:
        return raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}:1: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8") from None


def separator(path: Path) -> str:
    """What stands between the fields of a text table: what its header has most of; a comma where it has none."""
    line = _first_line(path)
    return max(SEPARATORS, key=line.count)


def _of_role(path: Path, role: Role, header: list[str], names: Names, *, required: bool) -> str | None:
    named = names.columns.get(role)
    if named is not None and named in header:
        return named
    usual = [name for name in header if "".join(c for c in name.lower() if c not in " _-") in USUAL[role].split()]
    if len(usual) > 1:
        raise DataError(f"{path}:1: {' and '.join(map(repr, usual))} may both be the {role}; say --{role}-column NAME")
    if not usual and required:
        which = f"no column {named!r} and none" if named is not None else "no column"
        raise DataError(
            f"{path}:1: {which} is recognised as the {role} (has {_quote(header)}); say --{role}-column NAME"
        )
    return usual[0] if usual else None


def _quote(names: list[str]) -> str:
    return ", ".join(repr(name[:40]) for name in names[:8]) + (", ..." if len(names) > 8 else "")


def _add_note(taken: Taken, note: str) -> Taken:
    return Taken(taken.role, taken.path, taken.columns, taken.rows, (*taken.notes, note))


def _classes(values: pl.Series) -> tuple[pl.Series | None, str]:
    """Text classes of a column, or None with the reason why it is no attribute; and what was done to it."""
    values = values.replace("", None)
    distinct = values.drop_nulls().n_unique()
    if distinct < 2:
        return None, "left out, it has fewer than two values"
    if distinct <= MOST_CLASSES:
        return values, ""
    numbers = values.cast(pl.Float64, strict=False)
    if numbers.null_count() > values.null_count() or numbers.is_nan().any():
        return None, f"left out, it has {distinct:,} different values"
    cuts = sorted({float(cut) for q in range(1, GROUPS) if (cut := numbers.quantile(q / GROUPS, "lower")) is not None})
    group = pl.lit("above " + f"{cuts[-1]:g}")
    for cut in reversed(cuts):
        group = pl.when(pl.col("value") <= cut).then(pl.lit(f"to {cut:g}")).otherwise(group)
    known = pl.when(pl.col("value").is_not_null()).then(group)
    grouped = pl.DataFrame({"value": numbers}).select(known.alias("value"))["value"]
    return grouped, f"numbers, grouped at {', '.join(f'{cut:g}' for cut in cuts)}"
