"""A good table passes; a table broken in one way fails on a rule about that, which names the right rows."""

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from tasks.core.contracts import RatingScale
from tasks.core.errors import DataError
from tasks.core.raw import RawSchema
from tasks.quality import metrics, processed, raw, releases
from tasks.quality.raw import on_scale
from tasks.quality.rules import Rule, Table, count, first_rows
from tests.quality import tables
from tests.quality.changes import Change, none, put, twice, value
from tests.quality.faults import FAULTS, LIST, MAY_BE_MISSING, UNIQUE, Fault, wrong_values
from tests.quality.tables import CONTRACTS, Held

NAN = float("nan")


def failures(judged: list[Table]) -> list[tuple[Table, Rule]]:
    return [(table, rule) for table in judged for rule, n in zip(table.rules, count(table)[1], strict=True) if n]


def named(failed: list[tuple[Table, Rule]]) -> set[tuple[str, str | None, str]]:
    return {(table.name, rule.column, rule.kind) for table, rule in failed}


def broken(contract: str, source: Any, change: Change, table: str) -> list[tuple[Rule, list[int]]]:
    """The rules of a table that a change of a source breaks, and the rows that each names."""
    changed = tables.contract(contract, {source: change(tables.sources(contract)[source])})
    [judged] = [each for each in changed if each.name == table]
    return [(rule, first_rows(judged, rule)[0]) for _, rule in failures([judged])]


def in_sources(contract: str) -> Iterator[tuple[Table, Any, pl.DataFrame]]:
    """The tables of a contract that are sources of it, with the source's name and rows."""
    for table in tables.contract(contract):
        for name, rows in tables.sources(contract).items():
            if table.name in (name, contract) or table.name == "epsilon=7.5":
                yield table, name, rows


@pytest.mark.parametrize("name", CONTRACTS)
def test_good_tables_keep_every_rule(name: str) -> None:
    judged = tables.contract(name)
    assert judged
    assert failures(judged) == []


@pytest.mark.parametrize("contract", CONTRACTS)
def test_what_a_column_may_not_hold_breaks_a_rule_about_it_which_names_the_row(contract: str) -> None:
    for table, source, rows in in_sources(contract):
        for column, kind in rows.schema.items():
            missing = [] if {column, f"{contract} {column}"} & MAY_BE_MISSING else [None]
            for wrong in (*wrong_values(table.name, column, kind), *missing):
                failing = broken(contract, source, value(1, column, wrong), table.name)
                assert any(column in rule.columns and numbers == [1] for rule, numbers in failing), (table.name, column)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_keys_that_repeat_and_tables_without_rows_are_refused(contract: str) -> None:
    for table, source, rows in in_sources(contract):
        assert failures(tables.contract(contract, {source: none(rows)}))
        for unique in UNIQUE.get(contract, {}).get(table.name.rpartition("/")[2], ()):
            repeated = rows
            for column in set(unique.split(", ")) & set(rows.columns):
                repeated = put(repeated, 1, column, rows[column][0])
            failing = broken(contract, source, lambda _, repeated=repeated: repeated, table.name)
            assert any(rule.column == unique and {0, 1} <= set(numbers) for rule, numbers in failing), table.name


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: f"{case.table}-{case.column}")
def test_what_rows_by_themselves_do_not_show_is_found(case: Fault) -> None:
    failing = broken(case.contract, case.source, case.change, case.table)
    assert any((rule.column, numbers) == (case.column, case.rows) for rule, numbers in failing)


def test_nothing_recommended_and_nothing_expected_are_faults_too() -> None:
    nothing = {LIST: tables.recommended()[:0]}
    judged = releases.recommendations(nothing, tables.processed_tables()["interactions"], tables.SCHEMA, tables.K)
    assert ("recommendations", None, "row_count") in named(failures(judged))
    judged = releases.next_items(
        {LIST: tables.next_items()[:0]}, tables.tested_sequences()[:0], tables.SCHEMA, tables.K
    )
    assert named(failures(judged)) == {(name, None, "row_count") for name in ("next items", "next items per example")}
    judged = releases.predictions({LIST: tables.predicted(1)[:0]}, tables.folds()[:0], tables.SCHEMA)
    assert named(failures(judged)) == {(name, None, "row_count") for name in ("predictions", "predictions per rating")}
    judged = metrics.metric_tables(tables.measured(), tables.expected_metrics()[:0])
    assert named(failures(judged)) == {("metrics expected", None, "row_count")}


def test_the_test_items_of_a_user_may_be_recommended() -> None:
    tested = put(tables.recommended(), 0, "item", 7)  # user 0 has items 3..8: 3 train, 1 valid, 2 test
    assert failures(tables.contract("recommendations", {LIST: tested})) == []


