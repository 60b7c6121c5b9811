"""The tables that stages hand to one another: Arrow schemas, and reading and writing them as Parquet (zstd).

All tables here have dense int32 ids from 0 for users and items; `tasks.core.raw` has those with the published ids.
`read` and `write` refuse a table whose columns or types differ from its contract, so a stage can rely on what it
reads; what a table must *mean* (ranges, uniqueness) is judged by the expectation suites of `tasks.quality`.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, model_validator

from tasks.core.errors import DamagedError, DataError

SPLITS = ("train", "valid", "test")
ROW_GROUP = 1 << 20
"""Rows that are written at a time."""

INT, LONG, FLOAT, DOUBLE, TEXT = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()


def contract(nullable: Collection[str] = (), /, **kinds: pa.DataType) -> pa.Schema:
    """A schema of columns, in their order, of which only some may have nulls."""
    return pa.schema([pa.field(name, kind, nullable=name in nullable) for name, kind in kinds.items()])


INTERACTIONS = contract(("rating", "timestamp"), user=INT, item=INT, rating=FLOAT, timestamp=LONG, split=TEXT)
"""timestamp: seconds since 1970; split: one of SPLITS."""
SOCIAL = contract(source=INT, target=INT, relation=TEXT)
"""The source trusts, or follows, the target."""
POSTS = contract(user=INT, tokens=pa.list_(INT))
"""tokens: ids of VOCABULARY, in the order of the text."""
VOCABULARY = contract(id=INT, word=TEXT)
ANCHORS = contract(source=INT, target=INT)
"""One person's two accounts: users of the first and of the second network."""
FOLDS = contract(user=INT, item=INT, fold=INT, sensitivity=FLOAT, validates=pa.bool_())
"""One row per interaction (PrivSR, docs/methods.md §5). fold: 0..k-1, the one whose test it belongs to; sensitivity: in
[0, 1), sensitive at a share x where it is below x; validates: selects epochs unless it is tested."""
ID_MAP = contract(id=INT, original=TEXT)
RECOMMENDATIONS = contract(user=INT, rank=INT, item=INT, score=FLOAT)
"""rank: 1..K."""
NEXT_ITEMS = contract(user=INT, position=INT, rank=INT, item=INT, score=FLOAT)
"""position: from 0, the test event after which these are recommended."""
PREDICTIONS = contract(user=INT, item=INT, rating=FLOAT, prediction=FLOAT)
"""One row per tested rating; rating: the true one."""
PROFILES = contract(user=INT, item=INT)
INFORMATION = contract(sender=INT, subject=INT, guess=DOUBLE, gradient=DOUBLE, row=pa.list_(DOUBLE))
"""As `tasks.models.base.Information`; row: of H, with the sender's subjects in order as columns."""
METRICS = contract(
    ("k",),
    **dict.fromkeys(("suite", "experiment", "dataset", "model", "setting"), TEXT),
    seed=LONG,
    metric=TEXT,
    k=INT,
    value=DOUBLE,
)
"""model: the experiment's system; setting: "base", or what a sweep point or an attack varies; metric: an id of parts
with / between them, the last of which is its kind; k: the cut-off of a top-K metric, null otherwise."""
METRIC_KIND = pl.col("metric").str.split("/").list.last()


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
    """`fitted`: a number's are the data's own minimum and maximum, a category's range is those that occur. A leak that
    the ledger names."""
    sensitive: bool = False
    """An attribute that attacks try to infer."""
    unknown: str | None = None
    """The category that stands for a missing value (categorical only); attacks leave such users out."""

    @model_validator(mode="after")
    def _unknown_is_a_category(self) -> Feature:
        if self.unknown is not None and self.unknown not in self.categories:
            raise ValueError(f"feature {self.name!r}: {self.unknown!r} is not among its categories")
        return self

    @property
    def columns(self) -> list[str]:
        """Names of this feature's columns in a feature table: one for a number, one per category otherwise."""
        if self.kind == "numeric":
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories]


class RatingScale(BaseModel):
    """The ratings that users can give: `low`, `low + step`, ..., `high`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    low: float
    high: float
    step: float

    @property
    def levels(self) -> tuple[float, ...]:
        """All ratings there are, lowest first."""
        return tuple(self.low + self.step * n for n in range(round((self.high - self.low) / self.step) + 1))


class Schema(BaseModel):
    """`schema.json`: what a processed data set, or one network of a pair, holds.

    The users table has `user` and one column per feature; the table of labels `user` and one column per label.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    dataset: str
    protocol: str
    synthetic: bool
    n_users: int
    n_items: int
    """0 where users are not known to have items."""
    features: tuple[Feature, ...]
    tables: tuple[str, ...] = ("interactions", "item_ids", "user_ids", "users")
    """Names of the Parquet files next to this schema, without ending."""
    scale: RatingScale | None = None
    """None where interactions have no ratings."""
    repeats: bool = False
    """Whether a user may have an item several times (sequences of events)."""
    labels: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    """What a guarantee takes as fixed, since all users' records decide it, or it need not hold of them: of
    `tasks.privacy.terms.Condition`."""
    n_words: int = 0
    """Size of the vocabulary of the posts."""
    vector_size: int = 0
    """Length of the users' text vectors."""
    networks: tuple[str, ...] = ()
    """Names of the two networks (sub-folders with a schema of their own), for a pair of them."""

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
    return contract(user=INT, **{feature.name: FLOAT if feature.kind == "numeric" else TEXT for feature in features})


