"""Raw tables for tests of protocols, and what every protocol's output must be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks.core import contracts
from tasks.core.raw import RawTables, read_raw, write_raw
from tasks.papers.protocol import Prepared
from tasks.stages import preprocess

INTERACTIONS = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float32, "timestamp": pl.Int64}


def interactions(*rows: tuple[Any, ...]) -> pl.DataFrame:
    """user, item, rating, timestamp."""
    return pl.DataFrame(list(rows), schema=INTERACTIONS, orient="row")


def stored(folder: Path, tables: Mapping[str, pl.DataFrame], **schema: Any) -> RawTables:
    """Raw tables in `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    write_raw(folder, tables, **schema)
    return read_raw(folder)


def shuffled(tables: Mapping[str, pl.DataFrame], seed: int) -> dict[str, pl.DataFrame]:
    """The same rows in another order."""
    return {name: table.sample(fraction=1, shuffle=True, seed=seed) for name, table in tables.items()}


def random_interactions(n: int, n_users: int, n_items: int, low: int = 1) -> pl.DataFrame:
    """Ratings from `low` to 5 by users 10, 17, ... of items 1000, 999, ..., most by and of the first; some twice."""
    rng = np.random.default_rng(0)
    rows = [
        10 + 7 * (n_users * rng.random(n) ** 2).astype(int), 1000 - (n_items * rng.random(n) ** 2).astype(int),
        rng.integers(low, 6, n).astype(np.float32), rng.integers(0, 300, n),
    ]  # fmt: skip
    return pl.DataFrame(dict(zip(INTERACTIONS, rows, strict=True)), INTERACTIONS)


def assert_same(actual: Prepared, expected: Prepared) -> None:
    """Equal in every table and number."""
    assert actual.counts == expected.counts
    assert actual.features == expected.features
    assert list(actual.tables) == list(expected.tables)
    assert [name for name, table in actual.tables.items() if not table.equals(expected.tables[name])] == []
    assert list(actual.networks) == list(expected.networks)
    for name, network in actual.networks.items():
        assert_same(network, expected.networks[name])


def as_published(prepared: Prepared, folder: Path) -> dict[str, pl.DataFrame]:
    """The tables as the stage `preprocess` writes them: refused unless they are what their contracts say."""
    folder.mkdir(exist_ok=True)
    preprocess.write(prepared, folder, {"dataset": "test", "protocol": "test", "synthetic": True})
    schema = contracts.read_schema(folder / "schema.json")
    return {
        name: contracts.read(folder / f"{name}.parquet", contracts.table_schema(name, schema)) for name in schema.tables
    }
