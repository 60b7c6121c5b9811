"""Networks of users as models read them, processed or perturbed, and what was spent on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.core import contracts
from tasks.core.contracts import ProcessedTables
from tasks.models.user_networks.base import NEIGHBOURING, NetworkData, Posts, undirected_pairs
from tasks.pipeline.common import read_json
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.terms import Protected
from tasks.stages.network_files import Source, read_attributes

ALL: frozenset[Protected] = frozenset(NEIGHBOURING)
"""The kinds of data of a network."""


def read(source: Source, network: str, setting: str, seed: int, kinds: frozenset[Protected] = ALL) -> NetworkData:
    """One network: its friendships, and of its attributes and texts those among `kinds`."""
    tables = contracts.read_processed(source.folder(network, setting, seed))
    schema, folder, perturbed = tables.schema, tables.folder, source.perturbed is not None
    features = text_vectors = has_text = None
    if schema.features and "feature" in kinds:
        features = read_attributes(schema, folder)
    if "vectors" in schema.tables and "text" in kinds:
        table = contracts.read(folder / "vectors.parquet", contracts.embeddings_schema(schema.vector_size))
        text_vectors = np.zeros((schema.n_users, schema.vector_size), np.float32)
        text_vectors[table["node"].to_numpy()] = table["vector"].to_numpy()
        has_text = np.zeros(schema.n_users, np.bool_)
        has_text[table["node"].to_numpy()] = True
    return NetworkData(
        schema.n_users,
        _links(tables),
        features,
        _posts(tables) if "text" in kinds else None,
        text_vectors=text_vectors,
        has_text=has_text,
        perturbed=ALL if perturbed else frozenset(),
    )


def spent(ledger: Path | None, reads: frozenset[Protected] = ALL, **about: object) -> Iterator[dict[str, object]]:
    """What a ledger, if there is one, says of these kinds of data of a setting, seed and network."""
    for record in [] if ledger is None else read_json(ledger):
        if {key: record.pop(key) for key in about} == about and record["protects"] in reads:
            yield about | LedgerEntry.model_validate(record).model_dump(mode="json")


def _links(tables: ProcessedTables) -> NDArray[np.int32]:
    if "social" not in tables.schema.tables:
        return np.empty((0, 2), np.int32)
    return undirected_pairs(tables.scan("social").select("source", "target").collect().to_numpy())


def _posts(tables: ProcessedTables) -> Posts | None:
    if "posts" not in tables.schema.tables:
        return None
    posts = contracts.read(tables.folder / "posts.parquet", contracts.POSTS).sort("user", maintain_order=True)
    bounds = np.append(0, posts["tokens"].list.len().to_numpy().cumsum()).astype(np.int64)
    tokens = posts["tokens"].explode().drop_nulls().to_numpy().astype(np.int32)
    return Posts(posts["user"].to_numpy(), bounds, tokens, tables.schema.n_words)
