"""A workspace of one tiny suite of embeddings: what systems released of the users of two tiny networks, made up.

`tiny-telling` releases vectors that hold the sensitive attributes of `left` and the friendships of `right`, a path;
`tiny-noise` random ones, and `tiny-joint` those, but nearly the same for both accounts of a person.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.pipeline.common import PROCESSED, RUNS, file_digest
from tasks.stages.network_files import write_vectors
from tests.stages import tiny, tiny_networks

SEEDS = (0, 2)
WIDTH = 6
ATTACK = {"kind": "embeddings", "pairs": 200, "known_share": 0.5, "wanted_precision": 0.9, "k": [1, 10], "seed": 4}
ALONE = {"model": "deepwalk", "config": {"dimension": WIDTH}, "sweep": []}
JOINT = {"model": "crosue", "config": {"dimension": WIDTH}, "sweep": [{"alpha": 1.0}]}
EXPERIMENTS: dict[str, dict[str, Any]] = {"tiny-telling": ALONE, "tiny-noise": ALONE, "tiny-joint": JOINT}
SIZES = {"left": tiny_networks.N_USERS, "right": tiny_networks.RIGHT.n_users}


def build(root: Path, **other: Any) -> None:
    """Write the workspace below `root`: the systems are trained and their releases passed the check."""
    tiny_networks.build(root)
    shutil.rmtree(root / "suites")  # of suites without embeddings
    about = {"suite": "tiny", "data": "tiny", "features": "processed/tiny", "seeds": list(SEEDS)}
    changes = tiny_networks.SUITE | {
        "perturbed": {},
        "experiments": {name: about | experiment for name, experiment in EXPERIMENTS.items()},
        "attack": dict(ATTACK),
    }
    tiny.write_parameters(tiny.parameters(**(changes | other)), root)
    for name in EXPERIMENTS:
        for setting in settings(name):
            for seed in SEEDS:
                for network, rows in vectors(name, setting, seed).items():
                    release(root, name, setting, seed, network, rows)
        passed(root, name)


def settings(name: str) -> list[str]:
    return ["base", *(f"{key}={value}" for point in EXPERIMENTS[name]["sweep"] for key, value in point.items())]


def vectors(name: str, setting: str, seed: int) -> dict[str, NDArray[np.float32]]:
    """What a system releases, by network."""
    rng = np.random.default_rng([*setting.encode(), seed])
    vectors = {network: rng.standard_normal((size, WIDTH)) for network, size in SIZES.items()}
    tables = tiny_networks.tables()
    if name == "tiny-telling":
        for place, column in (("gender", 0), ("occupation", 1)):
            codes = tables["left/users"][place].replace_strict({"unknown": 5}, default=pl.col(place), return_dtype=int)
            vectors["left"][:, column] = codes.to_numpy() + 0.1 * vectors["left"][:, column]
        angles = np.linspace(0, 3, SIZES["right"])
        vectors["right"][:, :2] = 100 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if name == "tiny-joint":
        source, target = tables["anchors"].to_numpy().T
        vectors["right"][target] = vectors["left"][source] + 0.01 * vectors["right"][target]
    return {network: rows.astype(np.float32) for network, rows in vectors.items()}


def path(name: str, setting: str, seed: int, network: str) -> Path:
    """Of a released embedding, below the workspace."""
    return RUNS / "tiny" / name / "released" / setting / network / f"seed-{seed}.parquet"


def release(root: Path, name: str, setting: str, seed: int, network: str, rows: NDArray[np.float32]) -> None:
    write_vectors(root / path(name, setting, seed, network), rows)


def passed(root: Path, name: str) -> None:
    """Write the verdict of a check that the releases passed as they are now."""
    released = sorted((root / RUNS / "tiny" / name / "released").rglob("*.parquet"))
    checked = {file.relative_to(root).as_posix(): file_digest(file) for file in released}
    tiny.passed("recommendations", name, root, checked=checked)


def processed(table: str) -> Path:
    """A processed table, such as `left/users`."""
    return PROCESSED / "tiny" / f"{table}.parquet"
