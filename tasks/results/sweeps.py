"""What changes with one key of a configuration: settings of a suite as points of lines."""

from __future__ import annotations

from typing import Any

import polars as pl

from tasks.results.facts import BASE, System
from tasks.results.load import Results, first_split
from tasks.results.settings import PERTURBED
from tasks.results.standings import Measure

BUDGET_KEYS = ("epsilon", "epsilon_max")
"""Keys of configurations that say a claimed ε; of which level, a system's ledger says."""
SWEEPS: dict[str, Any] = {
    **dict.fromkeys(("experiment", "label", "setting", "key", "level"), pl.String),
    "value": pl.Float64,
    "others": pl.String,
    "other_keys": pl.List(pl.String),
    "utility": pl.Float64,
    "utility_std": pl.Float64,
    "n": pl.Int64,
}


def sweeps(results: Results, by: Measure, entries: pl.DataFrame) -> pl.DataFrame:
    """`SWEEPS`: a row for each setting of a compared system and numeric key that it varies, the first split alone.

    `level`: of the ε that a key says; empty for other keys. `others`: further keys that a setting varies, with their
    values (`other_keys`: without); settings without any have the setting `base` on their line. A line has two points
    or more.

    entries: `tasks.results.standings.ENTRIES`, for the level and the value at `base`.
    """
    rows: list[dict[str, Any]] = []
    for system in results.suite.compared:
        points, budget_rows = list[dict[str, Any]](), entries.filter(experiment=system.experiment, setting=BASE)
        levels = dict(budget_rows.select("level", "claimed").iter_rows())
        for setting in results.settings(system.experiment):
            keys = system.settings()[setting]
            varied = {key: value for key, value in keys.items() if value != system.config.get(key)}
            runs = first_split(results.values(system.experiment, by.metric, by.k, setting))
            for key, value in varied.items() if runs else ():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    other_values = {name: varied[name] for name in sorted(varied) if name != key}
                    points.append(_row(system, setting, key, _level(system, key, levels), value, other_values, runs))
        base = first_split(results.values(system.experiment, by.metric, by.k))
        for key, level in sorted({(row["key"], row["level"]) for row in points if not row["others"]}):
            value = system.config.get(key, levels.get(level))
            if isinstance(value, int | float) and base:
                points.append(_row(system, BASE, key, level, value, {}, base))
        rows += points
    line = pl.struct("experiment", "key", "others")
    table = pl.DataFrame(rows, schema=SWEEPS).filter(pl.len().over(line) > 1)
    return table.sort("key", "level", "value", maintain_order=True)


def _level(system: System, key: str, levels: dict[str, float | None]) -> str:
    """The level of the ε that a key says: the one with this claim at `base`, or else the only one with a claim."""
    if key not in BUDGET_KEYS:
        return PERTURBED.get(key, "")
    claimed = [level for level, claim in levels.items() if claim is not None]
    return next((level for level in claimed if levels[level] == system.config.get(key)), next(iter(claimed), ""))


def _row(
    system: System,
    setting: str,
    key: str,
    level: str,
    value: float,
    other_values: dict[str, Any],
    measured: dict[int, float],
) -> dict[str, Any]:
    values = pl.Series(list(measured.values()), dtype=pl.Float64)
    about: dict[str, Any] = {"experiment": system.experiment, "label": system.label, "setting": setting, "key": key}
    about |= {
        "level": level,
        "value": float(value),
        "others": ", ".join(f"{name} = {other_values[name]}" for name in other_values),
    }
    about |= {"other_keys": list(other_values), "utility": values.mean(), "utility_std": values.std(), "n": len(values)}
    return about
