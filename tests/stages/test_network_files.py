"""Embeddings as they are read, and which networks are embedded."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tasks.core import contracts
from tasks.core.contracts import Schema
from tasks.core.errors import DataError
from tasks.pipeline.common import write_json
from tasks.stages.network_files import embedded_networks, read_vectors

N = 120


def vectors() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N, 4)).astype(np.float32)


def test_embeddings_are_read_in_the_order_of_users(tmp_path: Path) -> None:
    path = tmp_path / "seed-0.parquet"
    table = pl.DataFrame({"node": np.arange(N, dtype=np.int32), "vector": vectors()})
    contracts.write(table.sample(fraction=1, shuffle=True, seed=1), path, contracts.embeddings_schema(4))
    assert np.array_equal(read_vectors(path, N), vectors())
    with pytest.raises(DataError, match=r"seed-0\.parquet: does not hold the 121 vectors once each"):
        read_vectors(path, N + 1)
    with pytest.raises(DataError, match=r"seed-1\.parquet: no such table"):
        read_vectors(tmp_path / "seed-1.parquet", N)


def pair(root: Path, friends: dict[str, bool]) -> contracts.ProcessedTables:
    """A processed pair of networks without users, some with a table of friendships."""
    about = {"dataset": "tiny", "protocol": "dpcrosue", "synthetic": True, "n_users": 0, "n_items": 0, "features": ()}
    two = Schema(**about, tables=(), networks=tuple(friends))
    write_json(root / "schema.json", two.model_dump(mode="json"))
    for name, there in friends.items():
        (root / name).mkdir()
        single = Schema(**about, tables=("social",) * there)
        write_json(root / name / "schema.json", single.model_dump(mode="json"))
        if there:
            empty = pl.from_arrow(contracts.SOCIAL.empty_table())
            contracts.write(empty, root / name / "social.parquet", contracts.SOCIAL)
    return contracts.read_processed(root)


def test_networks_with_friendships_are_embedded_in_the_order_of_the_pair(tmp_path: Path) -> None:
    for number, (friends, expected) in enumerate(
        [({"b": True, "a": True}, ["b", "a"]), ({"b": False, "a": True}, ["a"])]
    ):
        root = tmp_path / str(number)
        root.mkdir()
        assert list(embedded_networks(pair(root, friends))) == expected
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="has no network with friendships"):
        embedded_networks(pair(tmp_path / "none", {"a": False, "b": False}))
