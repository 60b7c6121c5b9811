"""Rules about one table, as data: a suite is a list of them, and `tasks.quality.runner` has them judged.

Every rule knows the rows that break it as a polars mask. Great Expectations gives the verdict; the masks name the
failing rows, and stand in for it on tables too long to hand over (see `counted`). Tests hold the two to agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

FIRST_ROWS = 10
"""How many failing rows a result names."""

Kind = Literal["not_null", "null", "between", "in_set", "unique", "not_blank", "row_count"]


EXPECTATIONS: dict[Kind, str] = {
    "not_null": "expect_column_values_to_not_be_null",
    "null": "expect_column_values_to_be_null",
    "between": "expect_column_values_to_be_between",
    "in_set": "expect_column_values_to_be_in_set",
    "unique": "expect_column_values_to_be_unique",
    "not_blank": "expect_column_values_to_match_regex",
    "row_count": "expect_table_row_count_to_be_between",
}
VISIBLE = r"\S"


@dataclass(frozen=True)
class Rule:
    """What must hold for some columns of a table, or for its number of rows.

    As in Great Expectations, only `not_null` and `null` look at missing values (null or NaN); all others skip them.
    """

    kind: Kind
    columns: tuple[str, ...]
    words: str
    """The rule as the end of a sentence that begins with the columns: `must be from 1 to 5`."""
    low: float | None = None
    high: float | None = None
    values: tuple[str | bool | float, ...] = ()

    @property
    def column(self) -> str | None:
        """The columns as one name; None for a rule about the whole table."""
        return ", ".join(self.columns) or None

    @property
    def expectation(self) -> str:
        """The name of the same rule in Great Expectations."""
        return "expect_compound_columns_to_be_unique" if len(self.columns) > 1 else EXPECTATIONS[self.kind]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of that expectation."""
        columns = {"column_list": list(self.columns)} if len(self.columns) > 1 else {"column": self.column}
        match self.kind:
            case "row_count":
                return {"min_value": self.low, "max_value": self.high}
            case "between":
                return columns | {"min_value": self.low, "max_value": self.high}
            case "in_set":
                return columns | {"value_set": list(self.values)}
            case "not_blank":
                return columns | {"regex": VISIBLE}
        return columns

    def broken(self, frame: pl.DataFrame) -> pl.Series:
        """Which rows break the rule: (n_rows,) bool; for a rule about the number of rows, all False."""
        if self.kind == "row_count":
            return pl.repeat(False, frame.height, eager=True)
        if self.kind == "unique":
            keys = frame.select(self.columns)
            return keys.is_duplicated() & ~keys.select(pl.all_horizontal(pl.all().is_null())).to_series()
        column = frame[self.columns[0]]
        missing = column.is_null()
        if column.dtype.is_float():
            missing |= column.is_nan().fill_null(False)
        if self.kind == "not_null":
            return missing
        if self.kind == "null":
            return ~missing
        return ~missing & ~self._holds(column).fill_null(True)

    def _holds(self, column: pl.Series) -> pl.Series:
        if self.kind == "in_set":
            return column.is_in(pl.Series(self.values, dtype=column.dtype).implode())
        if self.kind == "not_blank":
            return column.str.contains(VISIBLE)
        inside = pl.repeat(True, len(column), eager=True)
        if self.low is not None:
            inside &= column >= self.low
        if self.high is not None:
            inside &= column <= self.high
        return inside

    def count(self, frame: pl.DataFrame) -> int:
        """How many rows break the rule; for `row_count`, how many rows are too few or too many."""
        if self.kind != "row_count":
            return int(self.broken(frame).sum())
        assert self.low is not None
        too_many = 0 if self.high is None else max(0, frame.height - int(self.high))
        return max(0, int(self.low) - frame.height) + too_many


@dataclass(frozen=True)
class Table:
    """A table and what must hold for it.

    ids: the columns that say which row is meant when one fails.
    A column named `row`, where there is one, is the row's number in the file it came from; otherwise rows are numbered
    from 0 as they stand in `frame`.
    """

    name: str
    frame: pl.DataFrame
    rules: tuple[Rule, ...]
    ids: tuple[str, ...] = ()


def not_null(*columns: str) -> list[Rule]:
    """One rule per column: no value is null or NaN."""
    return [Rule("not_null", (column,), "must not be missing") for column in columns]


def null(column: str, words: str) -> Rule:
    """The column has no value at all."""
    return Rule("null", (column,), words)


def between(column: str, low: float | None, high: float | None, words: str = "") -> Rule:
    """Every number is at least `low` and at most `high`; None leaves that side open."""
    return Rule("between", (column,), words or _range_words(low, high), low=low, high=high)


def in_set(column: str, values: Iterable[str | float], words: str = "") -> Rule:
    """Every value is one of `values`."""
    values = tuple(values)
    listed = ", ".join(map(str, values[:8])) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
    return Rule("in_set", (column,), words or f"must be one of: {listed}", values=values)


def holds(column: str, words: str) -> Rule:
    """Every value of a boolean column is true; `words` say what the column tells."""
    return Rule("in_set", (column,), words, values=(True,))


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


def counted(table: Table) -> Table:
    """A table of one row that holds, for each rule of `table` in order, how many rows break it: all must be 0.

    This is what is judged instead of a table so long that handing it over whole would cost more than it tells.
    """
    names = [f"{number}. {rule.column or 'table'} {rule.words}" for number, rule in enumerate(table.rules, start=1)]
    counts = {name: [rule.count(table.frame)] for name, rule in zip(names, table.rules, strict=True)}
    return Table(table.name, pl.DataFrame(counts), tuple(between(name, 0, 0) for name in names))


def first_rows(table: Table, rule: Rule) -> tuple[list[int], list[str]]:
    """The first rows that break `rule`: their numbers, and in words which they are and what they hold."""
    wanted = rule.broken(table.frame).arg_true().head(FIRST_ROWS)
    rows = table.frame if "row" in table.frame.columns else table.frame.with_row_index("row")
    rows = rows[wanted.to_list()]
    shown = [column for column in rule.columns if column not in table.ids]
    texts = []
    for row in rows.select("row", *table.ids, *shown).iter_rows(named=True):
        which = ", ".join(f"{column}={row[column]}" for column in table.ids)
        what = ", ".join(f"{column} is {row[column]!r}" for column in shown)
        texts.append(f"row {row['row']}" + (f" ({which})" if which else "") + (f": {what}" if what else ""))
    return rows["row"].to_list(), texts


def _range_words(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"must be {low:.10g}" if low == high else f"must be from {low:.10g} to {high:.10g}"
    return f"must be {low:.10g} or more" if low is not None else f"must be {high:.10g} or less"
