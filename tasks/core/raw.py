"""Raw tables: what every format is converted to. Ids as published; nothing dropped, nothing mended.

What a data set holds is said by its schema; a protocol (`tasks.papers.<paper>.protocol`) makes processed tables of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from tasks.core.contracts import Feature, RatingScale, columns_of
from tasks.core.errors import DamagedError, DataError


class RawSchema(BaseModel):
    """`schema.json` of raw tables: what a data set holds as it was published.

    A data set of two networks has a folder with a schema of its own for each, and the anchors next to them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tables: tuple[str, ...]
    """Which of `RAW_COLUMNS` are there."""
    features: tuple[Feature, ...] = ()
    """Columns of `users` that models may learn from. A number without bounds gets the data's own, marked `fitted`."""
    scale: RatingScale | None = None
    """None where interactions have no ratings."""
    unrated: float | None = None
    """What is published as the rating where none was given, if the scale does not have it (Ciao's and Epinions' 0)."""
    unique_pairs: bool = False
    """Whether each user has an item at most once."""
    time: Literal["seconds", "order", "none"] = "none"
    """What says which interaction came first: `timestamp`, `position` (the place in the file), or nothing."""
    labels: tuple[str, ...] = ()
    """Columns of `labels`: 1, 0, or null where unknown."""
    networks: tuple[str, ...] = ()
    """Names of the two networks (sub-folders), for a pair of them."""


RAW_COLUMNS: dict[str, dict[str, str]] = {
    "interactions": {"user": "id", "item": "id", "rating": "float32?", "timestamp": "int64?"},
    "users": {"user": "id"},
    "items": {"item": "id"},
    "social": {"source": "id", "target": "id", "relation": "string"},
    "posts": {"user": "id", "text": "string"},
    "vectors": {"user": "id", "vector": "vector"},
    "labels": {"user": "id"},
    "anchors": {"source": "id", "target": "id"},
}
"""Columns that a raw table must have; it may have more, which are the format's own.

id: int64 or string; the same kind wherever a user (or an item) is named. `?`: may be null. timestamp: seconds since
1970. interactions has `position` (int64) as well where `RawSchema.time` is "order". users and items may be absent: they
are then those of interactions and social.
"""


INTERACTIONS = pa.schema(
    [("user", pa.int64()), ("item", pa.int64()), ("rating", pa.float32()), ("timestamp", pa.int64())]
)
"""The columns of most raw tables of interactions."""
ROW_GROUP = 1 << 20
"""Fewest rows of a raw table that are written at a time."""


@dataclass(frozen=True)
class RawTables:
    """Raw tables as they lie in a folder: nothing is read before it is asked for."""

    schema: RawSchema
    folder: Path

    def scan(self, table: str) -> pl.LazyFrame:
        """One of `schema.tables`."""
        return pl.scan_parquet(self.folder / f"{table}.parquet")

    def network(self, name: str) -> RawTables:
        """The tables of one network of a pair."""
        return read_raw(self.folder / name)


def write_raw_schema(schema: RawSchema, folder: Path) -> None:
    """Write `schema.json` next to raw tables."""
    (folder / "schema.json").write_text(schema.model_dump_json(indent=2) + "\n", encoding="utf-8")


def write_raw(folder: Path, tables: Mapping[str, pl.DataFrame | None], **described: Any) -> None:
    """Write raw tables with their schema into `folder`, which is made where it is missing.

    Args:
        tables: name -> the table, with whole numbers of any width for ids and ratings; None where it lies there.
        described: fields of `RawSchema` but `tables`.
    """
    folder.mkdir(exist_ok=True)
    ids = cs.by_name("user", "item", "source", "target", require_all=False) & cs.integer()
    rating = cs.by_name("rating", require_all=False)
    for name, table in tables.items():
        if table is not None:
            table.with_columns(ids.cast(pl.Int64), rating.cast(pl.Float32)).write_parquet(folder / f"{name}.parquet")
    write_raw_schema(RawSchema(tables=tuple(sorted(tables)), **described), folder)


@contextmanager
def raw_writer(
    path: Path, schema: pa.Schema = INTERACTIONS, differences: Sequence[str] = ("user", "item", "timestamp")
) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Yield what appends rows, with the columns of `schema` among others, to a raw table as large files are read.

    differences: whole numbers written as such: against a dictionary, half the time and less space where few repeat.
    """
    encoding = dict.fromkeys(differences, "DELTA_BINARY_PACKED")
    dictionary = [name for name in schema.names if name not in differences]
    waiting: list[pa.Table] = []
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=dictionary, column_encoding=encoding or None
    ) as out:

        def write(rows: pl.DataFrame) -> None:
            waiting.append(rows.select(schema.names).to_arrow().cast(schema))
            if sum(map(len, waiting)) >= ROW_GROUP:
                out.write_table(pa.concat_tables(waiting))
                waiting.clear()

        yield write
        if waiting:
            out.write_table(pa.concat_tables(waiting))


def read_raw(folder: Path) -> RawTables:
    """The raw tables in a folder, their columns held against `RAW_COLUMNS`.

    Raises:
        DataError: the schema or a table is missing or not what the contract says.
    """
    try:
        schema = RawSchema.model_validate_json((folder / "schema.json").read_bytes())
    except FileNotFoundError:
        raise DataError(f"{folder}/schema.json: no such schema; run convert first") from None
    except ValueError as error:
        raise DamagedError(f"{folder}/schema.json: not a schema of raw tables ({error}); run convert again") from error
    for table in schema.tables:
        _require_columns(folder / f"{table}.parquet", table, schema)
    for network in schema.networks:
        read_raw(folder / network)
    return RawTables(schema, folder)


def _require_columns(path: Path, table: str, schema: RawSchema) -> None:
    present, expected = columns_of(path, "convert"), dict(RAW_COLUMNS[table])
    if table == "interactions" and schema.time == "order":
        expected["position"] = "int64"
    if table == "users":
        kinds = {"numeric": "number", "categorical": "string"}
        expected |= {feature.name: kinds[feature.kind] for feature in schema.features}
    if table == "labels":
        expected |= dict.fromkeys(schema.labels, "int8")
    for column, kind in expected.items():
        if column not in present.names:
            raise DamagedError(f"{path}: column {column!r} is missing (has {present.names}); run convert again")
        if not _has_kind(present.field(column).type, kind.removesuffix("?")):
            raise DamagedError(
                f"{path}: column {column!r} is {present.field(column).type}, not {kind}; run convert again"
            )


def _has_kind(kind: pa.DataType, name: str) -> bool:
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    match name:
        case "id":
            return text or pa.types.is_int64(kind)
        case "string":
            return text
        case "number":
            return pa.types.is_integer(kind) or pa.types.is_floating(kind)
        case "vector":
            return pa.types.is_fixed_size_list(kind) and pa.types.is_float32(kind.value_type)
    return str(kind) == {"float32": "float"}.get(name, name)
