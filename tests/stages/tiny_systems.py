"""A workspace of one tiny suite that embeds users: parameters for each way to do so, two networks, and a release.

The networks are those of `tiny_networks`, with labels for most users of `left`. What a stage reads and another one
writes, the tests let that stage write, or make up with `aligned`.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks.core import contracts
from tasks.pipeline.common import PERTURBED, PROCESSED
from tasks.stages import perturb
from tasks.stages.network_files import ALIGNED, embedding_file, write_vectors
from tests.stages import tiny, tiny_networks, tiny_pair
from tests.stages.tiny import passed as passed

SIZES = {"left": tiny_networks.N_USERS, "right": tiny_networks.RIGHT.n_users}
SEEDS = [0, 1]
WIDTH = 4
STEPS = {"epochs": 2, "batch_size": 500, "learning_rate": 0.01, "dimension": WIDTH}
WORDS = {"dimension": 3, "window": 2, "negatives": 1.0}
PUBLISHED = tiny_networks.PUBLISHED | {"sweep": {"edges_epsilon": [5.0]}}
RIGOROUS = tiny_networks.RIGOROUS | {"sweep": {"edges_epsilon": [5.0]}, "text_epsilon": None}
SETTINGS = ["base", "edges_epsilon=5.0"]
"""Of the release."""
ALONE = {
    "suite": "tiny", "data": "tiny", "networks": "processed/tiny", "model": "rgcn",
    "config": STEPS | {"hidden": 5, "free": 3}, "reads": ["feature", "edge", "text"], "text": WORDS, "seeds": SEEDS,
}  # fmt: skip
EMBEDDINGS: dict[str, dict[str, Any]] = {
    "raw": ALONE,
    "private": ALONE | {"networks": "perturbed/published"},
    "walks": ALONE
    | {
        "model": "deepwalk", "reads": ["edge"], "text": None,
        "config": {"dimension": WIDTH, "walks": 2, "length": 4, "window": 2},
    },
}  # fmt: skip
PAIR = tiny_pair.ENTRY | {"anchor_shares": [], "test_share": 0.2, "k": [1]}
ANCHORS: dict[str, dict[str, Any]] = {
    "raw": PAIR | {"of": "embeddings/raw"},
    "private": PAIR | {"of": "embeddings/private"},
    "known": PAIR | {"of": "embeddings/raw", "ways": [], "anchor_shares": [0.5], "anchors": "truth"},
}
CONTROL = {"config": {}, "sweep": []}
SWEEP = [{"edges_epsilon": 5.0}]
JOINT = {"model": "crosue", "config": STEPS | {"hops": 2}, "sweep": []}
TAKEN = {"model": "rgcn", "config": {}, "sweep": []}
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "degree": CONTROL | {"features": "processed/tiny", "model": "degree"},
    "sne": {
        "features": "perturbed/published", "model": "sne", "sweep": SWEEP,
        "config": STEPS | {"ids": 3, "attributes": 2},
    },
    "rgcn": TAKEN | {"features": "embeddings/raw"},
    "dp-rgcn": TAKEN | {"features": "embeddings/private", "system": "dp-rgcn", "sweep": SWEEP},
    "crosue": JOINT | {"features": "aligned/raw"},
    "dp-crosue": JOINT | {"features": "aligned/private", "system": "dp-crosue", "sweep": SWEEP},
    "crosue-known": JOINT | {"features": "aligned/known"},
}  # fmt: skip


def build(root: Path) -> None:
    tiny_networks.build(root)
    shutil.rmtree(root / "suites")  # of suites without embeddings
    parameters(root)
    few = np.arange(60, dtype=np.int32)
    labels = pl.DataFrame({"user": few, "music": few % 2}, schema={"user": pl.Int32, "music": pl.Int8})
    place = root / PROCESSED / "tiny" / "left" / "labels.parquet"
    contracts.write(labels, place, contracts.labels_schema(("music",)))
    for layer in ("perturbed", "embeddings", "aligned"):
        for name in ("published", "raw", "private", "walks", "known"):
            passed(layer, name, root)


def parameters(root: Path = Path(), **changes: Any) -> None:
    """Write the parameters, with `changes` of whole sections."""
    about = {"suite": "tiny", "data": "tiny", "seeds": SEEDS}
    sections = tiny_networks.SUITE | {
        "perturbed": {"published": PUBLISHED},
        "embeddings": EMBEDDINGS,
        "aligned": ANCHORS,
        "experiments": {f"tiny-{name}": about | experiment for name, experiment in EXPERIMENTS.items()},
    }
    tiny.write_parameters(tiny.parameters(**(sections | changes)), root)


def without(section: dict[str, dict[str, Any]], *names: str, **changes: Any) -> dict[str, dict[str, Any]]:
    """A section's entries under these names alone, all with `changes`."""
    return {name: section[name] | changes for name in names}


def release() -> None:
    """Perturb the networks, in the current folder."""
    perturb.main("published")


def released(setting: str, seed: int, network: str) -> Path:
    return PERTURBED / "published" / setting / f"seed-{seed}" / network


def made_up(folder: Path, settings: list[str], width: int = WIDTH) -> None:
    """Write random embeddings of both networks below `folder`, for every setting and seed."""
    for setting in settings:
        for seed in SEEDS:
            for number, (network, size) in enumerate(SIZES.items()):
                rng = np.random.default_rng([len(setting), seed, number])
                rows = rng.standard_normal((size, width)).astype(np.float32)
                write_vectors(embedding_file(folder, setting, network, seed), rows)


def learnt(folder: Path, settings: list[str]) -> None:
    """Write such embeddings as if they were learned without epochs, and nothing were spent on them."""
    made_up(folder, settings)
    for file in ("ledger.json", "history.json"):
        (folder / file).write_text("[]", encoding="utf-8")


def anchors(name: str, pairs: list[list[int]], settings: list[str]) -> None:
    """Write what an alignment found, the same for every setting and seed."""
    table = pl.DataFrame(pairs, schema={"source": pl.Int32, "target": pl.Int32}, orient="row")
    for setting in settings:
        for seed in SEEDS:
            place = ALIGNED / name / setting / f"seed-{seed}" / "anchors.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            contracts.write(table, place, contracts.ANCHORS)


def change(table: str, **columns: pl.Expr) -> None:
    """Replace columns of a processed table, such as `left/users`."""
    place = PROCESSED / "tiny" / f"{table}.parquet"
    network, _, name = table.partition("/")
    schema = {"left": tiny_networks.LEFT, "right": tiny_networks.RIGHT}[network]
    contract = contracts.table_schema(name, schema)
    contracts.write(contracts.read(place, contract).with_columns(**columns), place, contract)
