"""Where networks of users, their embeddings and their alignments lie, and how vectors are written and read.

Of one network lie in <layer>/<name>/: processed <network>/, perturbed <setting>/seed-<s>/<network>/, and embeddings
<setting>/<network>/seed-<s>.parquet. Learning needs friendships: a network that has none is never embedded, only its
attributes may be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.core import contracts
from tasks.core.contracts import ProcessedTables, Schema
from tasks.core.errors import DamagedError, DataError
from tasks.datasets.encoding import encode
from tasks.pipeline.common import DATA, PERTURBED, PROCESSED

EMBEDDINGS = DATA / "embeddings"
ALIGNED = DATA / "aligned"


@dataclass(frozen=True)
class Source:
    """Where networks are read from."""

    data: str
    """The processed pair."""
    perturbed: str | None
    """Its release that is read; None: the processed data themselves."""

    @classmethod
    def read(cls, data: str, networks: str) -> Source:
        """networks: `processed/<name>` or `perturbed/<name>`."""
        layer, _, name = networks.partition("/")
        return cls(data, name if layer == "perturbed" else None)

    @property
    def ledger(self) -> Path | None:
        """What the release cost."""
        return None if self.perturbed is None else PERTURBED / self.perturbed / "ledger.json"

    def folder(self, network: str, setting: str, seed: int) -> Path:
        """Where the tables of one network lie."""
        if self.perturbed is None:
            return PROCESSED / self.data / network
        return PERTURBED / self.perturbed / setting / f"seed-{seed}" / network


def embedded_networks(pair: ProcessedTables) -> dict[str, ProcessedTables]:
    """Of a pair of networks those whose users are embedded, by name: those with friendships.

    Raises:
        DataError: there is none, or a table is not what its contract says.
    """
    networks = {name: pair.network(name) for name in pair.schema.networks}
    with_friends = {name: network for name, network in networks.items() if "social" in network.schema.tables}
    if not with_friends:
        raise DataError(f"{pair.folder}/schema.json: has no network with friendships, so there is no one to embed")
    return with_friends


def embeddable_users(data: str) -> dict[str, int]:
    """Name -> users of the networks of a processed pair whose users are embedded."""
    tables = embedded_networks(contracts.read_processed(PROCESSED / data))
    return {name: network.schema.n_users for name, network in tables.items()}


def read_attributes(schema: Schema, folder: Path) -> NDArray[np.float32]:
    """The users' attributes in a processed or in a perturbed network's folder, encoded: (n_users, n_columns)."""
    if PERTURBED in folder.parents:
        table = contracts.read(folder / "features.parquet", contracts.features_schema(schema.columns))
        return table.sort("user").select(schema.columns).to_numpy()
    return encode(contracts.read(folder / "users.parquet", contracts.users_schema(schema.features)), schema.features)


def read_anchors(folder: Path) -> NDArray[np.int32]:
    """(n_anchors, 2) users of the first and of the second network."""
    return contracts.read(folder / "anchors.parquet", contracts.ANCHORS).select("source", "target").to_numpy()


def write_vectors(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write embeddings: (n_users, d)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pl.DataFrame({"node": np.arange(len(vectors), dtype=np.int32), "vector": vectors})
    contracts.write(table, path, contracts.embeddings_schema(vectors.shape[1]))


def read_vectors(path: Path, n: int) -> NDArray[np.float32]:
    """Embeddings of users or items: (n, d), row i of node i.

    Raises:
        DataError: it is not there, is no table of vectors, or does not have every node once.
    """
    try:
        size = int(pq.read_schema(path).field("vector").type.list_size)
    except FileNotFoundError:
        raise DataError(f"{path}: no such table; run the stage that writes it (dprec check shows which)") from None
    except (pa.ArrowInvalid, KeyError, AttributeError, OSError) as error:
        raise DamagedError(f"{path}: not a table of vectors ({error}); delete it and run its stage again") from error
    table = contracts.read(path, contracts.embeddings_schema(size)).sort("node")
    if not np.array_equal(table["node"].to_numpy(), np.arange(n)):
        raise DamagedError(f"{path}: does not hold the {n} vectors once each; run its stage again")
    return table["vector"].to_numpy(writable=True).reshape(n, size)  # PyTorch warns of arrays that are not


def embedding_file(folder: Path, setting: str, network: str, seed: int) -> Path:
    """Of one network's embeddings below a folder of a stage's output."""
    return folder / setting / network / f"seed-{seed}.parquet"
