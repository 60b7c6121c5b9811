"""The project's parameters as one table, and written to the files that they are read from."""

import copy as copying
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tasks.config.params import OWN_FILES, load, own_file
from tasks.pipeline import keys, table

ROOT = Path(__file__).resolve().parents[1]
OF_ENTRIES = ("experiments", "embeddings", "aligned")
"""Sections of entries."""
_TEXTS: dict[str, str] = {}
"""What was written before, as YAML: a test changes one of fifty files."""
OWN = (
    *("title", "paper", "data", "task", "about", "evaluation", "training", "tuning", "attack", "training_audit"),
    *("defaults", *OF_ENTRIES),
)
"""What stands in the files of a suite's folder."""


def read(*suites: str) -> dict[str, Any]:
    """The project's params.yaml, and under `suites` what the files of every suite say, or of these alone.

    No `defaults`, but all keys in every entry.
    """
    raw = _read()
    return copying.deepcopy(raw | {"suites": {name: raw["suites"][name] for name in suites or raw["suites"]}})


@cache
def _read() -> dict[str, Any]:
    """The same, once."""
    raw = _load(ROOT / "params.yaml") | {"suites": {}}
    for folder in sorted(path for path in (ROOT / "suites").iterdir() if path.is_dir()):
        suite = raw["suites"].setdefault(folder.name, {})
        for file in OWN_FILES:
            suite |= _load(folder / file)
        for section, shared in suite.pop("defaults").items():
            suite[section] = {entry: copying.deepcopy(shared) | own for entry, own in suite[section].items()}
    return raw


def write(raw: dict[str, Any], place: Path) -> Path:
    """Write such a table below `place`; the path of the root's file."""
    path = place / "params.yaml"
    _dump({key: value for key, value in raw.items() if key != "suites"}, path)
    shutil.rmtree(place / "suites", ignore_errors=True)
    for name, suite in raw.get("suites", {}).items():
        for file in OWN_FILES:
            own = {key: value for key, value in suite.items() if own_file(name, path, key).name == file}
            _dump(own, place / "suites" / name / file)
    return path


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _dump(table: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if (known := repr(table)) not in _TEXTS:
        _TEXTS[known] = yaml.dump(table, Dumper=yaml.CSafeDumper, sort_keys=False)
    path.write_text(_TEXTS[known], encoding="utf-8")


def copy(place: Path) -> None:
    """Copy the project's files below `place`, comments included."""
    shutil.copy(ROOT / "params.yaml", place)
    for file in (file for own in OWN_FILES for file in (ROOT / "suites").glob(f"*/{own}")):
        to = place / file.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)


def fingerprint() -> None:
    """Write the fingerprints of the parameters in the current folder, as the stage `code` does."""
    params = load()
    result = keys.fingerprints(params)
    for file in table.dvc_files(params):
        path = Path(table.code_file(file))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result), encoding="utf-8")
