"""What made-up results are put together from: frames of metrics, records of runs. No number here is a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from tasks.evaluation.gains import GAINS
from tasks.reporting.results import System
from tests.reporting.example import ROOT


def metrics(suite: str, system: System, rows: Iterable[tuple[str, str, int | None, int, float]]) -> pl.DataFrame:
    """METRICS of one system from (setting, metric, k, seed, value)."""
    about = {"suite": suite, "experiment": system.experiment, "dataset": "made-up", "model": system.model}
    return pl.DataFrame(
        [
            about | {"setting": setting, "seed": seed, "metric": metric, "k": k, "value": value}
            for setting, metric, k, seed, value in rows
        ],
        schema_overrides={"k": pl.Int64},
    )


def record(config: dict[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """A run's record."""
    return {
        "git_revision": "0123456789abcdef",
        "parameters": {"config": config},
        "seeds": list(seeds),
        "checks": [],
        "packages": {"numpy": "0"},
        "wall_seconds": 1.0,
        "peak_memory_mb": 1.0,
    }


def shell(suite: str, dataset: str, systems: tuple[System, ...]) -> dict[str, Any]:
    """The fields of `Results` that say nothing of a suite's own kind; runs that name no data are on the suite's own."""
    for run in (run for system in systems for run in system.runs):
        run.record.setdefault("dataset", dataset)
    return {
        "suite": suite,
        "title": "Made-up example",
        "dataset": dataset,
        "synthetic": False,
        "licence": "made up",
        "systems": systems,
        "gains": pl.DataFrame(
            schema={"experiment": pl.String, "model": pl.String} | dict(pl.from_arrow(GAINS.empty_table()).schema)
        ),
        "audit": (),
        "verdict": {"contract": "metrics", "name": suite, "success": True, "evaluated": 1, "failed": 0},
        "published": pl.read_csv(ROOT / "data/reference/paper_tables.csv", schema_overrides={"value": pl.Float64}),
        "n_targets": 0,
    }
