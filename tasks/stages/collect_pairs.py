"""What `collect` keeps of users: differences of the systems that are compared, never what one user has."""

from __future__ import annotations

import polars as pl

from tasks import contracts
from tasks.config.fields import BASE
from tasks.config.params import Params
from tasks.config.planned import planned_pairs
from tasks.evaluation.pairs import BY_USER, PAIRS, compare
from tasks.stages.common import PROCESSED, RUNS


def compare_pairs(suite: str, params: Params) -> pl.DataFrame:
    """PAIRS of a suite: every planned pair at setting `base`, in the order of the plan.

    Raises:
        DataError: the runs of a system have no table of users, or not what its contract says.
    """
    planned = planned_pairs(params.suites[suite])
    users = {
        name: _read_users(suite, name, params) for name in dict.fromkeys(name for pair in planned for name in pair)
    }
    differences = [
        compare(users[a], users[b]).select(pl.lit(a).alias("a"), pl.lit(b).alias("b"), pl.all()) for a, b in planned
    ]
    return pl.concat([pl.DataFrame(schema=pl.Schema(PAIRS)), *differences])


def _read_users(suite: str, name: str, params: Params) -> pl.DataFrame:
    """BY_USER of all runs of an experiment, with the column `run`; users by published ids if it has several splits.

    Protocols may number the users of each split otherwise.
    """
    options = params.suites[suite]
    data_of_run = options.runs(options.experiments[name], BASE)
    tables = []
    for run, data in data_of_run.items():
        path = RUNS / suite / name / "train" / "users" / f"seed-{run}.parquet"
        table = contracts.read(path, BY_USER).with_columns(run=pl.lit(run, pl.Int64))
        if len(set(data_of_run.values())) > 1:
            ids = contracts.read(PROCESSED / data / "user_ids.parquet", contracts.ID_MAP)
            table = table.with_columns(pl.col("user").replace_strict(ids["id"], ids["original"]))
        tables.append(table)
    return pl.concat(tables)
