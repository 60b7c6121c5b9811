"""A good table passes; a table broken in one way fails on exactly the rule about that, which names the right rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from tasks.quality import runner, suites
from tasks.quality.rules import Rule, Table, first_rows
from tests.quality import tables
from tests.quality.tables import EPSILON, N_USERS, K, drop, put, repeat

CONTRACTS = ("raw", "processed", "perturbed", "recommendations", "metrics")
IN_MS = 880_000_000_000
RECS = "recommendations"
RELEASE, LIST = (EPSILON, 1), ("base", 1)


class Break(NamedTuple):
    """One way to break one source table of a contract, and what must be found."""

    contract: str
    source: Any
    change: Callable[[pl.DataFrame], pl.DataFrame]
    table: str
    column: str | None
    kind: str
    rows: list[int]


def value(row: int, column: str, new: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: put(frame, row, column, new)


def without(row: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: drop(frame, row)


def twice(row: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: repeat(frame, row)


def nobody(user: int) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda frame: frame.filter(pl.col("user") != user)


def from_zero(frame: pl.DataFrame) -> pl.DataFrame:
    """An item with id 0, which ids as published never have."""
    return pl.concat([frame, put(frame[:1], 0, "item", 0)])


def reported_everything(frame: pl.DataFrame) -> pl.DataFrame:
    """User 3 gets a value in every feature, where at most 3 of the 4 are sampled."""
    for column in tables.SCHEMA.columns:
        frame = put(frame, 3, column, 1.0)
    return frame


def only_tested(frame: pl.DataFrame) -> pl.DataFrame:
    """All interactions of user 4 are moved to the test."""
    return frame.with_columns(split=pl.when(pl.col("user") == 4).then(pl.lit("test")).otherwise("split"))


BREAKS = [
    Break("raw", "ratings", lambda frame: frame[:0], "ratings", None, "row_count", []),
    Break("raw", "ratings", value(5, "rating", None), "ratings", "rating", "not_null", [5]),
    Break("raw", "ratings", value(5, "rating", 6), "ratings", "rating", "between", [5]),
    Break("raw", "ratings", value(5, "rating", 0), "ratings", "rating", "between", [5]),
    Break("raw", "ratings", value(7, "timestamp", IN_MS), "ratings", "timestamp", "between", [7]),
    Break("raw", "ratings", value(7, "timestamp", None), "ratings", "timestamp", "not_null", [7]),
    Break("raw", "ratings", twice(9), "ratings", "user, item", "unique", [9, 72]),
    Break("raw", "ratings", value(8, "user", 99), "ratings", "user_known", "in_set", [8]),
    Break("raw", "ratings", value(8, "item", 99), "ratings", "item_known", "in_set", [8]),
    Break("raw", "users", twice(2), "users", "user", "unique", [2, 12]),
    Break("raw", "users", value(2, "age", 0), "users", "age", "between", [2]),
    Break("raw", "users", value(2, "age", 130), "users", "age", "between", [2]),
    Break("raw", "users", value(2, "age", None), "users", "age", "not_null", [2]),
    Break("raw", "users", value(3, "gender", "X"), "users", "gender", "in_set", [3]),
    Break("raw", "users", value(3, "gender", None), "users", "gender", "not_null", [3]),
    Break("raw", "users", value(3, "occupation", "spy"), "users", "occupation", "in_set", [3]),
    Break("raw", "items", from_zero, "items", "item", "between", [40]),
    Break("raw", "items", twice(4), "items", "item", "unique", [4, 40]),
    Break("raw", "items", value(4, "title", " "), "items", "title", "not_blank", [4]),
    Break("raw", "items", value(4, "title", None), "items", "title", "not_null", [4]),
    Break("processed", "interactions", value(6, "user", N_USERS), "interactions", "user", "between", [6]),
    Break("processed", "interactions", value(6, "item", -1), "interactions", "item", "between", [6]),
    Break("processed", "interactions", value(6, "rating", 5.5), "interactions", "rating", "between", [6]),
    Break("processed", "interactions", value(6, "timestamp", IN_MS), "interactions", "timestamp", "between", [6]),
    Break("processed", "interactions", value(6, "split", "tain"), "interactions", "split", "in_set", [6]),
    Break("processed", "interactions", twice(6), "interactions", "user, item", "unique", [6, 72]),
    Break("processed", "interactions", only_tested, "users", "train_interactions", "between", [4]),
    Break("processed", "users", without(11), "users", None, "row_count", []),
    Break("processed", "users", value(0, "user", 1), "users", "user", "unique", [0, 1]),
    Break("processed", "users", value(1, "mean", 5.001), "users", "mean", "between", [1]),
    Break("processed", "users", value(1, "count", float("nan")), "users", "count", "not_null", [1]),
    Break("processed", "users", value(1, "gender", "X"), "users", "gender", "in_set", [1]),
    Break("processed", "user_ids", without(3), "user_ids", None, "row_count", []),
    Break("processed", "item_ids", value(3, "id", 40), "item_ids", "id", "between", [3]),
    Break("processed", "item_ids", value(3, "id", 4), "item_ids", "id", "unique", [3, 4]),
    Break("processed", "item_ids", value(3, "original", "5"), "item_ids", "original", "unique", [3, 4]),
    Break("perturbed", RELEASE, value(2, "count", 99.0), "epsilon=7.5", "count", "between", [2]),
    Break("perturbed", RELEASE, value(2, "count", float("nan")), "epsilon=7.5", "count", "not_null", [2]),
    Break("perturbed", RELEASE, value(2, "gender=F", 0.5), "epsilon=7.5", "gender=F", "in_set", [2]),
    Break("perturbed", RELEASE, reported_everything, "epsilon=7.5", "features_released", "between", [3]),
    Break("perturbed", RELEASE, without(5), "epsilon=7.5 per user", "rows", "between", [17]),
    Break("perturbed", RELEASE, twice(5), "epsilon=7.5 per user", "rows", "between", [17]),
    Break(RECS, LIST, value(7, "rank", K + 1), RECS, "rank", "between", [7]),
    Break(RECS, LIST, value(7, "item", 40), RECS, "item", "between", [7]),
    Break(RECS, LIST, value(7, "score", float("inf")), RECS, "score_finite", "in_set", [7]),
    Break(RECS, LIST, value(7, "score", float("nan")), RECS, "score_finite", "in_set", [7]),
    Break(RECS, LIST, value(0, "item", 3), RECS, "unseen", "in_set", [0]),  # trained on
    Break(RECS, LIST, value(0, "item", 6), RECS, "unseen", "in_set", [0]),  # validated on
    Break(RECS, LIST, value(1, "rank", 1), RECS, "setting, seed, user, rank", "unique", [0, 1]),
    Break(RECS, LIST, value(1, "item", 10), RECS, "setting, seed, user, item", "unique", [0, 1]),
    Break(RECS, LIST, without(9), f"{RECS} per user", "rows", "between", [13]),
    Break(RECS, LIST, nobody(2), f"{RECS} per user", "rows", "between", [14]),
    Break("metrics", "metrics", value(0, "value", 1.01), "metrics", "rate", "between", [0]),
    Break("metrics", "metrics", value(0, "value", float("nan")), "metrics", "value", "not_null", [0]),
    Break("metrics", "metrics", value(17, "value", -1.5), "metrics", "advantage", "between", [17]),
    Break("metrics", "metrics", twice(4), "metrics", "experiment, setting, seed, metric, k", "unique", [4, 76]),
    Break("metrics", "metrics", without(4), "metrics expected", "rows", "between", [4]),
]  # fmt: skip


def broken(case: Break) -> list[Table]:
    good = {
        "raw": tables.raw_tables,
        "processed": tables.processed_tables,
        "perturbed": tables.perturbed_tables,
        "recommendations": lambda: {LIST: tables.recommended()},
        "metrics": lambda: {"metrics": tables.measured()},
    }
    return tables.contract(case.contract, {case.source: case.change(good[case.contract]()[case.source])})


def failures(judged: list[Table]) -> list[tuple[Table, Rule]]:
    return [(table, rule) for table in judged for rule in table.rules if rule.count(table.frame)]


@pytest.mark.parametrize("name", CONTRACTS)
def test_good_tables_keep_every_rule(name: str) -> None:
    assert failures(tables.contract(name)) == []


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: f"{case.contract}-{case.table}-{case.column}-{case.kind}")
def test_one_fault_breaks_exactly_its_rule_and_names_its_rows(case: Break) -> None:
    [(table, rule)] = failures(broken(case))
    assert (table.name, rule.column, rule.kind) == (case.table, case.column, case.kind)
    assert first_rows(table, rule)[0] == case.rows


def test_great_expectations_finds_each_fault_and_nothing_else(tmp_path: Path) -> None:
    faulty = []
    for number, case in enumerate(BREAKS):
        [table] = [table for table in broken(case) if table.name == case.table]
        faulty.append(Table(f"{number} {table.name}", table.frame, table.rules, table.ids))
    verdict = runner.run("raw", "broken", faulty, {}, tmp_path)
    found = [result for result in verdict["results"] if not result["success"]]
    assert [(int(result["table"].split()[0]), result["column"], result["rows"]) for result in found] == [
        (number, case.column, case.rows) for number, case in enumerate(BREAKS)
    ]
    counts = [rule.count(table.frame) for table in faulty for rule in table.rules]
    assert [result["unexpected_count"] for result in verdict["results"]] == counts


def test_the_test_items_of_a_user_may_be_recommended() -> None:
    tested = put(tables.recommended(), 0, "item", 7)  # user 0 has items 3..8: 3 train, 1 valid, 2 test
    assert failures(tables.contract("recommendations", {LIST: tested})) == []


def test_values_on_a_declared_bound_pass_though_float32_rounds_them() -> None:
    features = (tables.FEATURES[0].model_copy(update={"low": 0.1, "high": 0.7}),)
    schema = tables.SCHEMA.model_copy(update={"features": features})
    good = tables.processed_tables()
    users = good["users"].select("user", count=pl.Series([0.1, 0.7] * 6, dtype=pl.Float32))
    judged = suites.processed(good["interactions"], users, {}, schema)
    assert failures(judged) == []


def test_a_failing_row_is_named_by_its_ids() -> None:
    table = tables.contract("recommendations", {LIST: put(tables.recommended(), 7, "rank", 9)})[0]
    [(_, rule)] = failures([table])
    assert first_rows(table, rule)[1] == ["row 7 (setting=base, seed=1, user=1, rank=9, item=15)"]


def test_every_metric_has_a_range() -> None:
    unknown = put(tables.measured(), 0, "metric", "sampled-100/surprise")
    found = {(table.name, rule.column) for table, rule in failures(tables.contract("metrics", {"metrics": unknown}))}
    assert found == {("metrics", "kind"), ("metrics expected", "rows")}
