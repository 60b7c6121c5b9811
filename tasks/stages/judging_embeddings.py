"""What embeddings are worth: the interests that they predict, and what training and the attack share for that.

Source: DP-CroSUE, section 5.3, Table 3. The names of the metrics begin with that of the network whose users they are
of.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks import contracts
from tasks.contracts import ProcessedTables
from tasks.errors import DataError
from tasks.evaluation.classification import Prediction, Vectors, predict_labels

Record = dict[str, Any]
"""A metric without what it is of: `metric`, `k` (None where it has no cut-off) and `value`."""


def embedded(pair: ProcessedTables) -> dict[str, ProcessedTables]:
    """Of a pair of networks those whose users are embedded, by name: those with friendships.

    Raises:
        DataError: there is none, or a table is not what its contract says.
    """
    networks = {name: pair.network(name) for name in pair.schema.networks}
    found = {name: network for name, network in networks.items() if "social" in network.schema.tables}
    if not found:
        raise DataError(f"{pair.folder}/schema.json: has no network with friendships, so there is nobody to embed")
    return found


def interests(network: str, vectors: Vectors, labels: pl.DataFrame, *, seed: int) -> list[Record]:
    """How well a decision tree predicts interests, and what giving the same to everybody scores.

    Args:
        network: its name.
        vectors: (n_users, d), row i of user i.
        labels: `contracts.labels_schema`; users one of whose labels is not known are left out.
        seed: of splits and trees (`split_seed`), the same for all systems that are compared.

    Returns:
        NET/interests/{precision, precision-swapped, micro-f1}, the mean over five splits, and the same of the controls
        `majority` and `everything`.

    Raises:
        DataError: fewer than two users are labelled, or see `tasks.evaluation.classification.predict_labels`.
    """
    known = labels.drop_nulls()
    users, truth = known["user"].to_numpy(), known.drop("user").to_numpy()
    return scores(f"{network}/interests", predict_labels(vectors, users, truth, seed=seed))


def scores(name: str, prediction: Prediction) -> list[Record]:
    """Metrics NAME/SCORE and NAME/CONTROL/SCORE: means over the splits."""
    found = {name: prediction.scores} | {f"{name}/{control}": of for control, of in prediction.controls.items()}
    return [
        record(f"{whose}/{score.replace('_', '-')}", np.mean([getattr(split, score) for split in splits]))
        for whose, splits in found.items()
        for score in splits[0]._fields
    ]


def record(metric: str, value: float | np.floating, k: int | None = None) -> Record:
    """One metric."""
    return {"metric": metric, "k": k, "value": float(value)}


def split_seed(seed: int, run: int) -> int:
    """The seed of everything random in judging a run: of the suite's seed and the run's, whatever the system.

    So two systems meet the same splits and pairs in their runs of one seed, and other ones in those of another.
    """
    return int(np.random.SeedSequence([seed, run]).generate_state(1)[0])


def read_embedding(path: Path, n_users: int) -> NDArray[np.float32]:
    """A released embedding: (n_users, d), row i of user i.

    Raises:
        DataError: it is not there, is no table of vectors, or does not have every user once.
    """
    try:
        size = int(pq.read_schema(path).field("vector").type.list_size)
    except FileNotFoundError:
        raise DataError(f"{path}: no such table; run train first") from None
    except (pa.ArrowInvalid, KeyError, AttributeError, OSError) as error:
        raise DataError(f"{path}: not a table of vectors ({error}); delete it and run train again") from error
    table = contracts.read(path, contracts.embeddings_schema(size)).sort("node")
    if not np.array_equal(table["node"].to_numpy(), np.arange(n_users)):
        raise DataError(f"{path}: does not hold the {n_users} users' vectors once each; run train again")
    return table["vector"].to_numpy()
