"""Stage `convert`: raw files as tables with one meaning for all formats, read once however many protocols follow.

Writes data/interim/<name>/: the tables of `tasks.contracts.RAW_COLUMNS` with the published ids, schema.json, and
source.json with what later stages say about the origin.
"""

from __future__ import annotations

from importlib import import_module

from tasks.config.params import entry, load, options
from tasks.datasets import FORMATS
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
        module.convert(RAW / name, place, chosen)
        read_raw(place)
        write_json(place / "source.json", {key: source[key] for key in ORIGIN})


if __name__ == "__main__":
    run_stage(main)
