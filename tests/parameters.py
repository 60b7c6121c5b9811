"""The project's parameters as one table, and written to the files that they are read from."""

from __future__ import annotations

import copy as copying
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tasks.stages import code, table
from tasks.stages.params import load

ROOT = Path(__file__).resolve().parents[1]
OF_ENTRIES = ("experiments", "embeddings", "aligned")
"""Sections of entries."""
OWN = ("about", "evaluation", "training", "tuning", "attack", "training_audit", "defaults", *OF_ENTRIES)
"""What stands in a suite's own file."""


def read() -> dict[str, Any]:
    """The project's params.yaml, with what the suites' own files say among the entries of `suites`; no `defaults`, but
    all keys in every entry."""
    return copying.deepcopy(_read())


@cache
def _read() -> dict[str, Any]:
    """The same, once."""
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for name, suite in raw["suites"].items():
        suite |= yaml.safe_load((ROOT / "suites" / name / "params.yaml").read_text(encoding="utf-8"))
        for section, shared in suite.pop("defaults").items():
            suite[section] = {entry: copying.deepcopy(shared) | own for entry, own in suite[section].items()}
    return raw


def write(raw: dict[str, Any], place: Path) -> Path:
    """Write such a table below `place`; the path of the root's file."""
    root = dict(raw)
    if isinstance(raw.get("suites"), dict):
        root["suites"] = {
            name: {key: value for key, value in suite.items() if key not in OWN}
            for name, suite in raw["suites"].items()
        }
        for name, suite in raw["suites"].items():
            own = {key: suite[key] for key in OWN if key in suite}
            file = place / "suites" / name / "params.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml.dump(own, Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8")
    path = place / "params.yaml"
    path.write_text(yaml.dump(root, Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8")
    return path


def copy(place: Path) -> None:
    """Copy the project's files below `place`, comments included."""
    shutil.copy(ROOT / "params.yaml", place)
    for file in (ROOT / "suites").glob("*/params.yaml"):
        to = place / file.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)


def fingerprint() -> None:
    """Write the fingerprints of the parameters in the current folder, as the stage `code` does."""
    params = load()
    found = code.fingerprints(params)
    for file in table.dvc_files(params):
        path = Path(table.code_file(file))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found), encoding="utf-8")
