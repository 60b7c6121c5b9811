"""The rules of each contract, values that none of its columns may have, and what rows by themselves do not show."""

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
RULES = """
raw | interactions: rows; not_null user item rating timestamp; between user item timestamp; holds user item rating;
    unique user+item
raw | items: rows; not_null item; between item; unique item
raw | users: rows; not_null user gender; between user age; unique user; holds fans; in_set gender occupation
raw log | interactions: rows; not_null user item rating position; not_blank user item; holds rating; between timestamp
    slot category seller brand helpfulness; unique position; in_set action day
raw log | social: rows; not_null source target relation; not_blank source target relation
raw pair | left/labels: rows; not_null user; between user; holds user; unique user; in_set films music
raw pair | left/posts: rows; not_null user; between user; holds user text
raw pair | left/social: rows; not_null source target relation; between source target; holds source target; not_blank
    relation
raw pair | left/users: rows; not_null user; between user; unique user
raw pair | left/vectors: rows; not_null user; between user; holds user vector vector; unique user
raw pair | anchors: rows; not_null source target; between source target; unique source target; holds source target
processed | interactions: rows; not_null user item split; between user item timestamp rating; in_set split; holds
    rating; unique user+item
processed | interactions per user: between training
processed | item_ids: rows; not_null id original; between id; unique id original; not_blank original
processed | user_ids: rows; not_null id original; between id; unique id original; not_blank original
processed | users: rows; not_null user count mean gender occupation; between user count mean; unique user; in_set
    gender occupation
processed sequences | interactions: rows; not_null user item split; between user item timestamp rating; in_set split;
    holds rating item
processed folds | folds: rows; not_null user item fold sensitivity; between user item fold; unique user+item; holds
    sensitivity
processed folds | folds per interaction: between rows
processed folds | folds that occur: rows; holds fold
processed pair | left/labels: rows; not_null user; between user; unique user; in_set films
processed pair | left/posts: rows; not_null user; between user; holds tokens tokens tokens
processed pair | left/social: rows; not_null source target relation; between source target; not_blank relation; holds
    source+target; unique source+target+relation
processed pair | left/user_ids: rows; not_null id original; between id; unique id original; not_blank original
processed pair | left/vectors: rows; not_null node; between node; unique node; holds vector vector
processed pair | left/vocabulary: rows; not_null id word; between id; unique id word; not_blank word
processed pair | anchors: rows; not_null source target; between source target; unique source target
perturbed | epsilon=7.5: not_null user count mean gender=F gender=M occupation=artist occupation=doctor
    occupation=other; between user count mean features_released; in_set gender=F gender=M occupation=artist
    occupation=doctor occupation=other
perturbed | epsilon=7.5 per user: between rows
words | features: not_null user count.0 count.1 mean.0 mean.1 gender.0 gender.1 occupation.0 occupation.1; between
    user count.0 count.1 mean.0 mean.1 gender.0 gender.1 occupation.0 occupation.1
words | features per user: between rows
recommendations | recommendations: rows; not_null user item rank; between user item rank; holds score item; unique
    setting+seed+user+rank setting+seed+user+item
recommendations | recommendations per user: rows; between rows
next items | next items: rows; not_null user item rank position; between user item rank; holds score score position;
    unique setting+seed+user+position+rank setting+seed+user+position+item
next items | next items per example: rows; between rows
predictions | predictions: rows; not_null user item rating; between user item rating; holds prediction item; unique
    setting+seed+user+item
predictions | predictions per rating: rows; between rows
metrics | metrics: rows; not_null value; in_set kind; between rate advantage amount; holds amount; unique
    experiment+setting+seed+metric+k
metrics | metrics expected: rows; between rows
"""
"""Contract | table: of each kind of rule the columns that it is about; the second network of a pair is as the first."""
IDS = ("user", "item", "source", "target", "id", "node")
WRONG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(IDS, (-1,)), "rating": (-1, 5.5, NAN), "timestamp": (1, IN_MS), "age": (0, 130), "fans": (INF, NAN),
    "gender": ("X",), "occupation": ("spy",), "action": (4,), "day": (931,), "slot": (0, 12), "relation": (" ",),
    **dict.fromkeys(("category", "seller", "brand", "helpfulness", "fold"), (-1,)), "films": (2,), "music": (-1,),
    "text": (None,), "vector": (None, [0, NAN], [-INF, 0], [0, None]), "split": ("tain",), "mean": (-99.0,),
    "tokens": (None, [], [0, 4], [-1, 0], [0, None], [None]), "count": (99.0, INF, NAN), "sensitivity": (1, -0.01),
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
