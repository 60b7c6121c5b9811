"""Stage `download`: a raw data set as distributed, whole or not at all, with a record of where it comes from.

Writes data/raw/<name>/: the files and source.json. The environment's DPREC_MIRROR names a mirror (folder or address);
a file that the user placed in data/placed/ under its official name is taken before anything else.
"""

from __future__ import annotations

import os
from typing import Any

from tasks.config.messages import options
from tasks.config.params import Dataset, entry, load
from tasks.config.tasks import resolve
from tasks.datasets import SOURCES
from tasks.datasets.fetch import Places, Source
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import CHECKPOINTS, PLACED, RAW, atomic_write, file_digest, write_json

UNFINISHED = CHECKPOINTS / "download"


def main(name: str) -> None:
    """Obtain data set `name` and print its licence."""
    dataset = entry("datasets", name, load().datasets)
    module, chosen, described = source_of(name, dataset)
    with atomic_write(RAW / name) as target:
        target.mkdir()
        module.obtain(target, places(), chosen)
        # Which way the files came is not recorded: they are verified to be the same, and so should the record be.
        source = {
            "dataset": name,
            "address": described.address,
            "synthetic": described.synthetic,
            "licence": described.conditions,
            "files": {
                file.relative_to(target).as_posix(): {"bytes": file.stat().st_size, "sha256": file_digest(file)}
                for file in sorted(target.rglob("*"))
                if file.is_file()
            },
        }
        write_json(target / "source.json", source)
    print(f"{name}: {described.conditions}")


def source_of(name: str, dataset: Dataset) -> tuple[Any, Any, Source]:
    """The module that obtains a data set, its options, and what is said about the source.

    Where that depends on the options, the module has a function `source`.
    """
    module = resolve(SOURCES[dataset.source])
    chosen = options(module.ObtainOptions, dataset.obtain, f"datasets.{name}.obtain")
    return module, chosen, module.source(chosen) if hasattr(module, "source") else module.SOURCE


def places() -> Places:
    """Where files may lie."""
    return Places(os.environ.get("DPREC_MIRROR") or None, PLACED, UNFINISHED, progress=True)


if __name__ == "__main__":
    run_stage(main)
