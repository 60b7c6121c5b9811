"""Which settings of a system vary one key of its configuration, and at which values."""

from __future__ import annotations

import math
from typing import Any

from tasks.reporting.results import BASE, Results, System

NAMES = {
    "epsilon": "ε",
    "epsilon_max": "ε_max",
    "features_epsilon": "ε of the features",
    "dimension": "d",
    "steps": "T",
    "clip": "C",
}
"""What swept keys are called where they are shown."""


def swept(results: Results, system: System) -> dict[str, dict[float, str]]:
    """Key -> value -> setting, for settings that vary one numeric key; the base value is added where it is known."""
    found: dict[str, dict[float, str]] = {}
    for setting in results.settings(system):
        key, _, value = setting.partition("=")
        position = as_number(value)
        if "," not in setting and position is not None:
            found.setdefault(key, {})[position] = setting
    for key, settings in found.items():
        base = _base_value(system, key)
        if base is not None:
            settings.setdefault(base, BASE)
    return {key: dict(sorted(settings.items())) for key, settings in found.items()}


def as_number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        return None
    return result if math.isfinite(result) else None


def _base_value(system: System, key: str) -> float | None:
    """The value of a swept key at setting `base`, where it is known."""
    if key == "features_epsilon":  # chosen by the perturbed data, not by the model's configuration
        spent = (one.entry for one in system.spent if one.setting == BASE and one.entry.protects == "feature")
        return next((entry.claimed_epsilon for entry in spent), None)
    return as_number(system.runs[0].record["parameters"]["config"].get(key))
