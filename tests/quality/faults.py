"""Keys of tables, values that none of their columns may have, and what rows by themselves do not show."""

from typing import Any, NamedTuple

import polars as pl

from tests.quality.changes import (
    Change,
    fold_skipped,
    nobody,
    one_fold,
    only_tested,
    reported_everything,
    twice,
    value,
    without,
)
from tests.quality.tables import EPSILON

IN_MS, NAN, INF = 880_000_000_000, float("nan"), float("inf")
PAIR, NUMBERED = "source, target, relation", ("id", "original")
UNIQUE: dict[str, dict[str, tuple[str, ...]]] = {
    "raw": {"interactions": ("user, item",), "items": ("item",), "users": ("user",)},
    "raw log": {"interactions": ("position",)},
    "raw pair": {"labels": ("user",), "users": ("user",), "vectors": ("user",), "anchors": ("source", "target")},
    "processed": {"interactions": ("user, item",), "users": ("user",), "item_ids": NUMBERED, "user_ids": NUMBERED},
    "processed sequences": {"users": ("user",), "item_ids": NUMBERED, "user_ids": NUMBERED},
    "processed folds": {"interactions": ("user, item",), "folds": ("user, item",)},
    "processed pair": {"labels": ("user",), "social": (PAIR,), "user_ids": NUMBERED, "vectors": ("node",)}
    | {"vocabulary": ("id", "word"), "anchors": ("source", "target")},
    "recommendations": {"recommendations": tuple(f"setting, seed, user, {last}" for last in ("rank", "item"))},
    "next items": {"next items": tuple(f"setting, seed, user, position, {last}" for last in ("rank", "item"))},
    "predictions": {"predictions": ("setting, seed, user, item",)},
    "metrics": {"metrics": ("experiment, setting, seed, metric, k",)},
}
"""Contract -> table -> columns that no two rows have alike."""
SPLIT = ("processed", "processed sequences", "processed folds")
MAY_BE_MISSING = {
    *("title", "age", "fans", "action", "day", "slot", "category", "seller", "brand", "helpfulness", "films", "music"),
    *("validates", "score", "prediction", "raw occupation"),
    *(f"{where} timestamp" for where in ("raw log", *SPLIT)),
    *(f"{where} rating" for where in SPLIT),
    *(f"metrics {name}" for name in ("suite", "experiment", "setting", "seed", "metric", "k", "dataset", "model")),
}
"""Columns, or a contract's columns, that may be empty in a row; a metric of no name is one that is not expected."""
IDS = ("user", "item", "source", "target", "id", "node")
WRONG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(IDS, (-1,)), "rating": (-1, 5.5, NAN), "timestamp": (1, IN_MS), "age": (0, 130), "fans": (INF, NAN),
    "gender": ("X",), "occupation": ("spy",), "action": (4,), "day": (931,), "slot": (0, 12), "relation": (" ",),
    **dict.fromkeys(("category", "seller", "brand", "helpfulness", "fold"), (-1,)), "films": (2,), "music": (-1,),
    "vector": ([0, NAN], [-INF, 0], [0, None]), "split": ("tain",), "mean": (-99.0,),
    "tokens": ([], [0, 4], [-1, 0], [0, None], [None]), "count": (99.0, INF, NAN), "sensitivity": (1, -0.01),
    "original": (" ",), "word": (" ",), "rank": (0, 6), "score": (NAN, INF), "prediction": (NAN, INF), "value": (NAN,),
    "gender=F": (0.5,), "occupation=other": (0.5,), "mean.0": (1.001, -0.001, NAN), "gender.1": (1.001,),
}  # fmt: skip
"""Column -> values, each of which a rule about that column refuses in every contract that has it."""


class Fault(NamedTuple):
    """A change of one source of a contract; table and column of the rule that finds it, and the rows it names."""

    contract: str
    source: Any
    change: Change
    table: str
    column: str | None
    rows: list[int]


RELEASE, LIST = (EPSILON, 1), ("base", 1)
NEXT, PREDICTED, KEYS = "next items", "predictions", "setting, seed, user"
SURPRISE = value(0, "metric", "sampled-100/surprise")
FAULTS = [
    Fault("raw", "interactions", value(5, "rating", 4.5), "interactions", "rating", [5]),
    Fault("processed", "interactions", only_tested, "interactions per user", "training", [4]),
    Fault("processed", "interactions", nobody(5), "interactions per user", "training", [5]),
    Fault("processed sequences", "interactions", value(5, "item", 0), "interactions", "item", [5]),
    Fault("processed folds", "folds", fold_skipped, "folds that occur", "fold", [4]),
    Fault("processed folds", "folds", one_fold, "folds that occur", None, []),
    Fault("processed folds", "folds", without(3), "folds per interaction", "rows", [3]),
    Fault("processed pair", "left/social", value(0, "target", 0), "left/social", "source, target", [0]),
    Fault("words", "features", without(5), "features per user", "rows", [5]),
    Fault("words", "features", twice(5), "features per user", "rows", [5]),
    Fault("perturbed", RELEASE, reported_everything, "epsilon=7.5", "features_released", [3]),
    Fault("perturbed", RELEASE, without(5), "epsilon=7.5 per user", "rows", [17]),
    Fault("perturbed", RELEASE, twice(5), "epsilon=7.5 per user", "rows", [17]),
    Fault("recommendations", LIST, value(0, "item", 3), "recommendations", "item", [0]),  # trained on
    Fault("recommendations", LIST, value(0, "item", 6), "recommendations", "item", [0]),  # validated on
    Fault("recommendations", LIST, without(9), "recommendations per user", "rows", [13]),
    Fault("recommendations", LIST, nobody(2), "recommendations per user", "rows", [14]),
    Fault(NEXT, LIST, value(7, "score", 0.75), NEXT, "score", [7]),
    Fault(NEXT, LIST, value(7, "position", 2), NEXT, "position", [7]),  # the last test event
    Fault(NEXT, LIST, value(10, "user", 1), NEXT, "position", [10]),  # one test event
    Fault(NEXT, LIST, value(10, "user", 2), NEXT, "position", [10]),  # not in training
    Fault(NEXT, LIST, without(9), f"{NEXT} per example", "rows", [12]),
    Fault(NEXT, LIST, nobody(3), f"{NEXT} per example", "rows", [13]),
    Fault(PREDICTED, LIST, value(2, "item", 38), PREDICTED, "item", [2]),
    Fault(PREDICTED, LIST, without(2), f"{PREDICTED} per rating", "rows", [5]),
    Fault("metrics", "metrics", value(0, "value", 1.01), "metrics", "rate", [0]),
    Fault("metrics", "metrics", value(23, "value", -1.5), "metrics", "advantage", [23]),
    Fault("metrics", "metrics", value(25, "value", -0.1), "metrics", "amount", [25]),
    Fault("metrics", "metrics", value(25, "value", INF), "metrics", "amount", [25]),
    Fault("metrics", "metrics", SURPRISE, "metrics", "kind", [0]),
    Fault("metrics", "metrics", without(4), "metrics expected", "rows", [4]),
]


def wrong_values(table: str, column: str, kind: pl.DataType) -> tuple[Any, ...]:
    """What a column of a source may not hold; what a table lists itself, it may list further."""
    if column not in IDS:
        return WRONG.get(column, ())
    further = table.rpartition("/")[2] in ("users", "items")
    return (" ",) if kind == pl.String else WRONG[column] if further else (*WRONG[column], 99)
