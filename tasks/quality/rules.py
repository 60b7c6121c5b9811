"""Rules about one table: a suite is a list of them, and `tasks.quality.runner` has them judged.

A rule about rows is a polars expression, by which those that break it are counted and named however long the table is:
it is gone through as a stream, and what stays in memory is one number per row for rules of uniqueness, and the values
that a rule looks up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

import numpy as np
import polars as pl
import polars.selectors as cs

from tasks.core.errors import DamagedError

TIMESTAMPS = (631_152_000, 4_102_444_800)
"""1990 to 2100 in seconds since 1970: milliseconds, or days, fall far outside."""
KEYS = ("setting", "seed")
"""Of what a run released."""
FIRST_ROWS = 10
"""How many failing rows a result names."""
SHOWN = 80
"""Characters of a failing value that are shown."""
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
FLOAT32_SLACK = 1e-6
"""Relative: bounds are computed in double precision, what they bound is stored in single."""


@dataclass(frozen=True)
class Rule:
    """What must hold for some columns of a table, or for its number of rows."""

    kind: str
    """What the verdict calls it."""
    columns: tuple[str, ...]
    words: str
    """The rule as the end of a sentence that begins with the columns: `must be from 1 to 5`."""
    test: pl.Expr | None = field(default=None, compare=False)
    """True for every row that is right, null for one that is not looked at; None: no row breaks the rule by itself."""
    misfits: pl.Expr | None = field(default=None, compare=False)
    """Of `row_count`: how many rows are too few or too many."""

    @property
    def column(self) -> str | None:
        """The columns as one name; None for a rule about the whole table."""
        return ", ".join(self.columns) or None

    @property
    def violations(self) -> pl.Expr:
        """Which rows break the rule, never null."""
        assert self.test is not None, "not about single rows"
        return ~self.test.fill_null(True)


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
    return [Rule("not_null", (column,), "must not be missing", _present(column)) for column in columns]


def _present(column: str) -> pl.Expr:
    """Neither null nor, of numbers that can be, NaN."""
    return pl.all_horizontal(pl.col(column).is_not_null(), (cs.by_name(column) & cs.float()).is_not_nan())


def ids(**sizes: int) -> list[Rule]:
    """Ids from 0: column -> how many there are. None is missing."""
    return [*not_null(*sizes), *(between(column, 0, size - 1) for column, size in sizes.items())]


def between(column: str, low: float | None, high: float | None, words: str = "") -> Rule:
    """Every number is at least `low` and at most `high`; None leaves that side open. What is missing is skipped."""
    inside = pl.col(column).is_between(-inf if low is None else low, inf if high is None else high)
    return Rule("between", (column,), words or range_words(low, high), pl.when(_present(column)).then(inside))


def in_set(column: str, values: Iterable[str | float], words: str = "") -> Rule:
    """Every value is one of `values`, which are of the column's type, or missing."""
    values = tuple(values)
    listed = ", ".join(map(str, values[:8])) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
    known = pl.when(_present(column)).then(pl.col(column).is_in(values))
    return Rule("in_set", (column,), words or f"must be one of: {listed}", known)


def holds(columns: str | tuple[str, ...], test: pl.Expr, words: str) -> Rule:
    """`test` is true, or null, for every row. It looks at one row at a time; `columns` are shown when it is false."""
    return Rule("holds", (columns,) if isinstance(columns, str) else columns, words, test)


def finite(column: str) -> Rule:
    """No number is NaN or infinite; it may be null."""
    return holds(column, pl.col(column).is_finite(), "must be a finite number")


def among(column: str, values: pl.Series, words: str, where: pl.Expr | None = None) -> Rule:
    """Every value occurs among `values`, which may be many; `where` says in which rows, if not in all."""
    is_known = pl.col(column).is_in(values.drop_nulls().unique().implode())
    return holds(column, is_known if where is None else pl.when(where).then(is_known), words)


def labels(columns: Iterable[str]) -> list[Rule]:
    """One rule per column: 0 or 1, or null where it is not known."""
    return [in_set(column, (0, 1), "must be 0 or 1") for column in columns]


def unique(*columns: str) -> Rule:
    """No two rows have the same values in these columns (every row of such a group breaks the rule)."""
    return Rule("unique", columns, "must be unique" if len(columns) == 1 else "must be unique together")


def not_blank(column: str) -> Rule:
    """Every string has a character other than white space; it may be null."""
    return Rule("not_blank", (column,), "must not be blank", pl.col(column).str.contains(r"\S"))


def row_count(low: int, high: int | None = None) -> Rule:
    """The table has at least `low` rows, and at most `high` if that is given."""
    words = f"must have {low} to {high} rows"
    if high is None:
        words = "must have rows" if low == 1 else f"must have {low} rows or more"
    elif high == low:
        words = f"must have {low} rows"
    rows = pl.len().cast(pl.Int64)
    misfits = pl.max_horizontal(0, low - rows, *([] if high is None else [rows - high]))
    return Rule("row_count", (), words, misfits=misfits)


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
        raise DamagedError(
            f"schema.json: anchors join two networks, not {len(networks)}; run the stage that wrote it again"
        )
    return networks[0], networks[1]


def file_table(files: Iterable[str]) -> Table:
    """The files of a check, each of which is there."""
    frame = pl.DataFrame({"file": [*files]}, {"file": pl.String}).with_columns(problem=pl.lit(None, pl.String))
    words = "must be empty: every file is there and can be read"
    return Table("files", frame, (Rule("null", ("problem",), words, pl.col("problem").is_null()),), ids=("file",))


