"""Stage `convert`: raw files as tables with one meaning for all formats, read once however many protocols follow.

Writes data/interim/<name>/: the tables of `tasks.raw.RAW_COLUMNS` with the published ids, schema.json, and
source.json with what later stages say about the origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.config.messages import options
from tasks.config.params import Dataset, entry, load
from tasks.config.tasks import resolve
from tasks.datasets import FORMATS
from tasks.errors import DataError
from tasks.raw import read_raw
from tasks.stages.command import run_stage
from tasks.stages.common import INTERIM, RAW, atomic_write, read_json, write_json

ORIGIN = ("dataset", "address", "synthetic", "licence")


def main(name: str) -> None:
    """Convert data set `name`."""
    dataset = entry("datasets", name, load().datasets)
    module = resolve(FORMATS[dataset.format])
    chosen = options(module.ReadOptions, dataset.read, f"datasets.{name}.read")
    source = read_json(RAW / name / "source.json")
    with atomic_write(INTERIM / name) as target:
        target.mkdir()
        with own_files_named(RAW / name, dataset):
            module.convert(RAW / name, target, chosen)
        read_raw(target)
        write_json(target / "source.json", {key: source[key] for key in ORIGIN})


@contextmanager
def own_files_named(copies: Path, dataset: Dataset) -> Iterator[None]:
    """Have an error about the copies of a user's own files name the files themselves, which are what can be mended.

    Args:
        copies: the folder that they are read from.

    Raises:
        DataError: the one that was raised inside, with these names.
    """
    files = {f"{table}{path.suffix.lower()}": str(path) for table, path in dataset.own_files().items()}
    names = "|".join(map(re.escape, files))
    try:
        yield
    except DataError as error:
        if not files:
            raise
        pattern = rf"(?:{re.escape(str(copies))}/|(?<![\w/.-]))({names})\b"
        raise DataError(re.sub(pattern, lambda match: files[match[1]], str(error))) from error


if __name__ == "__main__":
    run_stage(main)
