"""What `collect` keeps of attacks beyond their metrics."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks import contracts
from tasks.config.params import Params
from tasks.errors import DataError
from tasks.evaluation.gains import GAINS
from tasks.stages.common import RUNS


def attribute(suite: str, params: Params) -> dict[str, Any]:
    """What attribute inference gains over its controls."""
    tables = []
    for name, experiment in params.suites[suite].experiments.items():
        gains = contracts.read(RUNS / suite / name / "attack/gains.parquet", GAINS)
        tables.append(
            gains.select(pl.lit(name).alias("experiment"), pl.lit(experiment.system).alias("model"), pl.all())
        )
    return {"gains": pl.concat(tables)}


def edges(suite: str, _: Params) -> dict[str, Any]:
    """What the attack on single interactions found.

    Raises:
        DataError: its table cannot be read.
    """
    path = RUNS / suite / "edges/edges.parquet"
    try:
        return {"edges": pl.read_parquet(path)}
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: not readable ({error}); run attack-edges again") from error
