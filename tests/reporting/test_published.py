"""The printed figures and what they mean."""

from __future__ import annotations

import polars as pl

from tasks.models import MODELS
from tasks.reporting.papers import PAPERS
from tasks.reporting.published import ATTACKERS, FULL, SAMPLED
from tasks.reporting.published_gerai import GERAI
from tests.reporting.example import ROOT


def test_every_printed_number_has_exactly_one_column() -> None:
    printed = pl.read_csv(ROOT / "data/reference/paper_tables.csv").with_columns(pl.col("setting").fill_null(""))
    for paper in PAPERS.values():
        rows = printed.filter(pl.col("paper") == paper.key)
        found = sorted(rows.select("artefact", "method", "setting", "metric").iter_rows())
        meant = sorted(
            (table.key, method, column.setting, column.published)
            for table in paper.tables
            if table.comparable
            for part in table.parts
            for column in part.columns
            for method in table.methods
        )
        assert found == meant


def test_a_column_is_measured_at_the_cut_off_and_attacker_that_it_was_printed_for() -> None:
    for table in GERAI.tables:
        for part in table.parts:
            for column in part.columns:
                assert column.published.endswith(f"@{column.k}")
                attacker = column.setting.removeprefix("attacker=") or "neural"
                if column.metric.startswith("attribute/"):
                    assert column.metric.split("/")[2] == attacker
                    assert attacker in ATTACKERS


def test_protocols_never_share_a_table() -> None:
    for table in GERAI.tables:
        protocols = {column.protocol for part in table.parts for column in part.columns}
        assert not {SAMPLED, FULL} <= protocols
        assert table.comparable != (FULL in protocols)


def test_methods_of_the_suite_name_registered_models() -> None:
    run = {"BPR", "GCN", "GERAI", "GERAI-NL", "GERAI-NF"}
    assert {GERAI.methods[name] for name in run} <= set(MODELS)
    assert {name for table in GERAI.tables for name in table.methods} <= set(GERAI.methods)
