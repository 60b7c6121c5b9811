"""The features of a table of users under the multidimensional mechanism (`tasks.privacy.mechanisms.multidimensional`).

Writes epsilon=<e>/seed-<s>.parquet and schema.json, that of the processed data.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.config.fields import PerturbedFeatures
from tasks.core import contracts
from tasks.datasets.encoding import encode
from tasks.pipeline.common import write_json
from tasks.privacy.accounting.gaps import prepared_entry, secure_entry
from tasks.privacy.mechanisms import multidimensional
from tasks.privacy.noise import generator


def perturb(name: str, options: PerturbedFeatures, source: Path, target: Path) -> list[dict[str, object]]:
    """Write the perturbed features of the table of users in `source` below `place`.

    Returns:
        The ledger: epsilon, seed and the fields of an entry, for every release.
    """
    schema = contracts.read_schema(source / "schema.json")
    users = contracts.read(source / "users.parquet", contracts.users_schema(schema.features))
    matrix = encode(users, schema.features)
    content, secure = content_digest(matrix), options.noise == "secure"
    n_releases = len(options.epsilon) * len(options.seeds)
    records = []
    for epsilon in options.epsilon:
        folder = target / f"epsilon={epsilon:g}"
        folder.mkdir(parents=True)
        accounted = multidimensional.entries(schema.features, epsilon, n_releases)
        entries = [prepared_entry(secure_entry(entry) if secure else entry) for entry in accounted]
        for seed in options.seeds:
            noisy = multidimensional.perturb(
                matrix, schema.features, epsilon, generator(seed, epsilon, options.data, name, content, secure=secure)
            )
            write(noisy, schema.columns, folder / f"seed-{seed}.parquet")
            records += [{"epsilon": epsilon, "seed": seed} | entry.model_dump(mode="json") for entry in entries]
    write_json(target / "schema.json", schema.model_dump(mode="json"))
    return records


def content_digest(*arrays: NDArray[np.generic] | None) -> str:
    """SHA-256 of arrays, None being one: hexadecimal digits.

    Noise is keyed by what it hides: two versions of a data set that shared noise would differ in nothing but the users
    who changed.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"-" if array is None else f"{array.dtype} {array.shape}".encode())
        digest.update(b"" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write(noisy: NDArray[np.float32], columns: list[str], path: Path) -> None:
    """Write perturbed features, (n_users, n_columns), under the names of their columns."""
    table = pl.DataFrame(noisy, schema=columns)
    table = table.insert_column(0, pl.Series("user", np.arange(len(noisy), dtype=np.int32)))
    contracts.write(table, path, contracts.features_schema(columns))
