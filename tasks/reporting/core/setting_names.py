"""Names of settings (`key=value,...`): their parts, and their order."""

from __future__ import annotations

from typing import Any

BASE = "base"


def parts(setting: str) -> set[tuple[str, str]]:
    """Key and value of everything that a setting names; nothing of `base`."""
    pairs = [part.partition("=") for part in setting.split(",")] if setting != BASE else []
    return {(key, comparison_text(value)) for key, _, value in pairs}


def comparison_text(value: Any) -> str:
    """A value of a configuration as text, the same for 1 and 1.0."""
    text = str(value)
    try:
        return f"{float(text):.17g}"
    except ValueError:
        return text


def by_value(setting: str) -> tuple[str, float, str]:
    """Sorts "epsilon=5.0" before "epsilon=10.0"."""
    key, _, value = setting.partition("=")
    try:
        return key, float(value), setting
    except ValueError:
        return key, 0.0, setting
