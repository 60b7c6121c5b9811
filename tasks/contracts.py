"""The tables that stages hand to one another: Arrow schemas, and reading and writing them as Parquet (zstd).

Every table has dense int32 ids from 0 for users and items. `read` and `write` refuse a table whose columns or
types differ from its contract, so a stage can rely on what it reads; what a table must *mean* (ranges, uniqueness)
is judged by the expectation suites of `tasks.quality`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from tasks.errors import DataError

SPLITS = ("train", "valid", "test")

INTERACTIONS = pa.schema(
    [
        pa.field("user", pa.int32(), nullable=False),
        pa.field("item", pa.int32(), nullable=False),
        pa.field("rating", pa.float32()),
        pa.field("timestamp", pa.int64()),  # seconds since 1970
        pa.field("split", pa.string(), nullable=False),  # one of SPLITS
    ]
)
ID_MAP = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("original", pa.string(), nullable=False)])
RECOMMENDATIONS = pa.schema(
    [
        pa.field("user", pa.int32(), nullable=False),
        pa.field("rank", pa.int32(), nullable=False),  # 1..K
        pa.field("item", pa.int32(), nullable=False),
        pa.field("score", pa.float32(), nullable=False),
    ]
)
METRICS = pa.schema(
    [
        pa.field("suite", pa.string(), nullable=False),
        pa.field("experiment", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("setting", pa.string(), nullable=False),  # "base", or what a sweep point or an attack varies
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("k", pa.int32()),  # cut-off of a top-K metric, null otherwise
        pa.field("value", pa.float64(), nullable=False),
    ]
)


class Feature(BaseModel):
    """One user feature: a numeric column, or a categorical one whose categories become a one-hot block."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: Literal["numeric", "categorical"]
    categories: tuple[str, ...] = ()
    """Categories in the order of the one-hot block (categorical only)."""
    low: float | None = None
    """Lower bound that is mapped to -1 (numeric only)."""
    high: float | None = None
    """Upper bound that is mapped to +1 (numeric only)."""
    bounds: Literal["public", "fitted"] = "public"
    """`fitted` bounds are the data's own minimum and maximum: a data-dependent leak that the ledger names."""
    sensitive: bool = False
    """An attribute that attacks try to infer."""

    @property
    def columns(self) -> list[str]:
        """Names of this feature's columns in a feature table: one for a number, one per category otherwise."""
        if self.kind == "numeric":
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories]


class Schema(BaseModel):
    """`schema.json`: what a processed data set holds. The users table has `user` and one column per feature."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str
    protocol: str
    synthetic: bool
    n_users: int
    n_items: int
    features: tuple[Feature, ...]

    @property
    def columns(self) -> list[str]:
        """Columns of the encoded feature matrix, in order; (n_columns,) = d0 of the paper."""
        return [column for feature in self.features for column in feature.columns]

    @property
    def sensitive(self) -> tuple[Feature, ...]:
        """The attributes that attacks try to infer."""
        return tuple(feature for feature in self.features if feature.sensitive)


def users_schema(features: tuple[Feature, ...]) -> pa.Schema:
    """Schema of a users table: `user`, then float32 for a numeric feature and string for a categorical one."""
    types = {"numeric": pa.float32(), "categorical": pa.string()}
    return pa.schema(
        [pa.field("user", pa.int32(), nullable=False)]
        + [pa.field(feature.name, types[feature.kind], nullable=False) for feature in features]
    )


def features_schema(columns: list[str]) -> pa.Schema:
    """Schema of an encoded (or perturbed) feature table: `user`, then one float32 per encoded column."""
    return pa.schema(
        [pa.field("user", pa.int32(), nullable=False)]
        + [pa.field(column, pa.float32(), nullable=False) for column in columns]
    )


def write(table: pl.DataFrame, path: Path, schema: pa.Schema) -> None:
    """Write `table` as Parquet with exactly the contract's columns and types.

    Raises:
        DataError: a column is missing, unexpected, of another type, or has nulls where none are allowed.
    """
    arrow = _conform(table.to_arrow(), schema, str(path))
    pq.write_table(arrow, path, compression="zstd")


def read(path: Path, schema: pa.Schema) -> pl.DataFrame:
    """Read a Parquet table that must have exactly the contract's columns and types.

    Raises:
        DataError: the file is missing, unreadable, or breaks its contract.
    """
    try:
        arrow = pq.read_table(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such table; run the stage that writes it (dprec check shows which)") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({error}); delete it and run its stage again") from error
    frame = pl.from_arrow(_conform(arrow, schema, str(path)))
    assert isinstance(frame, pl.DataFrame)
    return frame


def read_schema(path: Path) -> Schema:
    """Read a `schema.json`.

    Raises:
        DataError: the file is missing or not a schema.
    """
    try:
        return Schema.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise DataError(f"{path}: no such schema; run preprocess first") from None
    except ValueError as error:
        raise DataError(f"{path}: not a data schema ({error}); run preprocess again") from error


def _conform(arrow: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    expected, found = schema.names, arrow.column_names
    if missing := [name for name in expected if name not in found]:
        raise DataError(f"{where}: column {missing[0]!r} is missing (has {found})")
    if extra := [name for name in found if name not in expected]:
        raise DataError(f"{where}: column {extra[0]!r} is not in the contract {expected}")
    arrow = arrow.select(expected)
    for field in schema:
        column = arrow.column(field.name)
        if not field.nullable and column.null_count:
            rows = pl.Series(column.is_null().to_pylist()).arg_true()
            raise DataError(f"{where}: column {field.name!r} has {column.null_count} nulls, first at row {rows[0]}")
    try:
        return arrow.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"{where}: {error}") from error
