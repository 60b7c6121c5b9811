"""Stage `convert`: raw files as tables with one meaning for all formats, read once however many protocols follow.

Writes data/interim/<name>/: the tables of `tasks.contracts.RAW_COLUMNS` with the published ids, schema.json, and
source.json with what later stages say about the origin.
"""

from __future__ import annotations

import re
from importlib import import_module

from tasks.config.messages import options
from tasks.config.params import Dataset, entry, load
from tasks.datasets import FORMATS
from tasks.errors import DataError
from tasks.raw import read_raw
from tasks.stages.command import run_stage
from tasks.stages.common import INTERIM, RAW, atomic_write, read_json, write_json

ORIGIN = ("dataset", "address", "synthetic", "licence")


def main(name: str) -> None:
    """Convert data set `name`."""
    dataset = entry("datasets", name, load().datasets)
    module = import_module(FORMATS[dataset.format])
    chosen = options(module.ReadOptions, dataset.read, f"datasets.{name}.read")
    source = read_json(RAW / name / "source.json")
    with atomic_write(INTERIM / name) as place:
        place.mkdir()
        try:
            module.convert(RAW / name, place, chosen)
        except DataError as error:
            raise DataError(_of_own_files(str(error), name, dataset)) from error
        read_raw(place)
        write_json(place / "source.json", {key: source[key] for key in ORIGIN})


def _of_own_files(message: str, name: str, dataset: Dataset) -> str:
    """A message about the copies of a user's own files names the files themselves, which are what can be mended."""
    own = {f"{table}{path.suffix.lower()}": str(path) for table, path in dataset.own_files().items()}
    if not own:
        return message
    copies = "|".join(re.escape(copy) for copy in own)
    return re.sub(rf"(?:{re.escape(str(RAW / name))}/|(?<![\w/.-]))({copies})\b", lambda match: own[match[1]], message)


if __name__ == "__main__":
    run_stage(main)
