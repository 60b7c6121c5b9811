"""Printed numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest

from tasks.reporting.core import comparison
from tasks.reporting.core.results import Results
from tasks.reporting.sections import networks, tables
from tests.reporting import shown


def rows(results: Results, **where: str) -> list[dict]:
    frame = comparison.frame(results)
    for column, value in where.items():
        frame = frame.filter(pl.col(column) == value)
    return frame.to_dicts()


def test_each_printed_number_stands_beside_the_mean_of_ours(real: Results) -> None:
    (row,) = rows(real, artefact="table3", method="BPR", metric="hit@10", protocol="sampled-100")
    values = real.values(real.find_compared("bpr"), "sampled-100/hit", 10)
    assert row["published"] == "0.507"
    assert float(row["ours_mean"]) == pytest.approx(values.mean(), abs=1e-6)
    assert float(row["ours_std"]) == pytest.approx(values.std(ddof=1), abs=1e-6)
    assert row["seeds"] == 3


def test_another_attacker_fills_another_row(real: Results) -> None:
    (row,) = rows(real, artefact="table5", method="GCN", setting="attacker=knn", metric="f1_age@5")
    values = real.values(real.find_compared("gcn"), "attribute/age/knn/f1", 5)
    assert (row["published"], row["ours_mean"]) == ("0.487", f"{values.mean():.6f}")


def test_every_printed_number_has_its_row_and_what_was_not_run_has_no_number_of_ours(real: Results) -> None:
    frame = comparison.frame(real)
    assert (frame["published"] != "").sum() == (real.published["paper"] == "gerai").sum()
    not_run = frame.filter(pl.col("method").is_in(["Blurm", "DPAE", "DPNE", "DPMF", "RAP", "GERAI-NL"]))
    assert not_run.height > 0
    assert set(not_run["ours_mean"]) == set(not_run["ours_std"]) == {""}
    assert set(not_run["seeds"]) == {0}


def test_full_ranking_is_never_beside_a_printed_number(real: Results) -> None:
    full = comparison.frame(real).filter(pl.col("protocol") == "full")
    assert full.height > 0
    assert set(full["published"]) == {""}


def test_popularity_is_in_every_table(real: Results) -> None:
    frame = comparison.frame(real)
    for artefact in ("table2", "table3", "table4", "table5"):
        assert {"popularity", "dp-popularity"} <= set(frame.filter(pl.col("artefact") == artefact)["method"])


def test_synthetic_data_are_compared_with_no_paper(demo: Results, read: Callable[..., Results]) -> None:
    for results in (demo, read(synthetic=True)):
        frame = comparison.frame(results)
        assert set(frame["published"]) == set(frame["paper"]) == {""}
        assert frame.height > 0


def test_a_suite_of_no_paper_has_no_table_of_a_papers_versions_and_names_no_paper(
    real: Results, read: Callable[..., Results]
) -> None:
    own = replace(read(), paper=None)
    assert set(comparison.frame(own)["artefact"]) == {"table2", "table3", "table5"}
    assert "table4" in set(comparison.frame(real)["artefact"])
    assert "Zhang" in shown.page(real, [])
    assert "Zhang" not in shown.page(own, [])


def test_another_data_set_than_the_printed_one_is_not_compared(real: Results) -> None:
    other = replace(real, processed=replace(real.processed, dataset="ml-1m"))
    assert set(comparison.frame(other)["published"]) == {""}


def test_one_seed_has_no_standard_deviation(real: Results) -> None:
    single = replace(real, metrics=real.metrics.filter(pl.col("seed") == 0))
    measured = [row for row in rows(single) if row["seeds"]]
    assert {row["seeds"] for row in measured} == {1}
    assert {row["ours_std"] for row in measured} == {""}


def test_agreement_counts_pairs_that_both_were_printed_and_run(real: Results) -> None:
    shown = {table.anchor: parts for table, parts in tables.published_tables(real)}
    (ablation,) = shown["table4"]
    foot = ablation.rows[-1]
    assert foot.name == "ordering agreement"
    # Hit@5 is printed as GCN > GERAI-NF > GERAI, and made up in the same order.
    assert (foot.cells[0].text, foot.cells[0].lines) == ("100 %", ("of 3 pairs",))
    assert all(row.name != "ordering agreement" for part in shown["table3-full"] for row in part.rows)


def test_agreement_is_of_the_pairs_that_are_ordered_in_print(real: Results) -> None:
    """Of three methods with two printed as equal, two pairs have an order."""
    printed = pl.when((pl.col("artefact") == "table4") & (pl.col("method") != "GERAI")).then(0.9).otherwise("value")
    tied = replace(real, published=real.published.with_columns(value=printed))
    (ablation,) = next(parts for table, parts in tables.published_tables(tied) if table.anchor == "table4")
    assert {cell.lines for cell in ablation.rows[-1].cells} == {("of 2 pairs",)}


def test_tables_say_not_run_beside_the_printed_number(real: Results) -> None:
    shown = {table.anchor: parts for table, parts in tables.published_tables(real)}
    row = next(row for row in shown["table3"][0].rows if row.name == "RAP")
    assert (row.cells[0].text, row.cells[0].lines) == ("not run", ("paper 0.319",))


def test_a_count_that_is_not_public_is_missing_and_no_zero() -> None:
    """Nothing differs by −100 % from what is printed where nothing of ours is known."""
    texts = {
        (ours, theirs): [cell.text for cell in networks.count_row("posts", ours, theirs, compared=True).cells]
        for ours in (None, 0.0, 50.0)
        for theirs in (None, 100.0)
    }
    assert texts[None, 100.0] == ["–", "100", "–"]
    assert texts[None, None] == ["–", "–", "–"]
    assert texts[0.0, 100.0] == ["0", "100", "−100"]
    assert texts[50.0, None] == ["50", "–", "–"]
    assert [cell.text for cell in networks.count_row("posts", None, None, compared=False).cells] == ["–"]
