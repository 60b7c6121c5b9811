"""Stage `preprocess`: a data set under a protocol: dense ids, a split, user features, social links, texts.

Writes data/processed/<name>/: the tables of the protocol, schema.json, counts.json with what each of its steps left,
and source.json with what later stages say about the origin. A pair of networks has a sub-folder for each.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from tasks.config.messages import options
from tasks.config.params import entry, load
from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.core.raw import read_raw
from tasks.papers import PROTOCOLS
from tasks.papers.protocol import Prepared
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import INTERIM, PROCESSED, atomic_write, read_json, require_passed, write_json


def main(name: str) -> None:
    """Prepare data set `name`."""
    processed = entry("processed", name, load().processed)
    require_passed("raw", processed.dataset)
    protocol = import_module(PROTOCOLS[processed.protocol])
    chosen = options(protocol.Options, processed.options, f"processed.{name}.options")
    raw = INTERIM / processed.dataset
    source = read_json(raw / "source.json")
    prepared = protocol.prepare(read_raw(raw), chosen)
    _require_splits(name, prepared)
    about = {"dataset": processed.dataset, "protocol": processed.protocol, "synthetic": source["synthetic"]}
    with atomic_write(PROCESSED / name) as target:
        target.mkdir()
        write(prepared, target, about)
        write_json(target / "source.json", source)


def _require_splits(name: str, prepared: Prepared) -> None:
    """Refuse data of which nothing would be held out, or trained on."""
    rows = prepared.tables.get("interactions")
    if rows is None or "split" not in rows.columns:
        return
    for split in contracts.SPLITS:
        if not (rows["split"] == split).any():
            raise DataError(
                f"{name}: no interaction is in the {split} part; take another split or other shares (`processed` in "
                "params.yaml), or data whose users have more interactions"
            )


def write(prepared: Prepared, target: Path, about: dict[str, str | bool]) -> None:
    """Write the tables and what they hold; of a pair each network into a folder of its own."""
    described = {name: value for name, value in vars(prepared).items() if name in contracts.Schema.model_fields}
    names = {"tables": tuple(sorted(prepared.tables)), "networks": tuple(prepared.networks)}
    schema = contracts.Schema.model_validate(about | described | names)
    for table, rows in prepared.tables.items():
        contracts.write(rows, target / f"{table}.parquet", contracts.table_schema(table, schema))
    write_json(target / "schema.json", schema.model_dump(mode="json"))
    write_json(target / "counts.json", [asdict(count) for count in prepared.counts])
    for name, network in prepared.networks.items():
        (target / name).mkdir()
        write(network, target / name, about)


if __name__ == "__main__":
    run_stage(main)
