"""The tables of what an untrusted recommender recalls of submissions: written by `train`, read by `attack-ratings`."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from tasks.models.replayed import Information, Replayed


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


INFORMATION = pa.schema(
    [
        pa.field("sender", pa.int32(), nullable=False),
        pa.field("subject", pa.int32(), nullable=False),
        pa.field("guess", pa.float64(), nullable=False),
        pa.field("gradient", pa.float64(), nullable=False),
        pa.field("row", pa.list_(pa.float64()), nullable=False),
    ]
)
"""Contract of `Information`; `row` is of H, with the sender's subjects in order as columns."""


def information_table(information: Information) -> tuple[pl.DataFrame, pa.Schema]:
    """The table, and its contract."""
    counts = np.unique(information.senders, return_counts=True)[1]
    sizes = np.repeat(counts, counts)
    rows = pl.Series("row", np.split(information.matrix, np.cumsum(sizes)[:-1]), dtype=pl.List(pl.Float64))
    names = {"sender": "senders", "subject": "subjects", "guess": "guess", "gradient": "gradient"}
    columns = {column: getattr(information, name) for column, name in names.items()}
    return pl.DataFrame(columns | {"row": rows}), INFORMATION
