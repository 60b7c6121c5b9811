"""What a check looks at, and what all checks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pyarrow as pa

from tasks import contracts
from tasks.config.params import Experiment, Suite
from tasks.errors import DataError
from tasks.quality.rules import Table
from tasks.stages.common import PROCESSED, RUNS

ListRules = Callable[[dict[tuple[str, int], pl.DataFrame], pl.DataFrame, contracts.Schema, int], list[Table]]
Names = list[tuple[str, int | None]]
"""Metrics that must have been measured, each with its cut-off (None: it has none)."""


@dataclass(frozen=True)
class Subject:
    """What a check looks at.

    files: all files it reads; each must be there.
    tables: reads them and gives the tables with their rules; DataError if a file is not what it should be.
    """

    files: list[Path]
    tables: Callable[[], list[Table]]


def released_tables(key: str, experiment: Experiment, suite: Suite) -> dict[str, dict[tuple[str, int], Path]]:
    """Processed data -> the released table of every setting and run of an experiment on them."""
    folder, tables = RUNS / experiment.suite / key / "released", dict[str, dict[tuple[str, int], Path]]()
    for setting in experiment.settings():
        for run, data in suite.runs(experiment, setting).items():
            tables.setdefault(data, {})[setting, run] = folder / setting / f"seed-{run}.parquet"
    return tables


def released_lists(
    key: str,
    experiment: Experiment,
    suite: Suite,
    contract: pa.Schema,
    rules: ListRules,
) -> Subject:
    """Lists of an experiment, beside the interactions that it learnt from.

    contract: of each list. rules: (lists, interactions, schema, longest) -> the tables with their rules.
    """
    files = {PROCESSED / data: released for data, released in released_tables(key, experiment, suite).items()}

    def tables() -> list[Table]:
        every = []
        for data, released in files.items():
            lists = {which: contracts.read(file, contract) for which, file in released.items()}
            interactions = contracts.read(data / "interactions.parquet", contracts.INTERACTIONS)
            held = rules(lists, interactions, contracts.read_schema(data / "schema.json"), max(suite.evaluation.k))
            own = data.name == experiment.data
            every += [table if own else replace(table, name=f"{table.name}, {data.name}") for table in held]
        return every

    learnt = [data / file for data in files for file in ("interactions.parquet", "schema.json")]
    return Subject([*(file for released in files.values() for file in released.values()), *learnt], tables)


def require_types(tables: contracts.ProcessedTables) -> None:
    """Every column has its contract's type: what could merely be cast to it (a number in text) may hold anything.

    Raises:
        DataError: names the first that has not.
    """
    for name in tables.schema.tables:
        columns = tables.scan(name).collect_schema()
        empty = pl.from_arrow(contracts.table_schema(name, tables.schema).empty_table())
        assert isinstance(empty, pl.DataFrame)
        for column, kind in empty.schema.items():
            if columns[column] != kind:
                path = tables.folder / f"{name}.parquet"
                raise DataError(f"{path}: column {column!r} is {columns[column]}, not {kind}; run preprocess again")
    for network in tables.schema.networks:
        require_types(tables.network(network))
