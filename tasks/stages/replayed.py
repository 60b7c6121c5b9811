"""The table of what an untrusted recommender recalls of submissions: trained by `train`, read by `attack-ratings`."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from tasks.models.replayed import Replayed


def schema(size: int) -> pa.Schema:
    """Contract of the table; the columns, with vectors of `size` numbers, are those of `Replayed`."""
    vector = pa.list_(pa.float32(), size)
    names = ("first", "first_variance", "first_items", "expected", "along")
    ids = [pa.field(name, pa.int32(), nullable=False) for name in ("sender", "subject")]
    return pa.schema(ids + [pa.field(name, vector, nullable=False) for name in names])


def table(replayed: Replayed) -> tuple[pl.DataFrame, pa.Schema]:
    """The table, and its contract."""
    columns = dict(vars(replayed))
    ids = {"sender": columns.pop("senders"), "subject": columns.pop("subjects")}
    return pl.DataFrame(ids | columns), schema(replayed.first.shape[1])
