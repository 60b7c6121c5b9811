"""What users' attributes as word vectors must hold."""

from __future__ import annotations

import polars as pl

from tasks.contracts import Schema
from tasks.quality.counting import all_users, rows_of
from tasks.quality.rules import Table, between, not_null


def words(frame: pl.DataFrame, schema: Schema) -> list[Table]:
    """Attributes as word vectors (docs/methods.md §4): every number is finite and within [0, 1].

    A second table has one row per user, and finds users that are absent or repeated.

    Args:
        frame: user and columns (`contracts.features_schema`).
        schema: of the processed data.
    """
    numbers = [column for column in frame.columns if column != "user"]
    per_user = all_users(schema.n_users)
    per_user = per_user.with_columns(rows=rows_of(per_user, frame, ["user"]))
    return [
        Table(
            "features",
            frame,
            (
                *not_null("user", *numbers),
                between("user", 0, schema.n_users - 1),
                *(between(column, 0, 1) for column in numbers),
            ),
            ids=("user",),
        ),
        Table("features per user", per_user, (between("rows", 1, 1),), ids=("user",)),
    ]
