"""What stages took by the records of earlier runs, and what `make distclean` would remove.

Runs as `python -m flows.cost FOLDER...`, with nothing but Python's own library: what is to be cleared away may be
the leftovers of a project whose environment is gone.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tasks.core.rows import Row


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; a link counts as itself, a file with two names once."""
    within = path.rglob("*") if path.is_dir() and not path.is_symlink() else ()
    files = [os.lstat(each) for each in (path, *within)]
    return sum({(stat.st_dev, stat.st_ino): stat.st_size for stat in files}.values())


def recorded_seconds(root: Path) -> dict[tuple[str, str], float]:
    """`kind_and_name` -> seconds: of the runs in data/provenance, else of those whose results git keeps.

    Of all suites: what stages of a new one take is guessed by their kind.
    """
    committed = sorted(root.glob("data/results/*/provenance.json"))
    runs = [run for path in committed for run in json.loads(path.read_text(encoding="utf-8"))["runs"]]
    return {kind_and_name(run["stage"], run["name"]): float(run["seconds"]) for run in (*runs, *_records(root))}


def kind_and_name(stage: str, name: str) -> tuple[str, str]:
    """The kind of a stage and its name, the same for what DVC calls it and for what its records do.

    Records have a module and its argument: what DVC calls `train` may be recorded as `train-networks`, and
    `check-raw@demo` is recorded as `check` of `raw/demo`.
    """
    if stage == "check":
        layer, _, name = name.partition("/")
        return f"check-{layer}", name
    return re.sub(r"^(train|attack)-.+$", r"\1", stage), name


def _records(root: Path) -> Iterator[Row]:
    for path in sorted(root.glob("data/provenance/**/*.json")):
        with suppress(ValueError):  # a damaged record
            yield json.loads(path.read_text(encoding="utf-8"))


def main(folders: list[str]) -> None:
    """Print what there is below the folders, and how long it took to compute."""
    existing = [Path(folder) for folder in folders if Path(folder).exists()]
    if not existing:
        print("nothing is there to remove")
        return
    print("to be removed:")
    for folder in existing:
        print(f"  {size(folder) / 1e6:12,.1f} MB  {folder}")
    seconds: Counter[str] = Counter()
    for record in _records(Path()):
        seconds[record["stage"]] += record["seconds"]
    if seconds:
        print("to compute it again, one stage after another, as far as that is on record:")
        for stage, total in seconds.most_common():
            print(f"  {total / 3600:8.2f} hours  {stage}")
    print("what was downloaded must be downloaded again; data/placed, data/results and the environment stay")


if __name__ == "__main__":
    main(sys.argv[1:])
