"""Which settings of a system have which values of its configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tasks.results.facts import BASE, System
from tasks.results.load import Results

PERTURBED = {"features_epsilon": "feature", "edges_epsilon": "edge", "text_epsilon": "text"}
"""Budgets of perturbed data -> what they protect, as the ledger names it."""


def find_setting(results: Results, system: System, wanted: Mapping[str, Any]) -> str | None:
    """The measured setting with these values; all other keys are as at `base`. None where it was not run."""

    def effective(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: comparable(value) for key, value in values.items() if comparable(value) != base.get(key)}

    base = {key: comparable(value) for key, value in system.config.items()}
    known, sought = system.settings(), effective(wanted)
    return next((name for name in results.settings(system.experiment) if effective(known[name]) == sought), None)


def comparable(value: Any) -> Any:
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


def swept(results: Results, system: System) -> dict[str, dict[float, str]]:
    """Key -> value -> setting, for settings that vary one numeric key; the base value is added where it is known."""
    values: dict[str, dict[float, str]] = {}
    known = system.settings()
    for setting in results.settings(system.experiment):
        if len(known[setting]) == 1:
            ((key, value),) = known[setting].items()
            if (position := as_number(value)) is not None:
                values.setdefault(key, {})[position] = setting
    for key, settings in values.items():
        base = base_value(results, system, key)
        if base is not None:
            settings.setdefault(base, BASE)
    return {key: dict(sorted(settings.items())) for key, settings in values.items()}


def base_value(results: Results, system: System, key: str) -> float | None:
    """The value of a swept key at setting `base`, where it is known."""
    if key in PERTURBED:  # chosen by the perturbed data, not by the model's configuration
        claims = (
            line.entry.claimed_epsilon
            for line in results.lines
            if (line.experiment, line.setting) == (system.experiment, BASE) and line.entry.protects == PERTURBED[key]
        )
        return next((claim for claim in claims if claim is not None), None)
    return as_number(system.config.get(key))


def along(
    results: Results,
    system: System,
    key: str,
    at: Mapping[str, float],
    bases: Mapping[str, float],
) -> dict[float, str]:
    """Value of `key` -> setting, where every other numeric key is as in `at`, or as at setting `base`.

    A key that the system does not have (a model without noise has no ε) is as in `at` whatever it is.

    bases: values at `base` of keys that the data of a run say, not its model's configuration.
    """

    def base(name: str) -> float | None:
        known = base_value(results, system, name)
        return bases.get(name) if known is None else known

    settings: dict[float, str] = {}
    known = system.settings()
    for setting in results.settings(system.experiment):
        keys = {name: as_number(value) for name, value in known[setting].items()}
        if None in keys.values():
            continue
        values = {name: base(name) for name in {*keys, *at, key}} | keys
        value = values.pop(key)
        if value is not None and all(
            values[name] is None or values[name] == at.get(name, base(name)) for name in values
        ):
            settings.setdefault(value, setting)
    return dict(sorted(settings.items()))


def at_values(results: Results, system: System, at: Mapping[str, float], bases: Mapping[str, float]) -> str | None:
    """The setting with these values, all other keys as at setting `base`; None where it was not run."""
    if not at:
        return BASE
    key, *_ = at
    rest = {name: value for name, value in at.items() if name != key}
    known = base_value(results, system, key)
    if (bases.get(key) if known is None else known) is None and not any(
        key in values for values in system.settings().values()
    ):
        return at_values(results, system, rest, bases)
    return along(results, system, key, rest, bases).get(at[key])
