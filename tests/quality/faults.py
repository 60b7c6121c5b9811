"""One way to break each rule of each contract, and what must be found."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.quality import changes, tables
from tests.quality.changes import Change, added, nobody, none, twice, value, without
from tests.quality.tables import EPSILON, N_USERS, K, put

IN_MS, NAN, INF = 880_000_000_000, float("nan"), float("inf")
RECS, NEXT, PREDICTED = "recommendations", "next items", "predictions"
RELEASE, LIST = (EPSILON, 1), ("base", 1)
UNTESTED = {(PREDICTED, "item", "holds"), (f"{PREDICTED} per rating", "rows", "between")}
UNASKED = {(NEXT, "position", "holds"), (f"{NEXT} per example", "rows", "between")}


class Fault(NamedTuple):
    """A change of one source table of a contract; table, column and kind of the rule that it breaks; failing rows."""

    contract: str
    source: Any
    change: Change
    table: str
    column: str | None
    kind: str
    rows: list[int]


def empty(contract: str, *names: str) -> list[Fault]:
    """A table without rows."""
    return [Fault(contract, name, none, name, None, "row_count", []) for name in names]


def short(contract: str, *names: str) -> list[Fault]:
    """A table with a row too few."""
    return [Fault(contract, name, without(2), name, None, "row_count", []) for name in names]


def missing(contract: str, name: str, row: int, *columns: str) -> list[Fault]:
    """A value that is not there, in each of these columns."""
    return [Fault(contract, name, value(row, column, None), name, column, "not_null", [row]) for column in columns]


def make_fault(contract: str, name: str, change: Change, column: str, kind: str, *rows: int) -> Fault:
    """A fault in the table that the rule is about."""
    return Fault(contract, name, change, name, column, kind, list(rows))


def raw() -> list[Fault]:
    name, log = "raw", "raw log"
    return [
        *empty(name, "interactions"),
        *missing(name, "interactions", 5, "user", "item", "rating", "timestamp"),
        make_fault(name, "interactions", value(5, "rating", -1), "rating", "holds", 5),
        make_fault(name, "interactions", value(5, "rating", 6), "rating", "holds", 5),
        make_fault(name, "interactions", value(5, "rating", 0), "rating", "holds", 5),
        make_fault(name, "interactions", value(5, "rating", 4.5), "rating", "holds", 5),
        make_fault(name, "interactions", value(7, "timestamp", IN_MS), "timestamp", "between", 7),
        make_fault(name, "interactions", twice(9), "user, item", "unique", 9, 72),
        make_fault(name, "interactions", value(8, "user", 99), "user", "holds", 8),
        make_fault(name, "interactions", value(8, "item", 99), "item", "holds", 8),
        make_fault(name, "users", twice(2), "user", "unique", 2, 12),
        *missing(name, "users", 3, "gender"),
        make_fault(name, "users", value(2, "age", 0), "age", "between", 2),
        make_fault(name, "users", value(2, "age", 130), "age", "between", 2),
        make_fault(name, "users", value(2, "fans", NAN), "fans", "holds", 2),
        make_fault(name, "users", value(2, "fans", INF), "fans", "holds", 2),
        make_fault(name, "users", value(3, "gender", "X"), "gender", "in_set", 3),
        make_fault(name, "users", value(3, "occupation", "spy"), "occupation", "in_set", 3),
        make_fault(name, "users", added("user", -1), "user", "between", 12),
        make_fault(name, "users", added("user", None), "user", "not_null", 12),
        make_fault(name, "items", added("item", -1), "item", "between", 40),
        make_fault(name, "items", added("item", None), "item", "not_null", 40),
        make_fault(name, "items", twice(4), "item", "unique", 4, 40),
        *empty(log, "interactions", "social"),
        *missing(log, "interactions", 3, "user", "item", "rating", "position"),
        *missing(log, "social", 1, "source", "target", "relation"),
        make_fault(log, "interactions", value(3, "user", " "), "user", "not_blank", 3),
        make_fault(log, "interactions", value(3, "item", ""), "item", "not_blank", 3),
        make_fault(log, "interactions", value(3, "rating", 5.5), "rating", "holds", 3),
        make_fault(log, "interactions", value(3, "timestamp", 1), "timestamp", "between", 3),
        make_fault(log, "interactions", value(3, "position", 8), "position", "unique", 3, 8),
        make_fault(log, "interactions", value(3, "action", 4), "action", "in_set", 3),
        make_fault(log, "interactions", value(3, "day", 931), "day", "in_set", 3),
        make_fault(log, "interactions", value(3, "slot", 12), "slot", "between", 3),
        *(
            make_fault(log, "interactions", value(3, column, -1), column, "between", 3)
            for column in ("category", "seller", "brand", "helpfulness")
        ),
        *(make_fault(log, "social", value(1, column, " "), column, "not_blank", 1) for column in ("source", "target")),
        make_fault(log, "social", value(1, "relation", ""), "relation", "not_blank", 1),
        *raw_network(),
    ]


def raw_network() -> list[Fault]:
    name, users, social, posts = "raw pair", "left/users", "left/social", "left/posts"
    labels, vectors = "left/labels", "left/vectors"
    return [
        *empty(name, social, posts, labels, vectors, "anchors"),
        *missing(name, social, 1, "source", "target", "relation"),
        *missing(name, posts, 1, "user"),
        *missing(name, labels, 1, "user"),
        *missing(name, vectors, 1, "user"),
        *missing(name, "anchors", 1, "source", "target"),
        make_fault(name, social, value(1, "source", 7), "source", "holds", 1),
        make_fault(name, social, value(1, "target", 7), "target", "holds", 1),
        make_fault(name, social, value(1, "relation", " "), "relation", "not_blank", 1),
        make_fault(name, posts, value(1, "user", 7), "user", "holds", 1),
        make_fault(name, posts, value(1, "text", None), "text", "holds", 1),
        make_fault(name, labels, value(1, "user", 1), "user", "unique", 0, 1),
        make_fault(name, labels, value(1, "user", 7), "user", "holds", 1),
        make_fault(name, labels, value(1, "films", 2), "films", "in_set", 1),
        make_fault(name, labels, value(1, "music", -1), "music", "in_set", 1),
        make_fault(name, vectors, value(1, "user", 0), "user", "unique", 0, 1),
        make_fault(name, vectors, value(1, "user", 7), "user", "holds", 1),
        make_fault(name, vectors, value(1, "vector", None), "vector", "holds", 1),
        make_fault(name, vectors, value(1, "vector", [0, NAN]), "vector", "holds", 1),
        make_fault(name, vectors, value(1, "vector", [-INF, 0]), "vector", "holds", 1),
        make_fault(name, vectors, value(1, "vector", [0, None]), "vector", "holds", 1),
        make_fault(name, "anchors", value(1, "source", 0), "source", "unique", 0, 1),
        make_fault(name, "anchors", value(1, "target", 4), "target", "unique", 0, 1),
        make_fault(name, "anchors", value(1, "source", 7), "source", "holds", 1),
        make_fault(name, "anchors", value(1, "target", 7), "target", "holds", 1),
        make_fault(name, "right/labels", value(1, "music", 3), "music", "in_set", 1),
        make_fault(name, users, twice(1), "user", "unique", 1, 5),
        make_fault(name, users, added("user", None), "user", "not_null", 5),
        make_fault(name, users, added("user", -1), "user", "between", 5),
    ]


def processed() -> list[Fault]:
    name = "processed"
    return [
        *missing(name, "interactions", 5, "user", "item", "split"),
        make_fault(name, "interactions", value(6, "user", N_USERS), "user", "between", 6),
        make_fault(name, "interactions", value(6, "item", -1), "item", "between", 6),
        make_fault(name, "interactions", value(6, "rating", 5.5), "rating", "between", 6),
        make_fault(name, "interactions", value(6, "rating", NAN), "rating", "holds", 6),
        make_fault(name, "interactions", value(6, "timestamp", IN_MS), "timestamp", "between", 6),
        make_fault(name, "interactions", value(6, "split", "tain"), "split", "in_set", 6),
        make_fault(name, "interactions", twice(6), "user, item", "unique", 6, 72),
        Fault(name, "interactions", changes.only_tested, "interactions per user", "training", "between", [4]),
        Fault(name, "interactions", nobody(5), "interactions per user", "training", "between", [5]),
        make_fault("processed sequences", "interactions", value(5, "item", 0), "item", "holds", 5),
        *short(name, "users", "user_ids", "item_ids"),
        *missing(name, "users", 1, "user", "count", "mean", "gender", "occupation"),
        make_fault(name, "users", value(0, "user", 1), "user", "unique", 0, 1),
        make_fault(name, "users", value(0, "user", -1), "user", "between", 0),
        make_fault(name, "users", value(1, "mean", 5.001), "mean", "between", 1),
        make_fault(name, "users", value(1, "count", INF), "count", "between", 1),
        make_fault(name, "users", value(1, "count", NAN), "count", "not_null", 1),
        make_fault(name, "users", value(1, "gender", "X"), "gender", "in_set", 1),
        make_fault(name, "users", value(1, "occupation", "spy"), "occupation", "in_set", 1),
        *dense(name, "user_ids", "original", N_USERS),
        *dense(name, "item_ids", "original", tables.N_ITEMS),
        *folds(),
        *processed_network(),
    ]


def dense(contract: str, name: str, column: str, n: int) -> list[Fault]:
    """All ways in which ids are not 0..n-1, or their values not different words."""
    return [
        *missing(contract, name, 1, "id", column),
        make_fault(contract, name, value(1, "id", n), "id", "between", 1),
        make_fault(contract, name, value(1, "id", 0), "id", "unique", 0, 1),
        make_fault(contract, name, lambda frame: put(frame, 1, column, frame[column][0]), column, "unique", 0, 1),
        make_fault(contract, name, value(1, column, " "), column, "not_blank", 1),
    ]


def folds() -> list[Fault]:
    name = "processed folds"
    return [
        *missing(name, "folds", 1, "fold", "sensitivity"),
        make_fault(name, "folds", value(1, "sensitivity", 1), "sensitivity", "holds", 1),
        make_fault(name, "folds", value(1, "sensitivity", -0.01), "sensitivity", "holds", 1),
        Fault(name, "folds", changes.fold_skipped, "folds that occur", "fold", "holds", [4]),
        Fault(name, "folds", changes.one_fold, "folds that occur", None, "row_count", []),
    ]


def processed_network() -> list[Fault]:
    name, social, posts, words = "processed pair", "left/social", "left/posts", "left/vocabulary"
    labels, vectors = "left/labels", "left/vectors"
    return [
        *empty(name, social, posts, labels, vectors, "anchors"),
        *short(name, words, "left/user_ids"),
        *missing(name, social, 1, "source", "target", "relation"),
        *missing(name, posts, 1, "user"),
        *missing(name, labels, 1, "user"),
        *missing(name, vectors, 1, "node"),
        *missing(name, "anchors", 1, "source", "target"),
        *dense(name, words, "word", tables.N_WORDS),
        *dense(name, "left/user_ids", "original", 3),
        make_fault(name, social, value(1, "source", 3), "source", "between", 1),
        make_fault(name, social, value(1, "target", -1), "target", "between", 1),
        make_fault(name, social, value(0, "target", 0), "source, target", "holds", 0),
        make_fault(name, social, value(1, "relation", " "), "relation", "not_blank", 1),
        make_fault(name, social, value(2, "relation", "a"), "source, target, relation", "unique", 1, 2),
        make_fault(name, posts, value(1, "user", 3), "user", "between", 1),
        make_fault(name, posts, value(1, "tokens", None), "tokens", "holds", 1),
        make_fault(name, posts, value(1, "tokens", []), "tokens", "holds", 1),
        make_fault(name, posts, value(1, "tokens", [0, 4]), "tokens", "holds", 1),
        make_fault(name, posts, value(1, "tokens", [-1, 0]), "tokens", "holds", 1),
        make_fault(name, posts, value(1, "tokens", [0, None]), "tokens", "holds", 1),
        make_fault(name, posts, value(1, "tokens", [None]), "tokens", "holds", 1),
        make_fault(name, labels, value(1, "user", 3), "user", "between", 1),
        make_fault(name, labels, value(1, "user", 0), "user", "unique", 0, 1),
        make_fault(name, labels, value(1, "films", 2), "films", "in_set", 1),
        make_fault(name, vectors, value(1, "node", 3), "node", "between", 1),
        make_fault(name, vectors, value(1, "node", 0), "node", "unique", 0, 1),
        make_fault(name, vectors, value(1, "vector", None), "vector", "holds", 1),
        make_fault(name, vectors, value(1, "vector", [0, NAN]), "vector", "holds", 1),
        make_fault(name, "anchors", value(1, "source", 3), "source", "between", 1),
        make_fault(name, "anchors", value(1, "target", 4), "target", "between", 1),
        make_fault(name, "anchors", value(1, "source", 0), "source", "unique", 0, 1),
        make_fault(name, "anchors", value(1, "target", 3), "target", "unique", 0, 1),
    ]


def words() -> list[Fault]:
    name, source = "words", "features"
    columns = tables.words_table(2).columns[1:]
    return [
        *(make_fault(name, source, value(2, column, 1.001), column, "between", 2) for column in columns),
        make_fault(name, source, value(2, columns[0], -0.001), columns[0], "between", 2),
        make_fault(name, source, value(2, columns[0], INF), columns[0], "between", 2),
        make_fault(name, source, value(2, columns[0], NAN), columns[0], "not_null", 2),
        *missing(name, source, 2, *columns),
        make_fault(name, source, added("user", N_USERS), "user", "between", N_USERS),
        Fault(name, source, without(5), f"{source} per user", "rows", "between", [5]),
        Fault(name, source, twice(5), f"{source} per user", "rows", "between", [5]),
    ]


def released() -> list[Fault]:
    epsilon, per_user = "epsilon=7.5", f"{RECS} per user"
    return [
        Fault("perturbed", RELEASE, value(2, "count", 99.0), epsilon, "count", "between", [2]),
        Fault("perturbed", RELEASE, value(2, "mean", -99.0), epsilon, "mean", "between", [2]),
        Fault("perturbed", RELEASE, value(2, "count", NAN), epsilon, "count", "not_null", [2]),
        *(
            Fault("perturbed", RELEASE, value(2, column, None), epsilon, column, "not_null", [2])
            for column in tables.SCHEMA.columns
        ),
        *(
            Fault("perturbed", RELEASE, value(2, column, 0.5), epsilon, column, "in_set", [2])
            for column in tables.SCHEMA.columns[2:]
        ),
        Fault("perturbed", RELEASE, changes.reported_everything, epsilon, "features_released", "between", [3]),
        Fault("perturbed", RELEASE, without(5), f"{epsilon} per user", "rows", "between", [17]),
        Fault("perturbed", RELEASE, twice(5), f"{epsilon} per user", "rows", "between", [17]),
        Fault("perturbed", RELEASE, added("user", N_USERS), epsilon, "user", "between", [12]),
        *(Fault(RECS, LIST, value(7, column, None), RECS, column, "not_null", [7]) for column in ("rank", "item")),
        Fault(RECS, LIST, value(7, "rank", K + 1), RECS, "rank", "between", [7]),
        Fault(RECS, LIST, value(7, "item", 40), RECS, "item", "between", [7]),
        Fault(RECS, LIST, value(7, "score", INF), RECS, "score", "holds", [7]),
        Fault(RECS, LIST, value(7, "score", NAN), RECS, "score", "holds", [7]),
        Fault(RECS, LIST, value(0, "item", 3), RECS, "item", "holds", [0]),  # trained on
        Fault(RECS, LIST, value(0, "item", 6), RECS, "item", "holds", [0]),  # validated on
        Fault(RECS, LIST, value(1, "rank", 1), RECS, "setting, seed, user, rank", "unique", [0, 1]),
        Fault(RECS, LIST, value(1, "item", 10), RECS, "setting, seed, user, item", "unique", [0, 1]),
        Fault(RECS, LIST, added("user", N_USERS), RECS, "user", "between", [60]),
        Fault(RECS, LIST, without(9), per_user, "rows", "between", [13]),
        Fault(RECS, LIST, nobody(2), per_user, "rows", "between", [14]),
        *(Fault(NEXT, LIST, value(7, column, None), NEXT, column, "not_null", [7]) for column in ("rank", "item")),
        Fault(NEXT, LIST, value(7, "rank", K + 1), NEXT, "rank", "between", [7]),
        Fault(NEXT, LIST, value(7, "item", 40), NEXT, "item", "between", [7]),
        *(Fault(NEXT, LIST, value(7, "score", new), NEXT, "score", "holds", [7]) for new in (NAN, INF, 0.75)),
        Fault(NEXT, LIST, value(6, "rank", 1), NEXT, "setting, seed, user, position, rank", "unique", [5, 6]),
        Fault(NEXT, LIST, value(6, "item", 1), NEXT, "setting, seed, user, position, item", "unique", [5, 6]),
        Fault(NEXT, LIST, without(9), f"{NEXT} per example", "rows", "between", [12]),
        Fault(NEXT, LIST, nobody(3), f"{NEXT} per example", "rows", "between", [13]),
        Fault(PREDICTED, LIST, value(2, "rating", None), PREDICTED, "rating", "not_null", [2]),
        *(Fault(PREDICTED, LIST, value(2, "rating", new), PREDICTED, "rating", "between", [2]) for new in (0, 5.5)),
        Fault(PREDICTED, LIST, value(2, "prediction", NAN), PREDICTED, "prediction", "holds", [2]),
        Fault(PREDICTED, LIST, value(2, "prediction", INF), PREDICTED, "prediction", "holds", [2]),
        Fault("metrics", "metrics", value(0, "value", 1.01), "metrics", "rate", "between", [0]),
        Fault("metrics", "metrics", value(0, "value", NAN), "metrics", "value", "not_null", [0]),
        Fault("metrics", "metrics", value(17, "value", -1.5), "metrics", "advantage", "between", [17]),
        Fault("metrics", "metrics", value(19, "value", -0.1), "metrics", "amount", "between", [19]),
        Fault("metrics", "metrics", value(19, "value", INF), "metrics", "amount", "holds", [19]),
        Fault("metrics", "metrics", twice(4), "metrics", "experiment, setting, seed, metric, k", "unique", [4, 80]),
        Fault("metrics", "metrics", without(4), "metrics expected", "rows", "between", [4]),
    ]  # fmt: skip


FAULTS = [*raw(), *processed(), *words(), *released()]


BY_USER = ("labels", "posts", "vectors")
SIDES = ("source", "target")


class Joint(NamedTuple):
    """A change that cannot but break several rules: table, column and kind of each."""

    contract: str
    source: Any
    change: Change
    broken: set[tuple[str, str | None, str]]


def of_folds(change: Change, *broken: tuple[str | None, str]) -> Joint:
    """A change of `folds` after which its rows are not those of the interactions."""
    also = ("folds per interaction", "rows", "between")
    return Joint("processed folds", "folds", change, {("folds", *which) for which in broken} | {also})


def both(contract: str, name: str, change: Change, column: str, *kinds: str) -> Joint:
    """A change that breaks rules of several kinds about one column."""
    return Joint(contract, name, change, {(name, column, kind) for kind in kinds})


JOINT = [
    Joint("raw", "items", none, {("items", None, "row_count"), ("interactions", "item", "holds")}),
    Joint("raw", "users", none, {("users", None, "row_count"), ("interactions", "user", "holds")}),
    both("raw", "interactions", value(5, "user", -1), "user", "between", "holds"),
    both("raw", "interactions", value(5, "item", -1), "item", "between", "holds"),
    both("raw", "interactions", value(5, "rating", NAN), "rating", "not_null", "holds"),
    *(both("raw pair", f"left/{name}", value(1, "user", -1), "user", "between", "holds") for name in BY_USER),
    *(both("raw pair", "left/social", value(1, side, -1), side, "between", "holds") for side in SIDES),
    *(both("raw pair", "anchors", value(1, side, -1), side, "between", "holds") for side in SIDES),
    Joint(
        "raw pair",
        "left/users",
        none,
        {("left/users", None, "row_count"), ("anchors", "source", "holds")}
        | {(f"left/{name}", "user", "holds") for name in BY_USER}
        | {("left/social", side, "holds") for side in SIDES},
    ),
    Joint(
        "processed",
        "interactions",
        none,
        {("interactions", None, "row_count"), ("interactions per user", "training", "between")},
    ),
    of_folds(without(3), (None, "row_count")),
    of_folds(value(3, "user", None), ("user", "not_null")),
    of_folds(value(3, "item", None), ("item", "not_null")),
    of_folds(value(3, "user", N_USERS), ("user", "between")),
    of_folds(value(3, "item", -1), ("item", "between")),
    of_folds(value(1, "item", 3), ("user, item", "unique")),
    Joint(
        "processed folds",
        "folds",
        value(3, "fold", -1),
        {("folds", "fold", "between"), ("folds that occur", "fold", "holds")},
    ),
    Joint(
        "perturbed",
        RELEASE,
        value(2, "user", None),
        {("epsilon=7.5", "user", "not_null"), ("epsilon=7.5 per user", "rows", "between")},
    ),
    Joint(
        "words",
        "features",
        value(2, "user", None),
        {("features", "user", "not_null"), ("features per user", "rows", "between")},
    ),
    Joint(NEXT, LIST, value(7, "user", None), {(NEXT, "user", "not_null"), *UNASKED}),
    Joint(NEXT, LIST, value(7, "position", None), {(NEXT, "position", "not_null"), *UNASKED}),
    Joint(NEXT, LIST, value(7, "position", 2), UNASKED),  # the last test event
    *(Joint(NEXT, LIST, value(10, "user", user), UNASKED) for user in (1, 2)),  # one test event; not in training
    Joint(NEXT, LIST, added("user", N_USERS), {(NEXT, "user", "between"), (NEXT, "position", "holds")}),
    Joint(RECS, LIST, value(7, "user", None), {(RECS, "user", "not_null"), (f"{RECS} per user", "rows", "between")}),
    Joint(PREDICTED, LIST, value(2, "user", None), {(PREDICTED, "user", "not_null"), *UNTESTED}),
    Joint(PREDICTED, LIST, value(2, "item", None), {(PREDICTED, "item", "not_null"), *UNTESTED}),
    Joint(PREDICTED, LIST, value(2, "user", N_USERS), {(PREDICTED, "user", "between"), *UNTESTED}),
    Joint(PREDICTED, LIST, value(2, "item", 40), {(PREDICTED, "item", "between"), *UNTESTED}),
    Joint(PREDICTED, LIST, without(2), {(f"{PREDICTED} per rating", "rows", "between")}),
    Joint(
        PREDICTED,
        LIST,
        twice(2),
        {(f"{PREDICTED} per rating", "rows", "between"), (PREDICTED, "setting, seed, user, item", "unique")},
    ),
    Joint("metrics", "metrics", none, {("metrics", None, "row_count"), ("metrics expected", "rows", "between")}),
    Joint(
        "metrics",
        "metrics",
        value(0, "metric", "sampled-100/surprise"),
        {("metrics", "kind", "in_set"), ("metrics expected", "rows", "between")},
    ),
]
