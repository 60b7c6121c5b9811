"""Networks of users as models read them, processed or perturbed, what the perturbation cost, and a fit to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks import contracts
from tasks.contracts import ProcessedTables
from tasks.datasets.encoding import encode
from tasks.models.training import EpochModel
from tasks.models.user_networks.base import NEIGHBOURING, Embedder, NetworkData, Posts, undirected_pairs
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.terms import Protected
from tasks.stages.common import PERTURBED, read_json
from tasks.stages.monitor import Monitor
from tasks.stages.network_files import Source
from tasks.stages.screen import Screen

ALL: frozenset[Protected] = frozenset(NEIGHBOURING)
"""The kinds of data of a network."""


def read(source: Source, network: str, setting: str, seed: int, kinds: frozenset[Protected] = ALL) -> NetworkData:
    """One network: its friendships, and of its attributes and texts those among `kinds`."""
    tables = contracts.read_processed(source.folder(network, setting, seed))
    schema, folder, perturbed = tables.schema, tables.folder, source.perturbed is not None
    features = text_vectors = has_text = None
    if schema.features and "feature" in kinds and perturbed:
        table = contracts.read(folder / "features.parquet", contracts.features_schema(schema.columns))
        features = table.sort("user").select(schema.columns).to_numpy()
    elif schema.features and "feature" in kinds:
        users = contracts.read(folder / "users.parquet", contracts.users_schema(schema.features))
        features = encode(users, schema.features)
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


def spent_entries(
    source: Source, network: str, setting: str, seed: int, reads: frozenset[Protected]
) -> Iterator[LedgerEntry]:
    """What the perturbation of the kinds of data that a model reads cost."""
    if source.perturbed is None:
        return
    about = {"setting": setting, "seed": seed, "network": network}
    for record in read_json(PERTURBED / source.perturbed / "ledger.json"):
        if {key: record.pop(key) for key in about} == about and record["protects"] in reads:
            yield LedgerEntry.model_validate(record)


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


def fit(
    model: Embedder, data: Any, rng: np.random.Generator, progress: Path, screen: Screen, label: str
) -> tuple[list[dict[str, Any]], list[float]]:
    """Fit `model` to its data; one record per epoch and what each took in seconds, none of a model without any.

    Nothing validates: models are trained on the data alone, and labels are for judging. So every epoch is run.

    Args:
        progress: where the epochs are kept, so that an interrupted run goes on.
        label: what the screen calls this run.
    """
    if not isinstance(model, EpochModel):
        model.fit(data, rng=rng)
        return [], []
    screen.begin(label, model.config.epochs)
    monitor = Monitor(progress, None, screen, model.config.epochs, "")
    model.fit(data, rng=rng, progress=monitor)
    return monitor.history, monitor.seconds
