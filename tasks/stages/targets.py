"""Stage `targets`: which users of a suite's data must be guessed, chosen once for all attacks and kept.

Writes data/targets/<suite>.parquet: every user, and whether it is a target. Attackers know the labels of all others.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from tasks.attacks.targets import split_users
from tasks.config.attacks import AttributeAttack
from tasks.config.params import attack_of, load
from tasks.core import contracts
from tasks.core.contracts import Schema
from tasks.core.errors import DataError
from tasks.datasets.encoding import classes
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import PROCESSED, atomic_write, require_passed

FOLDER = Path("data/targets")
TARGETS = contracts.contract(user=contracts.INT, target=pa.bool_())


def main(name: str) -> None:
    """Choose the targets of suite `name`."""
    params = load()
    attack = attack_of(name, params, AttributeAttack)
    data = params.suites[name].data
    require_passed("processed", data)
    schema, labels = read_labels(data)
    chosen = split_users(schema.n_users, attack.target_share, attack.split_seed, labels)
    table = pl.DataFrame({"user": np.arange(schema.n_users, dtype=np.int32), "target": chosen})
    with atomic_write(FOLDER / f"{name}.parquet") as target:
        contracts.write(table, target, TARGETS)


def read_labels(data: str) -> tuple[Schema, dict[str, NDArray[np.int64]]]:
    """The class of every user of a processed data set in each sensitive attribute.

    Raises:
        DataError: nothing is marked sensitive, or an attribute has no classes.
    """
    folder = PROCESSED / data
    schema = contracts.read_schema(folder / "schema.json")
    if not schema.sensitive:
        raise DataError(f"{folder}/schema.json: no feature is marked sensitive; there is nothing to infer")
    people = contracts.read(folder / "users.parquet", contracts.users_schema(schema.features))
    return schema, classes(people, schema.sensitive)


def read_targets(suite: str) -> NDArray[np.bool_]:
    """(n_users,) whether a user is a target in all attacks of a suite."""
    return contracts.read(FOLDER / f"{suite}.parquet", TARGETS).sort("user")["target"].to_numpy()


if __name__ == "__main__":
    run_stage(main)
