"""Which settings of a system have which values of its configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tasks.results.facts import BASE, System
from tasks.results.load import Results

PERTURBED = {"features_epsilon": "feature", "edges_epsilon": "edge", "text_epsilon": "text"}
"""Budgets of perturbed data -> what they protect, as the ledger names it, and their level."""


Values = Mapping[str, Any]


def find_setting(results: Results, system: System, wanted: Values, bases: Values | None = None) -> str | None:
    """The measured setting with these values; all other keys are as at `base`. None where it was not run.

    bases: values at `base` of keys that the data of a run say, not its model's configuration.
    """

    def effective(values: Values) -> dict[str, Any]:
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


def at_base(results: Results, system: System) -> dict[str, Any]:
    """Key -> comparable value at setting `base`, as far as they are known: those of perturbed data by the ledger."""
    values = {key: comparable(value) for key, value in system.config.items() if value is not None}
    lines = [line for line in results.lines if (line.experiment, line.setting) == (system.experiment, BASE)]
    claims = {line.entry.protects: line.entry.claimed_epsilon for line in reversed(lines) if line.entry.claimed_epsilon}
    return values | {key: claims[kind] for key, kind in PERTURBED.items() if kind in claims}


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
