"""What `make distclean` would remove, and what it takes to compute that again.

Runs as `python -m flows.cost FOLDER...`, with nothing but Python's own library: what is to be cleared away may be
the leftovers of a project whose environment is gone. Locks are read line by line, as DVC writes them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(".dvc/cache/files/md5")
_STAGE, _OUTS, _PATH, _MD5 = (
    re.compile(pattern) for pattern in (r"  (\S+):$", r"    (\w+):", r"    - path: (.+)$", r"      md5: (\S+)$")
)


@dataclass
class Suite:
    """What there is of a suite: the stages whose outputs are in their place or in DVC's cache."""

    name: str
    experiments: int = 0
    others: int = 0
    seconds: float = 0.0
    """Of the stages whose time is on record."""
    timed: int = 0

    def __str__(self) -> str:
        """Its line in the list."""
        n_stages = self.experiments + self.others
        counts = ", ".join(
            f"{count:,} {kind}{'' if count == 1 else 's'}"
            for count, kind in ((self.experiments, "experiment"), (self.others, "other stage"))
            if count
        )
        if not self.timed:
            return f"{self.name}: {counts}; how long they took is not on record"
        known = "" if self.timed == n_stages else f" for the {self.timed:,} of them whose time is on record"
        return f"{self.name}: {counts}; at least {self.seconds / 3600:.1f} hours{known}"


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder; a link counts as itself, a file with two names once."""
    seen: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(path) if path.is_dir() else [(str(path.parent), [], [path.name])]:
        for name in names:
            about = os.lstat(os.path.join(folder, name))
            seen[about.st_dev, about.st_ino] = about.st_size
    return sum(seen.values())


def stages(lock: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Stages of a dvc.lock, each with path and hash of its outputs."""
    name, part, outs = "", "", list[tuple[str, str]]()
    for line in lock.read_text(encoding="utf-8").splitlines():
        if match := _STAGE.match(line):
            if name:
                yield name, outs
            name, part, outs = match[1], "", []
        elif match := _OUTS.match(line):
            part = match[1]
        elif part == "outs" and (match := _PATH.match(line)):
            outs.append((match[1], ""))
        elif part == "outs" and outs and (match := _MD5.match(line)):
            outs[-1] = outs[-1][0], match[1]
    if name:
        yield name, outs


def suites(root: Path) -> Iterator[Suite]:
    """Every suite of which something is there, and the data that suites share."""
    for lock in (*root.glob("data/dvc.lock"), *sorted(root.glob("suites/*/dvc.lock"))):
        suite = Suite("data of all suites" if lock.parent.name == "data" else lock.parent.name)
        seconds = recorded_seconds(root, lock.parent.name)
        for stage, outs in stages(lock):
            # What git keeps is not removed, so it is not counted.
            if not any(not path.startswith("data/results/") and _exists(root, path, md5) for path, md5 in outs):
                continue
            if stage.startswith("train@"):
                suite.experiments += 1
            else:
                suite.others += 1
            kind, _, name = stage.partition("@")
            if (took := seconds.get(kind_and_name(kind, name))) is not None:
                suite.seconds += took
                suite.timed += 1
        if suite.experiments or suite.others:
            yield suite


def recorded_seconds(root: Path, suite: str) -> dict[tuple[str, str], float]:
    """`kind_and_name` -> seconds: of the runs in data/provenance, else of those whose results git keeps."""
    seconds: dict[tuple[str, str], float] = {}
    committed = root / "data/results" / suite / "provenance.json"
    runs = json.loads(committed.read_text(encoding="utf-8"))["runs"] if committed.is_file() else []
    own = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(root.glob("data/provenance/**/*.json"))]
    for run in (*runs, *own):
        seconds[kind_and_name(run["stage"], run["name"])] = float(run["seconds"])
    return seconds


def kind_and_name(stage: str, name: str) -> tuple[str, str]:
    """The kind of a stage and its name, the same for what DVC calls it and for what its records do.

    Records have a module and its argument: `train-networks` is what trains where others have `train`, and `check` of
    `raw/demo` is `check-raw@demo`.
    """
    if stage == "check":
        layer, _, name = name.partition("/")
        return f"check-{layer}", name
    return re.sub(r"^(train|attack)-(networks|embeddings|ratings)$", r"\1", stage), name


def _exists(root: Path, path: str, md5: str) -> bool:
    return (root / path).exists() or (bool(md5) and (root / CACHE / md5[:2] / md5[2:]).exists())


def main(folders: list[str], root: Path = Path()) -> None:
    """Print what there is below the folders, and what it costs."""
    existing = [(folder, size(root / folder)) for folder in folders if (root / folder).exists()]
    if not existing:
        print("nothing is there to remove")
        return
    print("to be removed:")
    for folder, n_bytes in existing:
        print(f"  {n_bytes / 1e6:12,.1f} MB  {folder}")
    if names := list(suites(root)):
        print("to compute it again, one stage after another:")
        for suite in names:
            print(f"  {suite}")
    print("what was downloaded must be downloaded again; data/placed, data/results and the environment stay")


if __name__ == "__main__":
    main(sys.argv[1:])
