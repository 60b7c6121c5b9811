"""A workspace of one tiny data set for stage tests: params.yaml, and processed data that passed their check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from tasks import contracts
from tasks.contracts import Feature, Schema
from tasks.stages.common import PROCESSED, QUALITY, write_json

ROOT = Path(__file__).resolve().parents[2]
N_USERS = 300
FEATURES = (
    Feature(name="share", kind="numeric", low=0, high=1),
    Feature(name="count", kind="numeric", low=3, high=90, bounds="fitted"),
    Feature(name="colour", kind="categorical", categories=("red", "green", "blue"), sensitive=True),
)
SCHEMA = Schema(dataset="tiny", protocol="gerai", synthetic=True, n_users=N_USERS, n_items=10, features=FEATURES)


def parameters(**changes: Any) -> dict[str, Any]:
    """The project's params.yaml with its data, suites and experiments replaced by tiny ones, and `changes`."""
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    processed = next(iter(raw["processed"].values())) | {"dataset": "tiny"}
    experiment = {"suite": "tiny", "data": "tiny", "seeds": [0, 1], "sweep": []}
    popularity = {"code": "tasks/models/popularity.py", "features": "processed/tiny"}
    raw |= {
        "datasets": {"tiny": next(iter(raw["datasets"].values()))},
        "processed": {"tiny": processed},
        "perturbed": {
            "tiny": {"data": "tiny", "mechanism": "multidimensional", "epsilon": [1.0, 7.5], "seeds": [0, 1]}
        },
        "suites": {"tiny": {"title": "Tiny", "data": "tiny"}, "open": {"title": "Nothing private", "data": "tiny"}},
        "experiments": {
            "tiny-counts": experiment
            | popularity
            | {"model": "dp-popularity", "config": {"epsilon": 2.0, "contribution": 3}},
            "tiny-features": experiment
            | {
                "model": "gerai-nf",
                "code": "tasks/models/gerai",
                "features": "perturbed/tiny",
                "config": {},
                "sweep": [{"features_epsilon": 7.5}],
            },
            "open-popularity": experiment | popularity | {"suite": "open", "model": "popularity", "config": {}},
        },
    }
    return raw | changes


def build(root: Path, **changes: Any) -> None:
    """Write the workspace below `root`."""
    (root / "params.yaml").write_text(yaml.safe_dump(parameters(**changes)), encoding="utf-8")
    processed, verdict = root / PROCESSED / "tiny", root / QUALITY / "processed" / "tiny.json"
    processed.mkdir(parents=True)
    verdict.parent.mkdir(parents=True)
    rng = np.random.default_rng(0)
    users = pl.DataFrame(
        {
            "user": np.arange(N_USERS, dtype=np.int32),
            "share": rng.random(N_USERS, dtype=np.float32),
            "count": rng.integers(3, 91, N_USERS).astype(np.float32),
            "colour": rng.choice(["red", "green", "blue"], N_USERS),
        }
    )
    contracts.write(users, processed / "users.parquet", contracts.users_schema(FEATURES))
    write_json(processed / "schema.json", SCHEMA.model_dump(mode="json"))
    write_json(
        verdict, {"contract": "processed", "name": "tiny", "success": True, "evaluated": 9, "failed": 0, "checked": {}}
    )
