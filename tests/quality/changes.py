"""Small changes of a table, each a function that makes the changed one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from tests.quality.tables import drop, put, repeat

Change = Callable[[pl.DataFrame], pl.DataFrame]


def value(row: int, column: str, new: Any) -> Change:
    return lambda frame: put(frame, row, column, new)


def without(row: int) -> Change:
    return lambda frame: drop(frame, row)


def twice(row: int) -> Change:
    return lambda frame: repeat(frame, row)


def nobody(user: int) -> Change:
    return lambda frame: frame.filter(pl.col("user") != user)


def none(frame: pl.DataFrame) -> pl.DataFrame:
    return frame[:0]


def added(column: str, new: Any) -> Change:
    """One more row: the last, but for one value."""
    return lambda frame: pl.concat([frame, put(frame[-1:], 0, column, new)])
