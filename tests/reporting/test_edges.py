"""The attack on single interactions, as it is told."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from tasks.errors import DataError
from tasks.reporting.core.results import Results
from tasks.reporting.sections import edges
from tests.reporting import example_next


@pytest.fixture(scope="module")
def attack_results() -> Results:
    """Attacks on two systems, with and without noise."""
    return example_next.results()


def test_every_attack_stands_beside_its_control_and_chance(attack_results: Results) -> None:
    table = edges.table(attack_results)
    assert table is not None
    assert len(table.rows) == 16  # two systems, two things seen, two worlds, two budgets; no noise is a column
    for row in table.rows:
        assert [row.cells[place].text for place in (4, 5)] == ["0.800", "0.000"]
        assert row.cells[3].kind.endswith("found") == (row.cells[2].text == "5")  # 0.1 ± 0.04, and 0.02 ± 0.04


def test_an_attack_without_a_control_says_so(attack_results: Results) -> None:
    assert attack_results.edges is not None
    table = edges.table(replace(attack_results, edges=attack_results.edges.filter(pl.col("epsilon").is_not_null())))
    assert table is not None
    assert {row.cells[4].text for row in table.rows} == {"not run"}
    table = edges.table(replace(attack_results, edges=attack_results.edges.filter(pl.col("epsilon").is_null())))
    assert table is not None
    assert {row.cells[2].text for row in table.rows} == {"no noise"}


def test_the_chart_has_chance_budgets_and_no_noise(attack_results: Results) -> None:
    panels = edges.chart(attack_results).panels
    assert len(panels) == 4
    for panel in panels:
        assert [level.y for level in panel.levels] == [0.0]
        assert panel.x_ticks == [3.0, 5.0, math.inf]
        line = next(series for series in panel.series if series.name == "dipsgnn")
        assert [point.y for point in line.points] == [0.02, 0.1, 0.8]
        assert [point.x for point in line.points] == sorted(point.x for point in line.points)


def test_the_number_of_systems_counts_no_settings_and_no_controls(attack_results: Results) -> None:
    assert attack_results.edges is not None
    lists = attack_results.edges.head(1).with_columns(system=pl.lit("popular lists"))
    deeper = attack_results.edges.with_columns(setting=pl.lit("steps=2"))
    more = replace(attack_results, edges=pl.concat([attack_results.edges, lists, deeper]))
    for results in (attack_results, more):
        assert edges.chart(results).sample.startswith("n = 2 systems, ")


def test_a_budget_is_not_told_twice(attack_results: Results) -> None:
    assert attack_results.edges is not None
    name = pl.when(pl.col("epsilon") == 3.0).then(pl.lit("epsilon=3.0")).otherwise(pl.col("setting"))
    swept = replace(attack_results, edges=attack_results.edges.with_columns(setting=name))
    assert edges.table(swept) == edges.table(attack_results)
    assert edges.chart(swept) == edges.chart(attack_results)
    cached = replace(attack_results, edges=attack_results.edges.with_columns(setting=pl.lit("steps=2")))
    table = edges.table(cached)
    assert table is not None
    assert {row.name for row in table.rows} == {"dipsgnn, steps=2", "edgerand, steps=2"}


def test_without_the_attack_there_is_nothing(attack_results: Results) -> None:
    without = replace(attack_results, edges=None)
    assert edges.table(without) is None
    assert not edges.chart(without).panels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop("theory"), "no column theory"),
        (lambda rows: rows.with_columns(epsilon=pl.lit("five")), "columns of other types"),
        (lambda rows: rows.with_columns(target=pl.lit("gradients")), "target is one of"),
        (lambda rows: pl.concat([rows, rows.head(1)]), "given twice"),
        (
            lambda rows: rows.with_columns(system="nobody-" + pl.col("system")),
            "is no experiment of suite dipsgnn-ml-1m",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    attack_results: Results, change: Callable[[pl.DataFrame], pl.DataFrame], message: str
) -> None:
    assert attack_results.edges is not None
    with pytest.raises(DataError, match=message):
        edges.table(replace(attack_results, edges=change(attack_results.edges)))