def test_values_on_a_declared_bound_pass_though_float32_rounds_them() -> None:
    features = (tables.FEATURES[0].model_copy(update={"low": 0.1, "high": 0.7}),)
    schema = tables.SCHEMA.model_copy(update={"features": features})
    good = tables.processed_tables()
    users = good["users"].select("user", count=pl.Series([0.1, 0.7] * 6, dtype=pl.Float32))
    assert failures(processed.processed_tables(Held({"": schema}, good | {"users": users}))) == []


def test_merged_ratings_lie_between_the_levels_of_the_scale_and_a_rounding_error_beyond() -> None:
    good = tables.processed_tables()["interactions"]
    merged = put(put(good, 0, "rating", 3.3333), 1, "rating", 5.0000005)
    assert failures(tables.contract("processed", {"interactions": merged})) == []
    assert failures(tables.contract("processed", {"interactions": put(good, 0, "rating", 5.0001)})) != []


@pytest.mark.parametrize(
    ("scale", "on", "off"),
    [
        (RatingScale(low=0.5, high=5, step=0.5), [0.5, 1, 4.5, 5, None], [0, 0.25, 4.75, 5.5, NAN, float("inf")]),
        (RatingScale(low=0, high=1, step=0.1), [0, 0.1, 0.3, 0.7, 1], [0.05, 0.31, 1.1]),
        (RatingScale(low=-10, high=10, step=0.25), [-10, -9.75, 0, 10], [-9.8, 10.25, 99]),
    ],
)
def test_ratings_of_any_scale_are_told_from_others(scale: RatingScale, on: list[float], off: list[float]) -> None:
    for kind in (pl.Float32, pl.Float64):
        ratings = pl.DataFrame({"rating": pl.Series(on + off, dtype=kind)})
        rows = ratings.select(on_scale(scale, None).violations.arg_true()).to_series()
        assert rows.to_list() == list(range(len(on), len(on + off)))
        assert rows.len() - 1 == ratings.select(on_scale(scale, off[0]).violations.sum()).item()


def test_pairs_may_repeat_where_the_schema_does_not_say_that_they_are_unique() -> None:
    schema = tables.RAW_SCHEMA.model_copy(update={"unique_pairs": False})
    repeated = twice(3)(tables.raw_tables()["interactions"])
    judged = raw.raw_tables(Held({"": schema}, tables.raw_tables() | {"interactions": repeated}))
    assert failures(judged) == []


def test_a_user_who_only_validates_has_something_to_learn_from() -> None:
    interactions = tables.processed_tables()["interactions"]
    moved = interactions.with_columns(split=pl.col("split").replace("train", "valid"))
    assert failures(tables.contract("processed", {"interactions": moved})) == []


def test_where_there_are_folds_a_user_need_not_have_training_data() -> None:
    interactions = tables.processed_tables()["interactions"]
    tested = interactions.with_columns(split=pl.when(pl.col("user") == 4).then(pl.lit("test")).otherwise("split"))
    assert failures(tables.contract("processed folds", {"interactions": tested})) == []


def test_ids_of_the_same_things_must_be_of_one_kind() -> None:
    users = tables.raw_tables()["users"].with_columns(pl.col("user").cast(pl.String))
    with pytest.raises(DataError, match="column users: user is String, column interactions: user is Int64"):
        tables.contract("raw", {"users": users})
    anchors = tables.raw_pair()["anchors"].with_columns(pl.col("target").cast(pl.String))
    with pytest.raises(DataError, match="column anchors: target is String, column right/users: user is Int64"):
        tables.contract("raw pair", {"anchors": anchors})


def test_anchors_need_two_networks() -> None:
    schema = RawSchema(tables=("anchors",), networks=("left",))
    with pytest.raises(DataError, match=r"schema.json: anchors join two networks, not 1"):
        raw.raw_tables(Held({"": schema, "left": tables.NETWORK_SCHEMA}, tables.raw_pair()))


def test_a_failing_row_is_named_by_its_ids() -> None:
    table = tables.contract("recommendations", {LIST: put(tables.recommended(), 7, "rank", 9)})[0]
    [(_, rule)] = failures([table])
    assert first_rows(table, rule)[1] == ["row 7 (setting=base, seed=1, user=1, rank=9, item=15)"]


@pytest.mark.parametrize(("recall", "name"), [("relevant", "full/recall"), ("reachable", "full/recall-reachable")])
def test_metrics_of_lists_are_expected_by_the_names_that_training_gives_them(recall: str, name: str) -> None:
    names = {metric for metric, _ in metrics.ranking_metrics([5], 100, recall)}
    assert {metric for metric in names if "recall" in metric} == {name}
    assert {metric.rpartition("/")[2] for metric in names} <= set(metrics.RANGES)
