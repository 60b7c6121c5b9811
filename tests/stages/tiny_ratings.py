"""A workspace of one tiny suite of ratings in folds, some of them sensitive, with friends."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks.config.params import load
from tasks.core import contracts
from tasks.core.contracts import RatingScale
from tasks.pipeline.common import PROCESSED
from tasks.stages.inputs import Inputs, read_inputs
from tests.stages import tiny

N_ITEMS, FOLDS = 12, 3
SCALE = RatingScale(low=1, high=5, step=1)
SCHEMA = tiny.SCHEMA.model_copy(
    update={
        "n_items": N_ITEMS,
        "scale": SCALE,
        "tables": ("interactions", "folds", "social", "users", "user_ids", "item_ids"),
    }
)
FACTORS: dict[str, Any] = {
    "epochs": 3,
    "iterations_per_epoch": 4,
    "learning_rate": 0.001,
    "regularization": 0.001,
    "dimension": 4,
    "initial_spread": 0.1,
    "scale": [1.0, 5.0],
}
PRIVATE = FACTORS | {"alpha": 0.01, "epsilon": 1.0, "beta": 0.1, "accounting": "published"}
MEANS = {"of": "bias", "damping": 2.0, "scale": [1.0, 5.0]}
MODELS: dict[str, tuple[dict[str, Any], ...]] = {
    "privsr": (PRIVATE, {"sensitive_share": 0.0}, {"epsilon": 0.1, "sensitive_share": 1.0}),
    "mf-ratings": (FACTORS,),
    "rating-means": (MEANS, {"sensitive_share": 0.5}),
}
"""Model -> its configuration, and the points of its sweep."""
ATTACK = {"kind": "reconstruction", "ridge": 0.01}


def changes(suite: str = "tiny") -> dict[str, Any]:
    """What the parameters of such a suite have in place of those of `tests.stages.tiny`, for the caller to change."""
    experiments = {
        f"{suite}-{model}": tiny.experiment(
            model, config | {"sensitive_share": 0.25}, suite=suite, seeds=[0, 2], sweep=sweep
        )
        for model, (config, *sweep) in MODELS.items()
    }
    options = {"keep": {}, "min_item_raters": 1, "min_user_ratings": 1}
    options |= {"folds": FOLDS, "valid_share": 0.2, "split_seed": 1}
    return {
        "processed": {"tiny": {"dataset": "tiny", "protocol": "privsr", "options": options}},
        "experiments": experiments,
        "suites": tiny.suites("rating", "privsr", suite),
        "evaluation": {"k": [], "negatives": None, "seed": 1, "recall": "relevant"},
        "training": {"patience": 3, "validation_k": None},
        "tuning": {"seed": 1000, "grid": {"privsr": {"epsilon": [0.5, 5.0]}}},
        "attack": dict(ATTACK),
    }


def build(root: Path, **other: Any) -> None:
    tiny.build(root, **(changes() | other))
    folder = root / PROCESSED / "tiny"
    tiny.write_schema(folder, SCHEMA)
    rows = ratings()
    for name, contract in (("interactions", contracts.INTERACTIONS), ("folds", contracts.FOLDS)):
        contracts.write(rows.select(contract.names), folder / f"{name}.parquet", contract)
    contracts.write(friends(), folder / "social.parquet", contracts.SOCIAL)
    step = {"step": "published", "users": tiny.N_USERS, "items": N_ITEMS, "interactions": len(rows)}
    tiny.write_source(root, step, step | {"step": "links-once", "links": len(friends())})


def inputs(share: float = 0.25) -> Inputs:
    return read_inputs(load().experiments["tiny-privsr"], load(), {"sensitive_share": share})


def ratings() -> pl.DataFrame:
    """Four random items of every user, rated by what user and item are like; split "test" is fold 0."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(tiny.N_USERS, dtype=np.int32), 4)
    items = np.concatenate([rng.choice(N_ITEMS, 4, replace=False) for _ in range(tiny.N_USERS)]).astype(np.int32)
    liked = rng.normal(3.5, 0.8, N_ITEMS)[items] + rng.normal(0, 0.5, len(users))
    fold = rng.permutation(len(users)) % FOLDS
    validates = rng.random(len(users)) < 0.2
    split = np.where(fold == 0, "test", np.where(validates, "valid", "train"))
    return tiny.interactions(users, items, split).with_columns(
        rating=pl.Series(np.clip(np.round(liked), 1, 5).astype(np.float32)),
        timestamp=pl.lit(None, pl.Int64),
        fold=pl.Series(fold.astype(np.int32)),
        sensitivity=pl.Series((rng.permutation(len(users)) / len(users)).astype(np.float32)),
        validates=pl.Series(validates),
    )


def friends() -> pl.DataFrame:
    """Two random friends of every second user."""
    rng = np.random.default_rng(1)
    sources = np.repeat(np.arange(0, tiny.N_USERS, 2, dtype=np.int32), 2)
    links = {"source": sources, "target": rng.integers(0, tiny.N_USERS, len(sources)).astype(np.int32)}
    table = pl.DataFrame(links | {"relation": ["trusts"] * len(sources)})
    return table.filter(pl.col("source") != pl.col("target")).unique(maintain_order=True)
