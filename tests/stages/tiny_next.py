"""A workspace of one tiny suite of next items whose systems aggregate a graph, and that is attacked on its edges."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks.pipeline.common import PROCESSED
from tests.stages import tiny

N_ITEMS = 40
TRAINED, VALIDATING = 40, 50
"""Users below the first number train and are tested, those below the second validate, the others have no events."""
EPOCHS = 2
CONFIG = {
    "epochs": EPOCHS,
    "batch_size": 16,
    "learning_rate": 0.01,
    "dimension": 6,
    "dropout": 0.0,
    "steps": 1,
    "user_dimension": 3,
    "clip": 0.4,
    "epsilon": 5.0,
    "delta": 1e-5,
    "accounting": "published",
}
SYSTEMS: dict[str, dict[str, Any]] = {
    "dipsgnn": {"sweep": [{"epsilon": 1.0}, {"clip": 0.6}]},
    "dipsgnn-rigorous": {"model": "dipsgnn", "config": {"accounting": "rigorous"}},
    "edgerand": {},
    "nonp": {"model": "dipsgnn", "config": {"epsilon": None}},
}
ATTACKED = ["tiny-dipsgnn", "tiny-dipsgnn-rigorous", "tiny-edgerand"]
ATTACK = {"kind": "edges", "systems": ATTACKED, "control": "tiny-nonp", "targets": 6, "trials": 16, "k": 5, "seed": 7}
ABOUT = {"part": "A part that is made up.", "limits": "One thing that is not shown.\n\nAnother <thing>."}


def changes(suite: str = "tiny") -> dict[str, Any]:
    """What the parameters of such a suite have in place of those of `tests.stages.tiny`, for the caller to change."""
    experiments = {
        f"{suite}-{system}": tiny.experiment(system, {}, suite=suite, system=system, seeds=[3])
        | own
        | {"config": CONFIG | own.get("config", {})}
        for system, own in SYSTEMS.items()
    }
    return {
        "about": ABOUT,
        "experiments": experiments,
        "suites": tiny.suites("next-item", "dipsgnn", suite),
        "evaluation": {"k": [5, 10, 20], "negatives": None, "seed": 1, "recall": "relevant"},
        "training": {"patience": EPOCHS, "validation_k": 20},
        "tuning": {"seed": 1000, "grid": {}},
        "attack": dict(ATTACK),
    }


def build(root: Path, **other: Any) -> None:
    tiny.build(root, **(changes() | other))
    tiny.write_interactions(interactions(), root / PROCESSED / "tiny", n_items=N_ITEMS, repeats=True)
    step = {"users": VALIDATING, "items": N_ITEMS, "interactions": len(interactions())}
    names = {"published": {}, "in-ranges": {}, "core": {"least": 2}, "last": {"most": 9}}
    tiny.write_source(root, *({"step": name, "numbers": numbers} | step for name, numbers in names.items()))


def interactions() -> pl.DataFrame:
    """Random events, 2 to 9 in a sequence; every third tested sequence repeats no item."""
    rng = np.random.default_rng(0)
    rows = []
    for user in range(VALIDATING):
        for split in ("train", "test") if user < TRAINED else ("valid",):
            length = int(rng.integers(2, 10))
            drawn = rng.choice(N_ITEMS, length, replace=split != "test" or user % 3 > 0)
            rows += [(user, item, split) for item in drawn]
    users, items, splits = zip(*rows, strict=True)
    return tiny.interactions(users, items, splits, rating=1.0)
