"""Stage `perturb`: the user features of a processed data set under a local mechanism, once per budget and seed.

Writes data/perturbed/<name>/: epsilon=<e>/seed-<s>.parquet, schema.json (of the processed data), ledger.json.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tasks import contracts
from tasks.datasets.encoding import encode
from tasks.errors import ConfigurationError, PrivacyError
from tasks.privacy import multidimensional
from tasks.stages.common import PERTURBED, PROCESSED, require_passed, run_stage, whole, write_json
from tasks.stages.params import load


def generator(seed: int, epsilon: float) -> np.random.Generator:
    """Noise of one release, from the seed and all 64 bits of the budget.

    Every pair has its own stream, independent of which others are listed in params.yaml: two budgets under one seed
    must not share their noise, or their difference would reveal the features.
    """
    return np.random.default_rng([seed, int(np.float64(epsilon).view(np.uint64))])


def main(name: str) -> None:
    """Perturb data set `name`."""
    known = load().perturbed
    if name not in known:
        raise ConfigurationError(f"perturbed.{name} is not in params.yaml; known: {', '.join(sorted(known))}")
    perturbed = known[name]
    require_passed("processed", perturbed.data)
    source = PROCESSED / perturbed.data
    schema = contracts.read_schema(source / "schema.json")
    users = contracts.read(source / "users.parquet", contracts.users_schema(schema.features))
    matrix = encode(users, schema.features)
    n_releases = len(perturbed.epsilon) * len(perturbed.seeds)
    records = []
    with whole(PERTURBED / name) as place:
        for epsilon in perturbed.epsilon:
            folder = place / f"epsilon={epsilon:g}"
            folder.mkdir(parents=True)
            entry = multidimensional.ledger(schema.features, epsilon, n_releases)
            for seed in perturbed.seeds:
                try:
                    noisy = multidimensional.perturb(matrix, schema.features, epsilon, generator(seed, epsilon))
                except ValueError as error:
                    raise PrivacyError(f"perturbed.{name}: {error}") from error
                table = pl.DataFrame(noisy, schema=schema.columns)
                table = table.insert_column(0, pl.Series("user", np.arange(len(noisy), dtype=np.int32)))
                contracts.write(table, folder / f"seed-{seed}.parquet", contracts.features_schema(schema.columns))
                records.append({"epsilon": epsilon, "seed": seed} | entry.model_dump(mode="json"))
        write_json(place / "schema.json", schema.model_dump(mode="json"))
        write_json(place / "ledger.json", records)


if __name__ == "__main__":
    run_stage(main)