def count(table: Table) -> tuple[int, list[int]]:
    """The table's rows, and how many break each rule, or are too few or too many (`row_count`).

    All rules are counted in one pass, and one more for each rule of uniqueness.
    """
    frame = table.frame.lazy()
    broken = {
        str(number): rule.violations.sum() if rule.misfits is None else rule.misfits
        for number, rule in enumerate(table.rules)
        if rule.kind != "unique"
    }
    totals = frame.select(pl.len().alias("rows"), **broken).collect(engine="streaming").row(0, named=True)
    rows = totals["rows"]
    return rows, [
        totals[str(number)] if str(number) in broken else int(repeated_values(frame, rule.columns, rows)["rows"].sum())
        for number, rule in enumerate(table.rules)
    ]


def repeated_values(frame: pl.LazyFrame, columns: Sequence[str], rows: int) -> pl.DataFrame:
    """The values of `columns` that several rows have, and how many rows have them (`rows`).

    Rows that have none of them are left out. Grouping a long table takes a hash table of all its rows; sorting one
    64-bit hash per row takes a fraction of that, and only the rows whose hash is repeated are grouped then, so that a
    collision of hashes is found out.

    rows: how many `frame` has.
    """
    some = frame.select(columns).filter(~pl.all_horizontal(pl.col(columns).is_null()))
    hashed = some.with_columns(_hash=pl.struct(columns).hash(0))
    hashes = np.empty(rows, np.uint64)
    end = 0
    for batch in hashed.select("_hash").collect_batches(engine="streaming", maintain_order=False):
        start, end = end, end + batch.height
        hashes[start:end] = batch["_hash"].to_numpy()
    hashes = hashes[:end]
    hashes.sort()
    doubtful = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    del hashes
    if not doubtful.size:
        return some.head(0).with_columns(rows=pl.lit(0, pl.UInt32)).collect()
    repeated = hashed.join(pl.LazyFrame({"_hash": doubtful}), on="_hash", how="semi")
    groups = repeated.group_by(columns).len("rows")
    return groups.filter(pl.col("rows") > 1).collect(engine="streaming")


def first_rows(table: Table, rule: Rule) -> tuple[list[int], list[str]]:
    """The first rows that break `rule`: their numbers, and in words which they are and what they hold."""
    if rule.misfits is not None:
        return [], []
    frame = table.frame.lazy()
    numbered = frame if "row" in frame.collect_schema() else frame.with_row_index("row")
    numbered = numbered.with_row_index("_place")
    if rule.kind == "unique":
        n_rows = frame.select(pl.len()).collect(engine="streaming").item()
        keys = repeated_values(frame, rule.columns, n_rows).lazy()
        failing = numbered.join(keys, on=rule.columns, how="semi", nulls_equal=True)
    else:
        failing = numbered.filter(rule.violations)
    columns = [column for column in rule.columns if column not in table.ids]
    failing = failing.select("_place", "row", *table.ids, *columns)
    rows = failing.bottom_k(FIRST_ROWS, by="_place").sort("_place").collect(engine="streaming")
    texts = []
    for row in rows.iter_rows(named=True):
        which = ", ".join(f"{column}={row[column]}" for column in table.ids)
        cells = ", ".join(f"{column} is {_shorten(row[column])}" for column in columns)
        texts.append(f"row {row['row']}" + (f" ({which})" if which else "") + (f": {cells}" if cells else ""))
    return rows["row"].to_list(), texts


def rows_of(frame: pl.DataFrame, rows: pl.DataFrame, keys: Sequence[str]) -> pl.Series:
    """For each row of `frame`, how many of `rows` have the same `keys`: (n_rows,) uint32."""
    counts = rows.group_by(keys).len("rows")
    joined = frame.select(keys).join(counts, on=keys, how="left", maintain_order="left", nulls_equal=True)
    return joined["rows"].fill_null(0)


def count_table(name: str, expected: pl.DataFrame, rows: pl.DataFrame, ids: Sequence[str], *rules: Rule) -> Table:
    """What is expected, with `rows`, how many there are of each: rules about these find what is absent or repeated."""
    frame = expected.with_columns(rows=rows_of(expected, rows, ids))
    return Table(name, frame, rules, ids=tuple(ids))


def stack(tables: Mapping[tuple, Frame], names: Sequence[str] = KEYS) -> Frame:
    """All tables below one another, with their key in columns `names` and the row number within each in `row`."""
    return pl.concat(
        table.with_row_index("row").with_columns(
            pl.lit(value, dtype=pl.String if isinstance(value, str) else pl.Int64).alias(name)
            for name, value in zip(names, key, strict=True)
        )
        for key, table in tables.items()
    )


def each_run(runs: Iterable[tuple[str, int]], rows: pl.DataFrame | None = None) -> pl.DataFrame:
    """setting and seed of every run; with the rows of a table, each for every run."""
    frame = pl.DataFrame(list(runs), schema={"setting": pl.String, "seed": pl.Int64}, orient="row")
    return frame if rows is None else frame.join(rows, how="cross")


def all_users(n_users: int) -> pl.DataFrame:
    """One row per user, by id."""
    return pl.DataFrame({"user": pl.int_range(n_users, dtype=pl.Int32, eager=True)})


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
