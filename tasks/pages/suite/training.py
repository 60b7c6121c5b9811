"""How training went, what changes with one key of a configuration, and what was tried on validation data."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from tasks.evaluation.run_numbers import split_of
from tasks.results.facts import System
from tasks.results.load import Results
from tasks.results.standings import Measure
from tasks.results.sweeps import sweeps

CURVES = ("loss", "valid", "friendships")
"""Columns of HISTORY that are drawn."""


def training(results: Results, by: Measure, entries: pl.DataFrame, validation: str) -> dict[str, Any]:
    """What fills `suite/training.html.j2`.

    Args:
        entries: `tasks.results.standings.ENTRIES`.
        validation: the metric that chose epochs.
    """
    by_run = {run.name: run for run in results.runs if run.stage == "train"}
    trained = [system for system in results.suite.systems if system.experiment in set(results.history["experiment"])]
    table = sweeps(results, by, entries)
    return {
        "by": by,
        "validation": results.suite.validation or validation,
        "curves": [{"label": system.label, **_curves(results, system)} for system in trained],
        "trained": [_trained(results, system, by_run.get(system.experiment)) for system in trained],
        "sweeps": _panels(table),
        "settings": _settings(results, by),
        "tuning": _tuning(results),
    }


def _curves(results: Results, system: System) -> dict[str, Any]:
    """`rows`: means by epoch over the runs of the first split, as far as all went; `columns`: `CURVES` with any.

    A line is of one network, of data that are a pair.
    """
    history = results.history.filter(experiment=system.experiment).with_columns(pl.col("network").fill_null(""))
    history = history.filter(pl.col("seed").is_in([seed for seed in system.seeds if not split_of(seed)]))
    grouped = history.group_by("network", "epoch", maintain_order=True).agg(
        pl.len().alias("n"), *(pl.col(name).mean() for name in CURVES)
    )
    grouped = grouped.filter(pl.col("n") == pl.col("n").max().over("network")).sort("network", "epoch")
    columns = [name for name in CURVES if grouped[name].is_not_null().any()]
    return {"rows": grouped.rename({"network": "name", "epoch": "x"}).to_dicts(), "columns": columns}


def _trained(results: Results, system: System, run: Any) -> dict[str, Any]:
    """Epochs, seconds, and how many runs the cap on epochs ended."""
    lengths = (
        results.history.filter(experiment=system.experiment).group_by("seed", "network").agg(n=pl.col("epoch").max())
    )
    return {
        "label": system.label,
        "least": lengths["n"].min(),
        "most": lengths["n"].max(),
        "epoch_seconds": run and run.epoch_seconds,
        "training_seconds": run and run.training_seconds,
        "cut_off": sum(len(seeds) for seeds in system.cut_off.values()),
        "cut_settings": list(system.cut_off),
    }


def _panels(table: pl.DataFrame) -> list[dict[str, Any]]:
    """A panel for each key, or each level of ε that keys say, and further keys: `key`, `level`, `others`, `rows`."""
    panels: dict[tuple[str, str, tuple[str, ...]], list[dict[str, Any]]] = {}
    for row in table.to_dicts():
        panel = panels.setdefault(("" if row["level"] else row["key"], row["level"], tuple(row["other_keys"])), [])
        panel.append({"name": row["label"], "x": row["value"], **row})
    result = [
        {"key": key, "level": level, "others": other_keys, "rows": rows}
        for (key, level, other_keys), rows in panels.items()
    ]
    return sorted(result, key=lambda panel: len(panel["others"]))


def _settings(results: Results, by: Measure) -> list[dict[str, Any]]:
    """Every setting of every compared system with its utility over runs."""
    order = [
        (system.experiment, setting, system.label) for system in results.suite.compared for setting in system.settings()
    ]
    means = results.means.filter(metric=by.metric, k=by.k).rename({"mean": "utility", "std": "utility_std"})
    named = pl.DataFrame(order, ["experiment", "setting", "label"], orient="row")
    return named.join(means, on=["experiment", "setting"], maintain_order="left").to_dicts()


def _tuning(results: Results) -> list[dict[str, Any]]:
    """Trials, the best of each system first, each with the keys whose values differ between its system's trials."""
    by_system: dict[str, list[dict[str, Any]]] = {}
    for row in results.tuning.to_dicts():
        by_system.setdefault(row["experiment"], []).append(row | {"config": json.loads(row["config"])})
    result = []
    for experiment, trials in by_system.items():
        keys = sorted({key for trial in trials for key in trial["config"]})
        varied = [key for key in keys if len({json.dumps(trial["config"].get(key)) for trial in trials}) > 1]
        for trial in sorted(trials, key=lambda trial: -trial["valid"]):
            config = {key: trial["config"][key] for key in varied if key in trial["config"]}
            result.append(trial | {"label": results.labels.get(experiment, experiment), "config": json.dumps(config)})
    return result
