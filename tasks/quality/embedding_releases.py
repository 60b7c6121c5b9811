"""What the released embeddings of a network's users, and word vectors, must hold (DP-CroSUE, docs/methods.md §6)."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tasks.contracts import Schema
from tasks.errors import DataError
from tasks.quality.counting import all_users, count_table, each_run
from tasks.quality.rules import Table, between, holds, not_null, row_count, unique

KEYS = ("setting", "seed")


def embedding_releases(
    released: Mapping[tuple[str, int], pl.LazyFrame | pl.DataFrame], schema: Schema, prefix: str
) -> list[Table]:
    """Embeddings of one network that one experiment released, all settings and seeds in one table.

    Every user has one row of finite numbers, and within a setting all rows are equally long. A second table has one row
    per setting, seed and user, and finds users without a row or with several. Vectors are not kept: of each row the
    table has its `width` and how many numbers are not finite (`infinite`).

    Args:
        released: (setting, seed) -> node and vector (`contracts.embeddings_schema`), scanned or in memory.
        schema: of the network, whose users are the nodes.
        prefix: what the names of its tables begin with, such as `foursquare/`.

    Raises:
        DataError: a table does not have just these columns, or vectors that are no arrays of 32-bit numbers.
    """
    frame = pl.concat(_summed_up(table.lazy(), which) for which, table in released.items()).collect(engine="streaming")
    widths = frame.group_by("setting").agg(pl.col("width").first().alias("first_width"))
    frame = frame.join(widths, on="setting", how="left", maintain_order="left")
    per_user = each_run(released, all_users(schema.n_users)).rename({"user": "node"})
    name = f"{prefix}embeddings"
    return [
        Table(
            name,
            frame,
            (
                row_count(1),
                *not_null("node", "infinite"),
                between("node", 0, schema.n_users - 1),
                between("infinite", 0, 0, "must be 0: all numbers of a vector are finite"),
                between("width", 1, None, "must be 1 or more: a vector has numbers"),
                holds("width", pl.col("width") == pl.col("first_width"), "must be the same in all rows of a setting"),
                unique(*KEYS, "node"),
            ),
            ids=(*KEYS, "node"),
        ),
        count_table(
            f"{name} per user",
            per_user,
            frame,
            [*KEYS, "node"],
            row_count(1),
            between("rows", 1, 1, "must be 1: every user has one vector"),
        ),
    ]


def _summed_up(table: pl.LazyFrame, which: tuple[str, int]) -> pl.LazyFrame:
    """Row number, setting, seed, node, and of each vector its width and how many of its numbers are not finite."""
    setting, seed = which
    kinds = table.collect_schema()
    kind = kinds.get("vector")
    if kinds.names() != ["node", "vector"] or not isinstance(kind, pl.Array) or kind.inner != pl.Float32:
        raise DataError(
            f"embeddings of {setting} seed {seed}: columns {dict(kinds)} are not nodes and arrays of 32-bit numbers; "
            "run train again"
        )
    finite = pl.element().is_finite().fill_null(False)
    infinite = pl.col("vector").arr.eval(~finite).arr.sum().cast(pl.Int64) if kind.size else pl.lit(0, pl.Int64)
    return table.with_row_index("row").select(
        "row",
        "node",
        setting=pl.lit(setting),
        seed=pl.lit(seed, dtype=pl.Int64),
        width=pl.lit(kind.size, dtype=pl.Int64),
        infinite=infinite,
    )


def words(frame: pl.DataFrame, schema: Schema) -> list[Table]:
    """Attributes as word vectors (docs/methods.md §4): every number is finite and within [0, 1].

    A second table has one row per user, and finds users that are absent or repeated.

    Args:
        frame: user and columns (`contracts.features_schema`).
        schema: of the processed data.
    """
    numbers = [column for column in frame.columns if column != "user"]
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
        count_table("features per user", all_users(schema.n_users), frame, ["user"], between("rows", 1, 1)),
    ]
