"""How many rows of a table break its rules, and which come first, however long the table is.

Tables are gone through as streams: what stays in memory is one number per row for rules of uniqueness, and the values
that a rule looks up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from tasks.quality.rules import Rule, Table

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
FIRST_ROWS = 10
"""How many failing rows a result names."""

SHOWN = 80
"""Characters of a failing value that are shown."""


@dataclass(frozen=True)
class Counts:
    """rows: of the table. broken: per rule, how many rows break it, or are too few or too many (`row_count`)."""

    rows: int
    broken: tuple[int, ...]


def count(table: Table) -> Counts:
    """Count the rows that break each rule: all rules in one pass, and one more for each rule of uniqueness."""
    frame = table.frame.lazy()
    types = frame.collect_schema()
    sums = {
        str(number): rule.violations(types).sum()
        for number, rule in enumerate(table.rules)
        if rule.kind not in ("unique", "row_count")
    }
    totals = frame.select(pl.len().alias("rows"), **sums).collect(engine="streaming").row(0, named=True)
    rows = totals["rows"]

    def broken(number: int, rule: Rule) -> int:
        match rule.kind:
            case "row_count":
                return count_misfits(rule, rows)
            case "unique":
                return int(repeated_values(frame, rule.columns, rows)["rows"].sum())
        return totals[str(number)]

    return Counts(rows, tuple(broken(number, rule) for number, rule in enumerate(table.rules)))


def count_misfits(rule: Rule, rows: int) -> int:
    """How many rows are too few or too many for a rule about their number."""
    assert rule.low is not None
    return max(0, int(rule.low) - rows) + (0 if rule.high is None else max(0, rows - int(rule.high)))


def repeated_values(frame: pl.LazyFrame, columns: Sequence[str], rows: int) -> pl.DataFrame:
    """The values of `columns` that several rows have, and how many rows have them (`rows`).

    Rows that have none of them are left out. Grouping a long table takes a hash table of all its rows; sorting one
    64-bit hash per row takes a fraction of that, and only the rows whose hash is repeated are grouped then, so that a
    collision of hashes is found out.

    Args:
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
    doubtful = pl.LazyFrame({"_hash": np.unique(hashes[1:][hashes[1:] == hashes[:-1]])})
    del hashes
    groups = hashed.join(doubtful, on="_hash", how="semi").group_by(columns).len("rows")
    return groups.filter(pl.col("rows") > 1).collect(engine="streaming")


def first_rows(table: Table, rule: Rule) -> tuple[list[int], list[str]]:
    """The first rows that break `rule`: their numbers, and in words which they are and what they hold."""
    if rule.kind == "row_count":
        return [], []
    frame = table.frame.lazy()
    types = frame.collect_schema()
    numbered = frame if "row" in types else frame.with_row_index("row")
    numbered = numbered.with_row_index("_place")
    if rule.kind == "unique":
        n_rows = frame.select(pl.len()).collect(engine="streaming").item()
        keys = repeated_values(frame, rule.columns, n_rows).lazy()
        failing = numbered.join(keys, on=rule.columns, how="semi", nulls_equal=True)
    else:
        failing = numbered.filter(rule.violations(types))
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


def stack(tables: Mapping[tuple, Frame], names: Sequence[str]) -> Frame:
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
