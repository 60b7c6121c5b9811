"""The tables that an audit is given, CSV or Parquet: which column is what, and their rows with text ids.

Columns are recognised by usual names or named by options. What could be two things is refused. What is wrong is a
DataError of one line that names the file, the row and the column: a file that is missing, empty or malformed, a column
that is missing or ambiguous, an empty id, a number that is none or infinite, a row that may not be there twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from tasks.core.errors import ConfigurationError, DataError
from tasks.datasets.files import is_number
from tasks.datasets.tables import PARQUET as PARQUET
from tasks.datasets.tables import POSITION, form, read_table
from tasks.datasets.tables import Column as Column
from tasks.datasets.tables import iso_seconds as iso_seconds
from tasks.datasets.text import allow, require_unique
from tasks.external.findings import File
from tasks.external.folders import secret

Role = Literal["user", "item", "rating", "score", "rank", "time", "source", "target"]
USUAL: Mapping[Role, str] = {
    "user": "user userid uid customer customerid visitor visitorid member memberid reader readerid reviewerid",
    "item": "item itemid iid movie movieid product productid asin parentasin track trackid song songid artist artistid "
    "book bookid business businessid poi poiid news newsid article articleid",
    "rating": "rating ratings stars overall",
    "score": "score scores prediction predicted relevance",
    "rank": "rank ranking position",
    "time": "time timestamp datetime date when ts createdat unixreviewtime",
    "source": "source src from follower user userid user1 usera",
    "target": "target dst to followee friend friendid user2 userb",
}
"""Role -> names of columns, in lower case without blanks, hyphens and underscores."""
BY_POSITION = "column_1, column_2, ..., by position"
IDS = ("user", "item", "source", "target")
LARGEST = 1e50
"""Of numbers, whose powers are summed."""
MOST_CLASSES = 30
"""Values of an attribute above which text is taken for a name or an address, and numbers are grouped."""
TIME = re.compile(r"[0-9]+[-/.:][0-9 .:/T+Z-]+")
"""Dates and times, however they are written."""
GROUPS = 4
"""Classes of equal size into which numbers are grouped."""


@dataclass(frozen=True)
class Given:
    """A table with columns named by role (ids as text, numbers as float64), and how it was read."""

    rows: pl.DataFrame
    taken: File


@dataclass(frozen=True)
class Names:
    """Columns that options name: role -> column. Files without such a column are read by the usual names."""

    columns: Mapping[Role, str] = field(default_factory=dict)

    def require(self, paths: Sequence[Path], without: Sequence[Role] = ()) -> None:
        """Refuse a column, but of the roles `without`, that no file has: one of a usual name would be read instead."""
        for role, column in self.columns.items():
            if role not in without and not any(named(path, column) for path in paths):
                raise ConfigurationError(f"no file has a column {column!r}; correct --{role}-column")


class Log:
    """The files that were read, each reported on one line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self.files = say, list[File]()

    def __call__(self, table: Given) -> Given:
        """Remember the table, and report what was taken for what."""
        self.files.append(table.taken)
        self._say(table.taken.line)
        return table


def all_interactions(path: Path, role: str, names: Names) -> Given:
    """Users' interactions: user, item and, where there is one, rating."""
    return _read(path, role, names, ("user", "item"), ("rating",))


def interactions(path: Path, role: str, names: Names) -> Given:
    """The same, of a pair that is repeated the last row."""
    table = all_interactions(path, role, names)
    rows = table.rows.unique(["user", "item"], keep="last", maintain_order=True)
    if repeated := len(table.rows) - len(rows):
        table.taken.notes.append(f"{repeated:,} repeated pairs, the last row of each is used")
    return Given(rows, table.taken)


def lists(path: Path, role: str, names: Names) -> Given:
    """Recommendations: user, item, rank (from 1, best first) and, where there is one, score; no item twice in a list.

    The order of a user's list is that of `rank`, else of falling `score`, else of the rows.
    """
    table = _read(path, role, names, ("user", "item"), ("rank", "score"), unique=("user", "item"))
    if "rank" in table.rows.columns:
        key, note = pl.col("rank").rank("ordinal"), ""
    elif "score" in table.rows.columns:
        key, note = pl.col("score").rank("ordinal", descending=True), "no rank: lists are ordered by score"
    else:
        key, note = pl.int_range(1, pl.len() + 1), "no rank and no score: lists are in the order of their rows"
    table.taken.notes.extend(filter(None, [note]))
    return Given(table.rows.with_columns(rank=key.over("user").cast(pl.Int64)), table.taken)


