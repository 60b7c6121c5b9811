"""Which settings of a system have which values of its configuration, and what changes with one key of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from tasks.results.facts import BASE, BUDGET_KEYS, System
from tasks.results.load import Results

if TYPE_CHECKING:
    from tasks.core.rows import Columns
    from tasks.results.standings import Measure

PERTURBED = {"features_epsilon": "feature", "edges_epsilon": "edge", "text_epsilon": "text"}
"""Budgets of perturbed data -> what they protect, as the ledger names it, and their level."""
SWEEPS: Columns = {
    **dict.fromkeys(("experiment", "label", "setting", "key", "level"), pl.String),
    **{"value": pl.Float64, "others": pl.String, "other_keys": pl.List(pl.String)},
    **{"utility": pl.Float64, "utility_std": pl.Float64, "n": pl.Int64},
}
Values = Mapping[str, Any]


def find_setting(results: Results, system: System, wanted: Values, bases: Values | None = None) -> str | None:
    """The measured setting with these values; all other keys are as at `base`. None where it was not run.

    bases: values at `base` of keys that the data of a run say, not its model's configuration.
    """

    def effective(values: Values) -> dict[str, object]:
        return {key: comparable(value) for key, value in values.items() if comparable(value) != base.get(key)}

    base = dict(bases or {}) | at_base(results, system)
    settings, sought = system.settings(), effective(wanted)
    return next((name for name in results.settings(system.experiment) if effective(settings[name]) == sought), None)


def along(
    results: Results, system: System, key: str, at: Values | None = None, bases: Values | None = None
) -> dict[float, str]:
    """Value of `key` -> setting, where every other key is as in `at`, or as at setting `base`.

    A key that the system does not have (a model without noise has no ε) is as in `at` whatever it is.

    bases: as of `find_setting`.
    """
    fixed, base = dict(at or {}), dict(bases or {}) | at_base(results, system)
    points, settings = system.settings(), dict[float, str]()
    for setting in results.settings(system.experiment):
        values = base | {name: comparable(value) for name, value in points[setting].items()}
        value = as_number(values.get(key))
        other_keys = (points[setting].keys() | fixed.keys()) - {key}
        if value is not None and all(
            values.get(name) in (None, fixed.get(name, base.get(name))) for name in other_keys
        ):
            settings.setdefault(value, setting)
    return dict(sorted(settings.items()))


def at_base(results: Results, system: System) -> dict[str, object]:
    """Key -> comparable value at setting `base`, as far as they are known: those of perturbed data by the ledger."""
    values = {key: comparable(value) for key, value in system.config.items() if value is not None}
    entries = [line.entry for line in reversed(results.lines_of(system.experiment))]
    claims = {entry.protects: entry.claimed_epsilon for entry in entries if entry.claimed_epsilon}
    return values | {key: claims[kind] for key, kind in PERTURBED.items() if kind in claims}


def comparable(value: object) -> object:
    """A value of a configuration, the same for 1, 1.0 and "1"."""
    number = as_number(value)
    return str(value) if number is None or isinstance(value, bool) else number


def as_number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        return None
    return result if math.isfinite(result) else None


def sweeps(results: Results, by: Measure, entries: pl.DataFrame) -> pl.DataFrame:
    """`SWEEPS`: a row for each setting of a compared system and numeric key that it varies, on `on_swept` splits.

    `level`: of the ε that a key says; empty for other keys. `others`: further keys that a setting varies, with their
    values (`other_keys`: without); settings without any have the setting `base` on their line. A line has two points
    or more.

    entries: `tasks.results.standings.ENTRIES`, for the level and the value at `base`.
    """
    rows: list[dict[str, object]] = []
    for system in results.suite.compared:
        points, budget_rows = list[dict[str, Any]](), entries.filter(experiment=system.experiment, setting=BASE)
        levels = dict(budget_rows.select("level", "claimed").iter_rows())
        for setting in results.settings(system.experiment):
            keys = system.settings()[setting]
            varied = {key: value for key, value in keys.items() if value != system.config.get(key)}
            runs = results.on_swept(results.values(system.experiment, by.metric, by.k, setting))
            for key, value in varied.items() if runs else ():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    fixed = {name: varied[name] for name in sorted(varied) if name != key}
                    about = {"setting": setting, "key": key, "level": _level(system, key, levels), "value": value}
                    points.append(about | _measured(fixed, runs))
        base = results.on_swept(results.values(system.experiment, by.metric, by.k))
        for key, level in sorted({(row["key"], row["level"]) for row in points if not row["others"]}):
            value = system.config.get(key, levels.get(level))
            if isinstance(value, int | float) and base:
                about = {"setting": BASE, "key": key, "level": level, "value": value}
                points.append(about | _measured({}, base))
        rows += [{"experiment": system.experiment, "label": system.label, **point} for point in points]
    table = pl.DataFrame(rows, schema=SWEEPS).filter(pl.len().over(pl.struct("experiment", "key", "others")) > 1)
    return table.sort("key", "level", "value", maintain_order=True)


def _level(system: System, key: str, levels: dict[str, float | None]) -> str:
    """The level of the ε that a key says: the one with this claim at `base`, or else the only one with a claim."""
    if key not in BUDGET_KEYS:
        return PERTURBED.get(key, "")
    claimed = [level for level, claim in levels.items() if claim is not None]
    return next((level for level in claimed if levels[level] == system.config.get(key)), next(iter(claimed), ""))


def _measured(fixed: Values, runs: Mapping[int, float]) -> dict[str, object]:
    """What further keys of a setting are held at, and its utility over runs."""
    values = pl.Series(list(runs.values()), dtype=pl.Float64)
    about = {"others": ", ".join(f"{name} = {fixed[name]}" for name in fixed), "other_keys": list(fixed)}
    return about | {"utility": values.mean(), "utility_std": values.std(), "n": len(values)}
