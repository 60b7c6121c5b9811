"""Which settings of a system vary one key of its configuration, and at which values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tasks.reporting.core.results import BASE, Results, System

NAMES = {
    "epsilon": "ε",
    "epsilon_max": "ε_max",
    "features_epsilon": "ε of the features",
    "edges_epsilon": "ε of the friendships",
    "text_epsilon": "ε of the texts",
    "dimension": "d",
    "steps": "T",
    "clip": "C",
    "beta": "β",
    "sensitive_share": "x",
}
"""What swept keys are called where they are shown."""
PERTURBED = {"features_epsilon": "feature", "edges_epsilon": "edge", "text_epsilon": "text"}
"""Budgets of perturbed data -> what they protect, as the ledger names it."""


def swept(results: Results, system: System) -> dict[str, dict[float, str]]:
    """Key -> value -> setting, for settings that vary one numeric key; the base value is added where it is known."""
    values: dict[str, dict[float, str]] = {}
    for setting in results.settings(system):
        key, _, value = setting.partition("=")
        position = as_number(value)
        if "," not in setting and position is not None:
            values.setdefault(key, {})[position] = setting
    for key, settings in values.items():
        base = base_value(system, key)
        if base is not None:
            settings.setdefault(base, BASE)
    return {key: dict(sorted(settings.items())) for key, settings in values.items()}


def settings_along(
    results: Results, system: System, key: str, at: Mapping[str, float] | None = None
) -> dict[float, str]:
    """Value of `key` -> setting, where every other numeric key is as in `at`, or as at setting `base`.

    A key that the system does not have (a model without noise has no ε) is as in `at` whatever it is. Settings may
    name several keys, in any order, and values that they share with `base`.
    """
    others = dict(at or {})
    settings: dict[float, str] = {}
    for setting in results.settings(system):
        keys = parse_setting(setting)
        if keys is None:
            continue
        known = {name: _base(results, system, name) for name in {*keys, *others, key}} | keys
        value = known.pop(key)
        if value is not None and all(
            known[name] is None or known[name] == others.get(name, _base(results, system, name)) for name in known
        ):
            settings.setdefault(value, setting)
    return dict(sorted(settings.items()))


def find_setting(results: Results, system: System, at: Mapping[str, float]) -> str | None:
    """The setting with these values, all other keys as at setting `base`; None where it was not run."""
    if not at:
        return BASE
    key = next(iter(at))
    if _base(results, system, key) is None and not any(
        key in (parse_setting(setting) or {}) for setting in results.settings(system)
    ):
        return find_setting(results, system, {name: value for name, value in at.items() if name != key})
    rest = {name: value for name, value in at.items() if name != key}
    return settings_along(results, system, key, rest).get(at[key])


def parse_setting(setting: str) -> dict[str, float] | None:
    """Key -> value of a setting; None where it varies something that is no number."""
    pairs = [part.partition("=") for part in setting.split(",")] if setting != BASE else []
    values = {key: as_number(value) for key, _, value in pairs}
    numbers = {key: value for key, value in values.items() if value is not None}
    return numbers if len(numbers) == len(values) else None


def value_at(system: System, setting: str, key: str) -> float | None:
    """The value of a key at a setting, that of setting `base` where it is not varied; None where it is no number."""
    varied = dict(part.partition("=")[::2] for part in setting.split(","))
    return as_number(varied[key]) if key in varied else base_value(system, key)


def as_number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        return None
    return result if math.isfinite(result) else None


def _base(results: Results, system: System, key: str) -> float | None:
    known = base_value(system, key)
    return results.layout.bases.get(key) if known is None else known


def base_value(system: System, key: str) -> float | None:
    """The value of a swept key at setting `base`, where it is known."""
    if key in PERTURBED:  # chosen by the perturbed data, not by the model's configuration
        spent = (
            release.entry
            for release in system.spent
            if release.setting == BASE and release.entry.protects == PERTURBED[key]
        )
        return next((entry.claimed_epsilon for entry in spent if entry.claimed_epsilon is not None), None)
    return as_number(system.config.get(key))