def scores(path: Path, names: Names) -> Given:
    """Scores of pairs: user, item, score; they need not be of all pairs, and of none twice."""
    return _read(path, "scores", names, ("user", "item", "score"), unique=("user", "item"))


def pairs(path: Path, role: str, names: Names) -> Given:
    """Pairs of users: source and target, as text; of a repeated pair the first row."""
    table = _read(path, role, names, ("source", "target"))
    return Given(table.rows.unique(maintain_order=True), table.taken)


def attributes(path: Path, names: Names, wanted: tuple[str, ...]) -> Given:
    """What users are: `user`, each once, and a column of text classes (null: unknown) for every attribute.

    Numbers of more than `MOST_CLASSES` values become quarters; text of more, or of one, is left out unless asked for.

    wanted: the attributes that are audited; empty: every column that can be one.
    """
    user = str(role_column(path, "user", names))
    chosen = wanted or tuple(name for name in columns_of(path, [user]) if name != user)
    columns = {user: Column("id")} | {name: Column("any", may_be_empty=True) for name in chosen}
    lines, rows = rows_of(path, columns)
    require_unique(path, rows, [user], lines)
    classes, notes = {"user": rows[user]}, []
    for name in chosen:
        grouped, note = _classes(rows[name].cast(pl.String))
        if grouped is not None:
            classes[name] = grouped
        elif wanted:
            raise DataError(f"{path}: column {name!r}: {note}; it cannot be audited as an attribute")
        notes += [f"{name}: {note}"] if note else []
    if len(classes) == 1:
        raise DataError(f"{path}: no column is an attribute ({'; '.join(notes) or 'it has users alone'})")
    recognised = {"user": user} | {name: name for name in classes if name != "user"}
    return _given(pl.DataFrame(classes), "users", path, recognised, notes)


def canaries(path: Path) -> Given:
    """The file of `dprec audit canaries`: canary, witness, item and included (1: its coin put it in)."""
    columns = {name: Column("id") for name in ("canary", "witness", "item")} | {"included": Column("whole")}
    lines, rows = rows_of(path, columns)
    allow(path, rows, "included", pl.col("included").is_in([0, 1]), "0 or 1", lines)
    require_unique(path, rows, ["canary"], lines)
    return _given(rows, "canaries", path, {name: name for name in columns})


def vectors(path: Path, role: str, names: Names) -> Given:
    """A vector for every user, each once: `user`, and every other column as a number."""
    user = str(role_column(path, "user", names))
    numbers = [name for name in columns_of(path, [user]) if name != user]
    if not numbers:
        raise DataError(f"{path}:1: no column of numbers next to {user!r}")
    lines, rows = rows_of(path, {user: Column("id")} | {name: Column("number") for name in numbers})
    for name in numbers:
        require_finite(path, rows, name, lines)
    require_unique(path, rows, [user], lines)
    return _given(rows.rename({user: "user"}), role, path, {"user": user}, [f"{len(numbers)} numbers"])


class TextTable(NamedTuple):
    """A CSV file of interactions as it is, to write it again with other rows; `columns`: role -> its column."""

    rows: pl.DataFrame
    separator: str
    columns: Mapping[str, str]

    def write(self, path: Path, rows: pl.DataFrame) -> None:
        """Write these rows as the file has its own, for the owner alone."""
        with secret(path) as file:
            rows.write_csv(file, separator=self.separator)


def text_table(path: Path, names: Names) -> TextTable:
    """Read a CSV file of interactions as text, as strictly as `interactions` does."""
    columns = interactions(path, "train", names).taken.columns
    shape = form(path, wanted=columns.values())
    if shape.kind != "text" or not shape.header or len(shape.separator) > 1:
        raise DataError(f"{path}: canaries are added to CSV with a header; save the table as such")
    _, rows = read_table(path, None, dict.fromkeys(shape.names, Column("text", may_be_empty=True)))
    header = dict(zip(shape.names, shape.header, strict=True))
    recognised = {role: header[name] for role, name in columns.items()}
    named = rows.select(pl.col(name).replace("", None).alias(header[name]) for name in shape.names)
    return TextTable(named, shape.separator, recognised)


def _read(
    path: Path,
    what: str,
    names: Names,
    required: Sequence[Role],
    optional: Sequence[Role] = (),
    unique: Sequence[Role] = (),
) -> Given:
    recognised = role_columns(path, names, required, optional)
    lines, rows = rows_of(path, {name: Column("id" if role in IDS else "number") for role, name in recognised.items()})
    shape = form(path, wanted=recognised.values())
    for role, name in recognised.items():
        if role not in IDS:
            require_finite(path, rows, name, lines)
        elif shape.kind == "text" and not _usual([name], role) and rows[name].is_in([name]).any():
            raise DataError(f"{path}:1: {name!r} is a value of its column; add a first line that names the columns")
    rows = rows.rename({name: role for role, name in recognised.items()})
    if unique:
        require_unique(path, rows, list(unique), lines)
    notes = ["no header"] if shape.kind == "text" and not shape.header else []
    return _given(rows, what, path, recognised, notes)


