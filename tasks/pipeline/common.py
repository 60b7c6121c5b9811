"""What every stage needs: where things lie, outputs that appear whole or not at all, and one-line errors."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from tasks.core.disk import atomic_write as atomic_write
from tasks.core.disk import remove as remove
from tasks.core.disk import text_digest as text_digest
from tasks.core.errors import DamagedError, DataError

DATA = Path("data")
RAW = DATA / "raw"
INTERIM = DATA / "interim"
PLACED = DATA / "placed"
PROCESSED = DATA / "processed"
PERTURBED = DATA / "perturbed"
WORDS = DATA / "words"
QUALITY = DATA / "quality"
RUNS = DATA / "runs"
REPORTS = DATA / "reports"
RESULTS = DATA / "results"
REFERENCE = DATA / "reference"
CHECKPOINTS = DATA / "checkpoints"
PROVENANCE = DATA / "provenance"
CACHE = Path(".dvc/cache")
OF_SUITE = ("embeddings", "aligned")
"""Layers that a suite describes itself."""
SUMMARY = ("contract", "name", "success", "evaluated", "failed")
"""Of a check's verdict, what a run remembers."""


def private() -> None:
    """Let only the user read what this process writes from here on, in the project's folder: users' rows.

    DVC gives the files of its cache a mode of its own, so the folder is closed, also one that `dvc pull` made. Other
    folders that are there already stay as they are, as their owner may share them on purpose.
    """
    os.umask(0o077)
    if os.access(CACHE.parent, os.W_OK):
        CACHE.mkdir(exist_ok=True)
        if not CACHE.is_symlink() and CACHE.stat().st_uid == os.getuid():
            CACHE.chmod(0o700)


def copy(source: Path, target: Path) -> None:
    """Copy a file, with the folders above it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def write_json(path: Path, value: object) -> None:
    """Write JSON that is the same, byte for byte, for the same value; NaN and infinity are refused."""
    path.write_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read JSON.

    Raises:
        DataError: the file is missing or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: not found; run the stage that writes it (dprec check shows which)") from None
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path}: not readable as JSON ({error}); delete it and run its stage again") from error


def digest(*paths: Path) -> str:
    """SHA-256 of files and folders: names (within folders) and contents, independent of the file system's order."""
    state = hashlib.sha256()
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            if "__pycache__" in file.parts:
                continue
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            content = file.read_bytes()
            state.update(f"{len(name)} {name} {len(content)} ".encode())
            state.update(content)
    return state.hexdigest()


def address(stage: str, suite: str | None) -> str:
    """DVC's address of a stage that lies in a suite's own folder; None: of one that prepares data."""
    return f"suites/{suite}/dvc.yaml:{stage}" if suite else f"data/dvc.yaml:{stage}"


def require_passed(layer: str, name: str, suite: str | None = None) -> dict[str, object]:
    """The check of `data/<layer>/<name>`, which must have passed for the files as they are now.

    Args:
        suite: in whose folder the check is described; None for checks of data.

    Returns:
        A summary for `inputs.json`: contract, name, and how many expectations were met.

    Raises:
        DataError: the check is missing or failed, or a file is no longer the one that was checked.
    """
    path = QUALITY / layer / f"{name}.json"
    result = read_json(path)
    stage = f"check-{layer}@{name}"
    again = f"`dvc repro {address(stage, suite)}`"
    if not result["success"]:
        raise DataError(f"{path}: these data failed their check; mend them and run {again}")
    for file, sha256 in result["checked"].items():
        if not Path(file).is_file() or file_digest(Path(file)) != sha256:
            raise DataError(f"{file}: not the file that was checked; run `dprec scrub`, then {again}")
    return {key: result[key] for key in SUMMARY}


def require_inputs(data: str, read: str, suite: str) -> list[dict[str, object]]:
    """The checks of processed data, and of the layer that what a suite learns from is read from: LAYER/NAME."""
    layer, _, name = read.partition("/")
    checks = [require_passed("processed", data)]
    if layer != "processed":
        checks.append(require_passed(layer, name, suite if layer in OF_SUITE else None))
    return checks


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
