"""Stage `convert`: raw files as tables of one form, whatever the format, read once however many protocols follow.

Writes data/interim/<name>/: the tables of `tasks.core.raw.RAW_COLUMNS` with the published ids, schema.json, and
source.json with what later stages say about the origin.
"""

from __future__ import annotations

from pathlib import Path

from tasks.config.messages import options
from tasks.config.params import Dataset, entry, load
from tasks.config.tasks import resolve
from tasks.core.raw import read_raw
from tasks.datasets import FORMATS
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import INTERIM, RAW, atomic_write, read_json, write_json

ORIGIN = ("dataset", "address", "synthetic", "licence")


def main(name: str) -> None:
    """Convert data set `name`."""
    dataset = entry("datasets", name, load().datasets)
    module = resolve(FORMATS[dataset.format])
    chosen = options(module.ReadOptions, dataset.read, f"datasets.{name}.read")
    source = read_json(RAW / name / "source.json")
    with atomic_write(INTERIM / name) as target:
        target.mkdir()
        module.convert(shown_as_own(RAW / name, dataset), target, chosen)
        read_raw(target)
        write_json(target / "source.json", {key: source[key] for key in ORIGIN})


def shown_as_own(copies: Path, dataset: Dataset) -> Path:
    """The folder of raw files; messages show a copy of a user's own file as that file, which is the one to mend."""
    files = {f"{table}{path.suffix.lower()}": str(path) for table, path in dataset.own_files().items()}

    class Copy(type(copies)):  # type: ignore[misc]
        def __format__(self, _: str) -> str:
            return files.get(self.name, str(self))

    return Copy(copies)


if __name__ == "__main__":
    run_stage(main)
