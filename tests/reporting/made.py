"""What made-up results are put together from: frames of metrics, provenance. No number here is a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from tasks.evaluation.gains import GAINS
from tasks.reporting.core.results import Processed, Run, System
from tests.reporting.example import ROOT


def metrics(suite: str, system: System, rows: Iterable[tuple[str, str, int | None, int, float]]) -> pl.DataFrame:
    """METRICS of one system from (setting, metric, k, seed, value)."""
    about = {"suite": suite, "experiment": system.experiment, "dataset": "made-up", "model": system.name}
    return pl.DataFrame(
        [
            about | {"setting": setting, "seed": seed, "metric": metric, "k": k, "value": value}
            for setting, metric, k, seed, value in rows
        ],
        schema_overrides={"k": pl.Int64},
    )


HERE = "the suite's own"
"""Data of a system of a made-up suite, until `shell` knows them."""


def about(config: dict[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """The fields of `System` that say how it was run."""
    return {"dataset": HERE, "seeds": tuple(seeds), "parameters": {"config": config}, "cut_off": {}}


def run(stage: str, name: str, **changes: Any) -> Run:
    """The provenance of a stage."""
    fields = {
        "revision": "0123456789abcdef",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "cpu_seconds": 1.0,
    }
    machine = {"peak_memory_mb": 1, "processor": "made up", "cores": 2, "packages": {"numpy": "0"}}
    return Run(stage, name, **fields | machine | changes)


def shell(suite: str, dataset: str, systems: tuple[System, ...]) -> dict[str, Any]:
    """The fields of `Results` that say nothing of a suite's own kind; systems that name no data are on its own."""
    trained = {"epoch_seconds": 2.0, "training_seconds": 20.0}
    return {
        "suite": suite,
        "title": "Made-up example",
        "paper": dataset.partition("-")[0],
        "dataset": dataset,
        "synthetic": False,
        "stands_for": "",
        "licence": "made up",
        "systems": tuple(replace(system, dataset=dataset) if system.dataset == HERE else system for system in systems),
        "runs": tuple(run("train", system.experiment, **(trained if system.history else {})) for system in systems),
        "gains": pl.DataFrame(
            schema={"experiment": pl.String, "model": pl.String} | dict(pl.from_arrow(GAINS.empty_table()).schema)
        ),
        "audit": (),
        "checks": ({"contract": "metrics", "name": suite, "success": True, "evaluated": 1, "failed": 0},),
        "published": pl.read_csv(ROOT / "data/reference/paper_tables.csv", schema_overrides={"value": pl.Float64}),
        "n_targets": 0,
        "attack": None,
        "processed": Processed(dataset, 0, ({"step": "made up", "users": 1, "items": 1, "interactions": 1},)),
        "counted": None,
        "limits": "",
        "validation": "",
        "one_run": (),
        "words": (),
        "part": "",
        "fingerprints": {},
    }
