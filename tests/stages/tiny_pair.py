"""A workspace of two tiny networks to align: parameters, a processed pair that passed its check, embeddings of both.

Person i of the first 60 has an account in each network: user `anchors[i]`. The second network's vectors are the first
one's turned, with noise; bits of the attributes are the same but for a few.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core import contracts
from tasks.core.contracts import Feature, Schema
from tasks.pipeline.common import PROCESSED, write_json
from tasks.stages.network_files import EMBEDDINGS
from tests.stages import tiny, tiny_networks

PEOPLE, N_LEFT, N_RIGHT, WIDTH, BITS = 60, 80, 70, 8, 24
NETWORKS = ("left", "right")
SIZES = {"left": N_LEFT, "right": N_RIGHT}
SEEDS = (0, 1)
CONFIG = {
    "normalise": ["centre", "unit"],
    "refinements": 3,
    "adversarial": {
        "epochs": 3, "iterations": 10, "discriminator_steps": 1, "batch_size": 16, "learning_rate": 0.1,
        "hidden": [8], "initial": "random",
    },
}  # fmt: skip
ENTRY = {
    "suite": "tiny",
    "data": "tiny",
    "of": "embeddings/tiny",
    "ways": ["adversarial", "attributes", "attribute-start"],
    "anchor_shares": [0.05, 0.5],
    "test_share": 0.4,
    "split_seed": 3,
    "anchors": "attribute-start",
    "config": CONFIG,
    "k": [1, 10],
    "seeds": [0, 1],
}
RELEASE = {
    "data": "tiny", "mechanism": "dpcrosue", "accounting": "published", "features_epsilon": 5.0, "edges_epsilon": 10.0,
    "count_share": 0.1, "text_epsilon": None, "sweep": {"features_epsilon": [80.0]}, "seeds": [0, 1],
    "word_vectors": {"dimension": 2, "window": 2, "negatives": 1.0, "seed": 0},
}  # fmt: skip
SHARED = tuple(Feature(name=f"bit_{number}", kind="numeric", low=0, high=1) for number in range(BITS))
FEATURES = {
    "left": (*SHARED, Feature(name="friends", kind="numeric", low=0, high=9)),
    "right": (Feature(name="followers", kind="numeric", low=0, high=9), *SHARED),
}


def anchors() -> NDArray[np.int32]:
    """(60, 2) source and target."""
    rng = np.random.default_rng(5)
    return np.stack([rng.permutation(n)[:PEOPLE] for n in SIZES.values()], axis=1).astype(np.int32)


def vectors(seed: int) -> dict[str, NDArray[np.float32]]:
    """Network -> (n_users, 8) embeddings of a seed; another turn for each."""
    rng = np.random.default_rng([seed, 1])
    left, right = (rng.standard_normal((n, WIDTH)) for n in SIZES.values())
    turn = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0]
    source, target = anchors().T
    right[target] = left[source] @ turn + 0.01 * right[target]
    return {"left": left.astype(np.float32), "right": right.astype(np.float32)}


def bits() -> dict[str, NDArray[np.float32]]:
    """Network -> (n_users, 24) of 0 and 1; of a person 2 % differ."""
    rng = np.random.default_rng(6)
    left, right = (rng.integers(0, 2, (n, BITS)).astype(np.float32) for n in SIZES.values())
    source, target = anchors().T
    right[target] = np.where(rng.random((PEOPLE, BITS)) < 0.02, 1 - left[source], left[source])
    return {"left": left, "right": right}


def build(root: Path, entry: dict[str, Any] | None = None, **embeddings: Any) -> None:
    """Write the workspace below `root`.

    Args:
        entry: changes of ENTRY.
        embeddings: changes of the entry of `embeddings`.
    """
    parameters(root, entry, **embeddings)
    folder = root / PROCESSED / "tiny"
    about = {"dataset": "tiny", "protocol": "dpcrosue", "synthetic": True, "n_items": 0}
    write_pair(folder, Schema(**about, n_users=0, features=(), tables=("anchors",), networks=NETWORKS))
    write_anchors(anchors(), root)
    for network in NETWORKS:
        tables = ("users", "user_ids", "social")
        schema = Schema(**about, n_users=SIZES[network], features=FEATURES[network], tables=tables)
        write_pair(folder / network, schema)
        ids = np.arange(SIZES[network], dtype=np.int32)
        names = pl.DataFrame({"id": ids, "original": [f"{network} {id_}" for id_ in ids]})
        social = pl.DataFrame({"source": ids[:-1], "target": ids[1:], "relation": ["follow"] * (len(ids) - 1)})
        contracts.write(names, folder / network / "user_ids.parquet", contracts.ID_MAP)
        contracts.write(social, folder / network / "social.parquet", contracts.SOCIAL)
        write_users(network, bits()[network], root)
    for seed in SEEDS:
        for network, rows in vectors(seed).items():
            write_vectors(network, seed, rows, root)
    for layer in ("processed", "embeddings", "perturbed"):
        tiny.passed(layer, "tiny", root)


def parameters(root: Path, entry: dict[str, Any] | None = None, **embeddings: Any) -> None:
    embedded = {
        "suite": "tiny", "data": "tiny", "networks": "processed/tiny", "model": "deepwalk",
        "config": {}, "reads": ["edge"], "text": None,
        "seeds": list(SEEDS),
    }  # fmt: skip
    changes = tiny_networks.SUITE | {
        "processed": dict.fromkeys(("tiny", "other"), tiny_networks.PROCESSED_PAIR),
        "perturbed": {"tiny": RELEASE},
        "experiments": {},
        "embeddings": {"tiny": embedded | embeddings},
        "aligned": {"tiny": ENTRY | (entry or {})},
    }
    tiny.write_parameters(tiny.parameters(**changes), root)


def write_pair(folder: Path, schema: Schema) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "schema.json", schema.model_dump(mode="json"))


def write_anchors(pairs: NDArray[np.int32], root: Path = Path()) -> None:
    table = pl.DataFrame(pairs, schema={"source": pl.Int32, "target": pl.Int32})
    contracts.write(table, root / PROCESSED / "tiny" / "anchors.parquet", contracts.ANCHORS)


def write_users(network: str, rows: NDArray[np.float32], root: Path = Path()) -> None:
    columns = {feature.name: column for feature, column in zip(SHARED, rows.T, strict=True)}
    own = {
        feature.name: np.full(len(rows), 3, np.float32) for feature in FEATURES[network] if "bit" not in feature.name
    }
    table = pl.DataFrame({"user": np.arange(len(rows), dtype=np.int32)} | columns | own)
    contract = contracts.users_schema(FEATURES[network])
    contracts.write(table, root / PROCESSED / "tiny" / network / "users.parquet", contract)


def write_vectors(
    network: str, seed: int, rows: NDArray[np.float32], root: Path = Path(), setting: str = "base"
) -> None:
    """Write the embeddings of a network, users in no order."""
    order = np.random.default_rng(9).permutation(len(rows)).astype(np.int32)
    path = root / EMBEDDINGS / "tiny" / setting / network / f"seed-{seed}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pl.DataFrame({"node": order, "vector": rows[order]})
    contracts.write(table, path, contracts.embeddings_schema(rows.shape[1]))
