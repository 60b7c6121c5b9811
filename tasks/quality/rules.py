"""Rules about one table, as data: a suite is a list of them, and `tasks.quality.runner` has them judged.

Every rule knows the rows that break it as a polars expression, by which they are counted and named
(`tasks.quality.counting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from tasks.errors import DataError

Kind = Literal["not_null", "null", "between", "in_set", "unique", "not_blank", "holds", "row_count"]
TIMESTAMPS = (631_152_000, 4_102_444_800)
"""1990 to 2100 in seconds since 1970: milliseconds, or days, fall far outside."""
LABELS = (0, 1)
FLOAT32_SLACK = 1e-6
"""Relative: bounds are computed in double precision, what they bound is stored in single."""


@dataclass(frozen=True)
class Rule:
    """What must hold for some columns of a table, or for its number of rows.

    Only `not_null` and `null` look at missing values (null or NaN); all others skip them.
    """

    kind: Kind
    columns: tuple[str, ...]
    words: str
    """The rule as the end of a sentence that begins with the columns: `must be from 1 to 5`."""
    low: float | None = None
    high: float | None = None
    values: tuple[str | bool | float, ...] = ()
    test: pl.Expr | None = field(default=None, compare=False)
    """Of `holds`: true for every row that is right, null for one that is not looked at."""

    @property
    def column(self) -> str | None:
        """The columns as one name; None for a rule about the whole table."""
        return ", ".join(self.columns) or None

    def violations(self, types: Mapping[str, pl.DataType]) -> pl.Expr:
        """Which rows break the rule, never null; not for `unique` and `row_count`, which no row breaks by itself.

        Args:
            types: of the table's columns.
        """
        if self.test is not None:
            return ~self.test.fill_null(True)
        [name] = self.columns
        column = pl.col(name)
        missing = column.is_null()
        if types[name].is_float():
            missing = missing | column.is_nan().fill_null(False)
        if self.kind == "not_null":
            return missing
        if self.kind == "null":
            return ~missing
        return ~missing & ~self._holds(column, types[name]).fill_null(True)

    def _holds(self, column: pl.Expr, kind: pl.DataType) -> pl.Expr:
        match self.kind:
            case "in_set":
                return column.is_in(pl.Series(self.values, dtype=kind).implode())
            case "not_blank":
                return column.str.contains(r"\S")
            case "between":
                inside = pl.lit(True)
                if self.low is not None:
                    inside = inside & (column >= self.low)
                return inside if self.high is None else inside & (column <= self.high)
        raise ValueError(f"{self.kind} is not about single rows")


@dataclass(frozen=True)
class Table:
    """A table and what must hold for it; a lazy one may be of any length, and is never held in memory whole.

    ids: the columns that say which row is meant when one fails.
    A column named `row`, where there is one, is the row's number in the file it came from; otherwise rows are numbered
    from 0 as they stand in `frame`.
    """

    name: str
    frame: pl.LazyFrame | pl.DataFrame
    rules: tuple[Rule, ...]
    ids: tuple[str, ...] = ()


def not_null(*columns: str) -> list[Rule]:
    """One rule per column: no value is null or NaN."""
    return [Rule("not_null", (column,), "must not be missing") for column in columns]


def ids(**sizes: int) -> list[Rule]:
    """Ids from 0: column -> how many there are. None is missing."""
    return [*not_null(*sizes), *(between(column, 0, size - 1) for column, size in sizes.items())]


def null(column: str, words: str) -> Rule:
    """The column has no value at all."""
    return Rule("null", (column,), words)


def between(column: str, low: float | None, high: float | None, words: str = "") -> Rule:
    """Every number is at least `low` and at most `high`; None leaves that side open."""
    return Rule("between", (column,), words or range_words(low, high), low=low, high=high)


def in_set(column: str, values: Iterable[str | float], words: str = "") -> Rule:
    """Every value is one of `values`."""
    values = tuple(values)
    listed = ", ".join(map(str, values[:8])) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
    return Rule("in_set", (column,), words or f"must be one of: {listed}", values=values)


def holds(columns: str | tuple[str, ...], test: pl.Expr, words: str) -> Rule:
    """`test` is true, or null, for every row. It looks at one row at a time; `columns` are shown when it is false."""
    return Rule("holds", (columns,) if isinstance(columns, str) else columns, words, test=test)


def finite(column: str) -> Rule:
    """No number is NaN or infinite; it may be null."""
    return holds(column, pl.col(column).is_finite(), "must be a finite number")


def among(column: str, values: pl.Series, words: str, where: pl.Expr | None = None) -> Rule:
    """Every value occurs among `values`, which may be many; `where` says in which rows, if not in all."""
    is_known = pl.col(column).is_in(values.drop_nulls().unique().implode())
    return holds(column, is_known if where is None else pl.when(where).then(is_known), words)


def unique(*columns: str) -> Rule:
    """No two rows have the same values in these columns (every row of such a group breaks the rule)."""
    return Rule("unique", columns, "must be unique" if len(columns) == 1 else "must be unique together")


def not_blank(column: str) -> Rule:
    """Every string has a character other than white space."""
    return Rule("not_blank", (column,), "must not be blank")


def row_count(low: int, high: int | None = None) -> Rule:
    """The table has at least `low` rows, and at most `high` if that is given."""
    words = f"must have {low} to {high} rows"
    if high is None:
        words = "must have rows" if low == 1 else f"must have {low} rows or more"
    elif high == low:
        words = f"must have {low} rows"
    return Rule("row_count", (), words, low=low, high=high)


def range_words(low: float | None, high: float | None) -> str:
    """`must be from 1 to 5`, or what there is of it."""
    if low is not None and high is not None:
        return f"must be {low:.10g}" if low == high else f"must be from {low:.10g} to {high:.10g}"
    return f"must be {low:.10g} or more" if low is not None else f"must be {high:.10g} or less"


def seconds(column: str) -> Rule:
    """Time stamps, where there are any, are seconds."""
    return between(column, *TIMESTAMPS, words="must be seconds since 1970, between 1990 and 2100")


def finite_vectors(column: str) -> list[Rule]:
    """Every row has a vector, and all its numbers are finite."""
    vector = pl.col(column)
    numbers = vector.arr.eval(pl.element().is_finite().fill_null(False)).arr.all()
    return [
        holds(column, vector.is_not_null(), "must not be missing"),
        holds(column, numbers, "must have finite numbers only"),
    ]


def network_pair(networks: tuple[str, ...]) -> tuple[str, str]:
    """The networks that anchors join.

    Raises:
        DataError: there are not two.
    """
    if len(networks) != 2:
        raise DataError(
            f"schema.json: anchors join two networks, not {len(networks)}; run the stage that wrote it again"
        )
    return networks[0], networks[1]


def file_table(problems: Mapping[str, str | None]) -> Table:
    """The files of a check: file -> why it cannot be used, or None."""
    frame = pl.DataFrame(
        {"file": list(problems), "problem": list(problems.values())}, schema={"file": pl.String, "problem": pl.String}
    )
    return Table(
        "files", frame, (null("problem", "must be empty: every file is there and can be read"),), ids=("file",)
    )
