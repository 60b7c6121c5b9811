"""Rows are counted as a stream; the counts are those of going through the rows one by one."""

import math
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.quality.rules import (
    FIRST_ROWS,
    Rule,
    Table,
    among,
    between,
    count,
    finite,
    first_rows,
    holds,
    in_set,
    not_blank,
    not_null,
    repeated_values,
    row_count,
    unique,
)

NUMBERS = pl.Series([0, 2, 9])
BITS = (0.0, 1.0)
CASES: list[tuple[Rule, Any]] = [
    (row_count(3, 5), None),
    (row_count(4), None),
    (not_null("n")[0], lambda row: row["n"] is None),
    (not_null("x")[0], lambda row: row["x"] is None or math.isnan(row["x"])),
    (not_null("s")[0], lambda row: row["s"] is None),
    (between("n", 0, 2), lambda row: row["n"] is not None and not 0 <= row["n"] <= 2),
    (between("n", None, 1), lambda row: row["n"] is not None and row["n"] > 1),
    (between("x", 0, None), lambda row: row["x"] is not None and row["x"] < 0),
    (between("x", -1.5, 1.5), lambda row: row["x"] is not None and abs(row["x"]) > 1.5),
    (in_set("n", [0, 1]), lambda row: row["n"] is not None and row["n"] not in (0, 1)),
    (in_set("x", BITS), lambda row: row["x"] is not None and not math.isnan(row["x"]) and row["x"] not in BITS),
    (in_set("s", ["a", "b"]), lambda row: row["s"] is not None and row["s"] not in ("a", "b")),
    (not_blank("s"), lambda row: row["s"] is not None and not re.search(r"\S", row["s"])),
    (finite("x"), lambda row: row["x"] is not None and not math.isfinite(row["x"])),
    (among("n", NUMBERS, "must be known"), lambda row: row["n"] is not None and row["n"] not in (0, 2, 9)),
    (
        among("n", NUMBERS, "must be known where s is a", where=pl.col("s") == "a"),
        lambda row: row["s"] == "a" and row["n"] is not None and row["n"] not in (0, 2, 9),
    ),
    (
        holds(("n", "m"), pl.col("n") != pl.col("m"), "must differ"),
        lambda row: row["n"] is not None and row["n"] == row["m"],
    ),
    (unique("n"), ("n",)),
    (unique("s"), ("s",)),
    (unique("n", "m"), ("n", "m")),
    (unique("s", "n"), ("s", "n")),
]
RULES = tuple(rule for rule, _ in CASES)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    size = draw(st.integers(0, 12))

    def column(values: st.SearchStrategy[Any], kind: type[pl.DataType]) -> pl.Series:
        return pl.Series(draw(st.lists(st.none() | values, min_size=size, max_size=size)), dtype=kind)

    numbers = st.sampled_from([-1, 0, 1, 2, 2**40]) | st.integers(-3, 3)
    floats = st.sampled_from([-2.0, -1.5, 0.0, 1.0, 1.5, 3.0, math.nan, math.inf, -math.inf])
    return pl.DataFrame(
        {
            "n": column(numbers, pl.Int64),
            "m": column(st.integers(-1, 1), pl.Int32),
            "x": column(floats, pl.Float32),
            "s": column(st.sampled_from(["a", "b", "c", "", " \t", "é"]), pl.String),
        }
    )


def slowly(frame: pl.DataFrame, test: Any) -> list[int]:
    """The rows that break a rule about rows, found one by one."""
    rows = frame.rows(named=True)
    if callable(test):
        return [number for number, row in enumerate(rows) if test(row)]
    keys = [tuple(row[column] for column in test) for row in rows]
    times = Counter(keys)
    return [number for number, key in enumerate(keys) if times[key] > 1 and any(part is not None for part in key)]


@given(frames())
def test_rows_are_counted_and_named_as_when_gone_through_one_by_one(frame: pl.DataFrame) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        frame.write_parquet(path, row_group_size=3)
        table = Table("t", pl.scan_parquet(path), RULES)
        rows, counts = count(table)
        assert rows == frame.height
        assert (rows, counts) == count(Table("t", frame, RULES))
        for (rule, test), actual in zip(CASES, counts, strict=True):
            if test is None:
                continue
            failing = slowly(frame, test)
            assert (rule.words, actual) == (rule.words, len(failing))
            if failing:
                assert first_rows(table, rule)[0] == failing[:FIRST_ROWS]
        assert counts[:2] == [max(0, 3 - rows) + max(0, rows - 5), max(0, 4 - rows)]


def test_colliding_hashes_are_not_taken_for_equal_values(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"a": [1, 2, 3, 1, None, None], "b": ["x", "x", "y", "x", None, None]})
    monkeypatch.setattr(pl.Expr, "hash", lambda expression, *_: expression.is_null().cast(pl.UInt64))
    actual = repeated_values(frame.lazy(), ["a", "b"], frame.height)
    assert actual.rows(named=True) == [{"a": 1, "b": "x", "rows": 2}]


def test_equal_values_in_distant_parts_of_a_long_file_are_found(tmp_path: Path) -> None:
    """Many row groups, so that several are read at once."""
    n = 300_000
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"user": rng.permutation(n), "item": [f"item {k}" for k in range(n)], "x": np.zeros(n)})
    again = [7, 150_000, 299_999]
    frame = pl.concat([frame, frame[again]]).with_columns(pl.Series("x", np.arange(n + 3) % 1000 / 999.5))
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=10_000)
    rules = (unique("user", "item"), unique("user"), between("x", 0, 0.999))
    table = Table("t", pl.scan_parquet(tmp_path / "t.parquet"), rules, ids=("item",))
    assert count(table)[1] == [6, 6, 300]
    rows, texts = first_rows(table, rules[0])
    assert rows == [*again, n, n + 1, n + 2]
    assert texts[0] == f"row 7 (item=item 7): user is {frame['user'][7]}"
    assert first_rows(table, rules[2])[0] == [999 + 1000 * k for k in range(FIRST_ROWS)]


def test_a_rule_about_a_whole_table_is_not_one_about_rows() -> None:
    for rule in (unique("x"), row_count(1)):
        with pytest.raises(AssertionError, match="not about single rows"):
            _ = rule.violations
    assert first_rows(Table("t", pl.DataFrame({"x": [1]}), (row_count(2),)), row_count(2)) == ([], [])
