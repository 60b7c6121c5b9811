"""Small changes of a table, each a function that makes the changed one."""

from collections.abc import Callable
from typing import Any

import polars as pl

from tests.quality.tables import SCHEMA

Change = Callable[[pl.DataFrame], pl.DataFrame]


def put(frame: pl.DataFrame, row: int, column: str, new: Any) -> pl.DataFrame:
    values = frame[column].to_list()
    values[row] = new
    return frame.with_columns(pl.Series(column, values, dtype=frame[column].dtype))


def value(row: int, column: str, new: Any) -> Change:
    return lambda frame: put(frame, row, column, new)


def without(row: int) -> Change:
    return lambda frame: pl.concat([frame[:row], frame[row + 1 :]])


def twice(row: int) -> Change:
    return lambda frame: pl.concat([frame, frame[row : row + 1]])


def nobody(user: int) -> Change:
    return lambda frame: frame.filter(pl.col("user") != user)


def none(frame: pl.DataFrame) -> pl.DataFrame:
    return frame[:0]


def added(column: str, new: Any) -> Change:
    """One more row: the last, but for one value."""
    return lambda frame: pl.concat([frame, put(frame[-1:], 0, column, new)])


def reported_everything(frame: pl.DataFrame) -> pl.DataFrame:
    """User 3 gets a value in every feature, where at most 3 of the 4 are sampled."""
    for column in SCHEMA.columns:
        frame = put(frame, 3, column, 1.0)
    return frame


def only_tested(frame: pl.DataFrame) -> pl.DataFrame:
    """All interactions of user 4 are moved to the test."""
    return frame.with_columns(split=pl.when(pl.col("user") == 4).then(pl.lit("test")).otherwise("split"))


def fold_skipped(frame: pl.DataFrame) -> pl.DataFrame:
    """Folds 0, 1, 2, 3 and 5."""
    return frame.with_columns(pl.col("fold").replace(4, 5))


def one_fold(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("fold") * 0)
