"""What a check looks at, and what all checks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tasks.config.params import Experiment, Suite
from tasks.core import contracts
from tasks.core.errors import DamagedError
from tasks.pipeline.common import RUNS
from tasks.quality.rules import Table


@dataclass(frozen=True)
class Subject:
    """What a check looks at.

    files: all files it reads; each must be there.
    tables: reads them and gives the tables with their rules; DataError if a file is not what it should be.
    """

    files: list[Path]
    tables: Callable[[], list[Table]]


def released_tables(key: str, experiment: Experiment, suite: Suite) -> dict[str, dict[tuple[str, int], Path]]:
    """Processed data -> the file of the lists that every setting and run of an experiment released on them."""
    folder, tables = RUNS / experiment.suite / key / "released", dict[str, dict[tuple[str, int], Path]]()
    for setting in experiment.settings():
        for run, data in suite.runs(experiment, setting).items():
            tables.setdefault(data, {})[setting, run] = folder / setting / f"seed-{run}.parquet"
    return tables


def require_types(tables: contracts.ProcessedTables) -> None:
    """Every column has its contract's type: what could merely be cast to it (a number in text) may hold anything.

    Raises:
        DataError: names the first that has not.
    """
    for name in tables.schema.tables:
        columns = tables.scan(name).collect_schema()
        for column, kind in pl.Schema(contracts.table_schema(name, tables.schema)).items():
            if columns[column] != kind:
                path = tables.folder / f"{name}.parquet"
                raise DamagedError(f"{path}: column {column!r} is {columns[column]}, not {kind}; run preprocess again")
    for network in tables.schema.networks:
        require_types(tables.network(network))