def rows_of(path: Path, columns: Mapping[str, Column], at_least: int | None = None) -> tuple[pl.Series, pl.DataFrame]:
    """The wanted columns of a table by `read_table`."""
    names = columns_of(path, columns)
    for name in columns:
        if (times := names.count(name)) != 1:
            what = f"column {name!r} is there {times} times" if times else f"no column {name!r} (has {_quote(names)})"
            raise DataError(f"{path}:1: {what}")
    return read_table(path, None, columns, at_least)


def require_finite(path: Path, rows: pl.DataFrame, name: str, lines: pl.Series) -> None:
    """Refuse a column of numbers, or of numbers as text, in which one is none, or larger than `LARGEST`."""
    small = pl.col(name).cast(pl.Float64).abs() <= LARGEST
    allow(path, rows, name, small, f"a finite number of at most {LARGEST:g}", lines)


def columns_of(path: Path, wanted: Iterable[str] = ()) -> list[str]:
    """The names of a table's columns; by position if a wanted one is, where no name is usual."""
    shape = form(path)
    usual = not any(map(_is_value, shape.names)) and any(_usual(shape.names, role) for role in USUAL)
    return shape.names if usual else form(path, wanted=wanted).names


def named(path: Path, column: str) -> str | None:
    """What a table calls the column that an option names, perhaps by its position; None where it has none."""
    names = columns_of(path, [column])
    if column in names or not POSITION.fullmatch(column) or form(path).header:
        return column if column in names else None
    return dict(enumerate(names, 1)).get(int(column.removeprefix("column_")))


def role_column(path: Path, role: Role, names: Names, *, required: bool = True) -> str | None:
    """The column of that role, or None where it is not required."""
    header, asked = columns_of(path, names.columns.values()), names.columns.get(role)
    if asked is not None and (column := named(path, asked)):
        if column in header and any(map(_is_value, header)):
            raise DataError(f"{path}:1: looks like data ({_quote(header)}); say --{role}-column {BY_POSITION}")
        return column
    usual = _usual(header, role)
    if len(usual) > 1:
        raise DataError(f"{path}:1: {' and '.join(map(repr, usual))} may both be the {role}; say --{role}-column NAME")
    if not usual and required:
        which = f"no column {asked!r} and none" if asked is not None else "no column"
        if_data = f", or, if that line is data, {BY_POSITION}" if form(path).header else ""
        raise DataError(
            f"{path}:1: {which} is recognised as the {role} (has {_quote(header)}); say --{role}-column NAME{if_data}"
        )
    return usual[0] if usual else None


def role_columns(path: Path, names: Names, required: Sequence[Role], optional: Sequence[Role] = ()) -> dict[Role, str]:
    """Role -> its column, of the optional ones those that there are."""
    columns = {role: role_column(path, role, names, required=role in required) for role in (*required, *optional)}
    recognised = {role: column for role, column in columns.items() if column is not None}
    taken = list(recognised.values())
    if twice := [column for column in taken if taken.count(column) > 1]:
        roles = " and ".join(role for role, column in recognised.items() if column == twice[0])
        raise DataError(f"{path}: column {twice[0]!r} is taken for {roles}; name them")
    return recognised


def _is_value(name: str) -> bool:
    """Whether a field of a first line is a number or a time, and no name."""
    return is_number(name) or TIME.fullmatch(name) is not None


def _usual(header: list[str], role: Role) -> list[str]:
    words = USUAL[role].split()
    return [name for name in dict.fromkeys(header) if "".join(c for c in name.lower() if c not in " _-") in words]


def _quote(names: list[str]) -> str:
    return ", ".join(repr(name[:40]) for name in names[:8]) + (", ..." if len(names) > 8 else "")


def _given(rows: pl.DataFrame, role: str, path: Path, columns: Mapping[Any, str], notes: Sequence[str] = ()) -> Given:
    return Given(rows, File(role=role, path=str(path), rows=len(rows), columns=columns, notes=list(notes)))


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
    texts = [f"{cut:g}" for cut in cuts]
    labels = pl.Series([*(f"to {text}" for text in texts), f"above {texts[-1]}"])
    group = pl.Series(np.searchsorted(cuts, numbers.to_numpy())).set(numbers.is_null(), None)
    return labels.gather(group), f"numbers, grouped at {', '.join(texts)}"
