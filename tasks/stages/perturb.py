"""Stage `perturb`: processed data under local mechanisms, once per budget and seed.

Writes data/perturbed/<name>/. Of a table of users: epsilon=<e>/seed-<s>.parquet, schema.json (of the processed data),
ledger.json. Of networks of users: as `tasks.stages.perturb_networks` says.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # sums must not depend on thread counts

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks import contracts
from tasks.datasets.encoding import encode
from tasks.errors import ConfigurationError, PrivacyError
from tasks.privacy import multidimensional
from tasks.stages.common import PERTURBED, PROCESSED, require_passed, run_stage, whole, write_json
from tasks.stages.fields import PerturbedFeatures
from tasks.stages.noise import generator
from tasks.stages.params import load


def main(name: str) -> None:
    """Perturb data set `name`.

    Raises:
        ConfigurationError: params.yaml has no such name.
        ByHandError: words are to become public ones, and GloVe's file is neither placed nor in the mirror.
        DataError: the data did not pass their check, or there is nothing to perturb.
        PrivacyError: a mechanism refuses what it is given.
    """
    known = load().perturbed
    if name not in known:
        raise ConfigurationError(f"perturbed.{name} is not in params.yaml; known: {', '.join(sorted(known))}")
    perturbed = known[name]
    require_passed("processed", perturbed.data)
    source = PROCESSED / perturbed.data
    with whole(PERTURBED / name) as place:
        try:
            if perturbed.mechanism == "multidimensional":
                records = features(perturbed, source, place)
            else:
                from tasks.stages import perturb_networks  # seconds to import, and needed for networks alone

                records = perturb_networks.perturb(name, perturbed, source, place)
        except ValueError as error:
            raise PrivacyError(f"perturbed.{name}: {error}") from error
        write_json(place / "ledger.json", records)


def features(perturbed: PerturbedFeatures, source: Path, place: Path) -> list[dict[str, Any]]:
    """Write the perturbed features of the table of users in `source` below `place`; the ledger of each release."""
    schema = contracts.read_schema(source / "schema.json")
    users = contracts.read(source / "users.parquet", contracts.users_schema(schema.features))
    matrix = encode(users, schema.features)
    n_releases = len(perturbed.epsilon) * len(perturbed.seeds)
    records = []
    for epsilon in perturbed.epsilon:
        folder = place / f"epsilon={epsilon:g}"
        folder.mkdir(parents=True)
        entry = multidimensional.ledger(schema.features, epsilon, n_releases)
        for seed in perturbed.seeds:
            noisy = multidimensional.perturb(matrix, schema.features, epsilon, generator(seed, epsilon))
            table = pl.DataFrame(noisy, schema=schema.columns)
            table = table.insert_column(0, pl.Series("user", np.arange(len(noisy), dtype=np.int32)))
            contracts.write(table, folder / f"seed-{seed}.parquet", contracts.features_schema(schema.columns))
            records.append({"epsilon": epsilon, "seed": seed} | entry.model_dump(mode="json"))
    write_json(place / "schema.json", schema.model_dump(mode="json"))
    return records


if __name__ == "__main__":
    run_stage(main)