def features_schema(columns: list[str]) -> pa.Schema:
    """Schema of an encoded (or perturbed) feature table: `user`, then one float32 per encoded column."""
    return contract(user=INT, **dict.fromkeys(columns, FLOAT))


def table_schema(table: str, schema: Schema) -> pa.Schema:
    """The contract of one of `schema.tables`."""
    fixed = {
        "interactions": INTERACTIONS, "user_ids": ID_MAP, "item_ids": ID_MAP, "social": SOCIAL, "posts": POSTS,
        "vocabulary": VOCABULARY, "anchors": ANCHORS, "folds": FOLDS,
    }  # fmt: skip
    if table in fixed:
        return fixed[table]
    if table == "users":
        return users_schema(schema.features)
    return labels_schema(schema.labels) if table == "labels" else embeddings_schema(schema.vector_size)


def labels_schema(labels: tuple[str, ...]) -> pa.Schema:
    """Schema of a table of labels: `user`, then one int8 per label: 1, 0, or null where unknown."""
    return contract(labels, user=INT, **dict.fromkeys(labels, pa.int8()))


def embeddings_schema(size: int) -> pa.Schema:
    """Schema of embeddings (and of text vectors) of `size` numbers per node."""
    return contract(node=INT, vector=pa.list_(FLOAT, size))


def received_schema(size: int) -> pa.Schema:
    """Schema of messages of `size` numbers that users sent during training, averaged over iterations.

    Columns as in `tasks.models.base.Received`.
    """
    vector = pa.list_(FLOAT, size)
    return contract(
        sender=INT, subject=INT, mean=vector, mean_variance=FLOAT, weighted=vector, weighted_variance=vector
    )


def replayed_schema(size: int) -> pa.Schema:
    """Schema of what an untrusted recommender recalls of submissions (`tasks.models.base.Replayed`)."""
    vectors = dict.fromkeys(("first", "first_variance", "first_items", "expected", "along"), pa.list_(FLOAT, size))
    return contract(sender=INT, subject=INT, **vectors)


def write(table: pl.DataFrame, path: Path, schema: pa.Schema) -> None:
    """Write `table` as Parquet with exactly the contract's columns and types, a row group at a time.

    Raises:
        DataError: a column is missing, unexpected, of another type, or has nulls where none are allowed.
    """
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        for start in range(0, max(table.height, 1), ROW_GROUP):
            rows = table.slice(start, ROW_GROUP).to_arrow()
            out.write_table(_conform(rows, schema, str(path), start))


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
        raise DamagedError(
            f"{path}: not a readable Parquet file ({error}); delete it and run its stage again"
        ) from error
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
        raise DamagedError(f"{path}: not a data schema ({error}); run preprocess again") from error


@dataclass(frozen=True)
class ProcessedTables:
    """A processed data set, or one network of it, as it lies in a folder: nothing is read before it is asked for."""

    schema: Schema
    folder: Path

    def scan(self, table: str) -> pl.LazyFrame:
        """One of `schema.tables`."""
        return pl.scan_parquet(self.folder / f"{table}.parquet")

    def network(self, name: str) -> ProcessedTables:
        """The tables of one network of a pair."""
        return read_processed(self.folder / name)


def read_processed(folder: Path) -> ProcessedTables:
    """The processed tables in a folder, their columns and types held against their contracts.

    Raises:
        DataError: the schema or a table is missing or not what its contract says.
    """
    schema = read_schema(folder / "schema.json")
    for table in schema.tables:
        path = folder / f"{table}.parquet"
        empty = columns_of(path, "preprocess").empty_table()
        _conform(empty, table_schema(table, schema), str(path))
    for network in schema.networks:
        read_processed(folder / network)
    return ProcessedTables(schema, folder)


def columns_of(path: Path, stage: str) -> pa.Schema:
    """The columns of a Parquet table that a stage wrote (DamagedError: there is none or it is damaged)."""
    try:
        return pq.read_schema(path)
    except FileNotFoundError:
        raise DamagedError(f"{path}: no such table; run {stage} again") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise DamagedError(f"{path}: not a readable Parquet file ({error}); run {stage} again") from error


def _conform(arrow: pa.Table, schema: pa.Schema, where: str, start: int = 0) -> pa.Table:
    expected, present = schema.names, arrow.column_names
    if missing := [name for name in expected if name not in present]:
        raise DataError(f"{where}: column {missing[0]!r} is missing (has {present})")
    if extra := [name for name in present if name not in expected]:
        raise DataError(f"{where}: column {extra[0]!r} is not in the contract {expected}")
    arrow = arrow.select(expected)
    for field in schema:
        column = arrow.column(field.name)
        if not field.nullable and column.null_count:
            rows = pl.Series(column.is_null().to_pylist()).arg_true()
            raise DataError(
                f"{where}: column {field.name!r} has {column.null_count} nulls, first at row {start + rows[0]}"
            )
    try:
        return arrow.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"{where}: {error}") from error
