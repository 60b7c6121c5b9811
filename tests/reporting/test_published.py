"""The printed figures and what they mean."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl
import pytest

from tasks.config.params import load
from tasks.papers import PAPERS as FILES
from tasks.reporting.core.words import ATTACKERS
from tasks.reporting.sections.data_statistics import STATISTICS
from tasks.results.paper import FULL, Paper, Table
from tasks.stages.papers import describe
from tasks.stages.report import report_of
from tests.reporting import example_dpcrosue, example_privsr, shown
from tests.reporting.example import ROOT
from tests.systems import systems

PAPERS = {key: describe(key) for key in FILES}
GERAI, DIPSGNN, DPVAE, DPCROSUE = (PAPERS[key] for key in ("gerai", "dipsgnn", "dpvae", "dpcrosue"))
SAMPLED = "sampled-100"
ALONE = {"gerai": "ml-100k", "dipsgnn": "ml-1m"}
"""The data set on which a paper prints all its tables, where there is one."""


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_printed_number_has_exactly_one_column(paper: Paper) -> None:
    printed = pl.read_csv(ROOT / "data/reference/paper_tables.csv").with_columns(pl.col("setting").fill_null(""))
    rows = printed.filter(
        (pl.col("paper") == paper.key)
        & (pl.col("method") != "statistics")
        & (pl.col("artefact") != paper.settings_table)
    )
    meant = sorted(
        (table.key, *row, column.published)
        for table in paper.tables
        if table.comparable
        for part in table.parts
        for column in part.columns
        for row in (
            [(version.method, version.setting) for version in table.versions]
            or [(method, column.setting) for method in table.methods]
        )
    )
    if paper is not DPCROSUE:  # it prints the same of every network; see below
        assert len(meant) == len(set(meant))
    if paper.key in ALONE:  # of the paper's other data sets nothing else is printed
        rows = rows.filter(pl.col("dataset") == ALONE[paper.key])
        assert sorted(rows.select("artefact", "method", "setting", "metric").iter_rows()) == meant
    assert set(rows.select("artefact", "method", "setting", "metric").iter_rows()) == set(meant)


def test_every_number_printed_of_a_network_has_its_columns() -> None:
    """A precision has two, in both senses; everything else one."""
    printed = pl.read_csv(ROOT / "data/reference/paper_tables.csv").filter(
        (pl.col("paper") == "dpcrosue") & (pl.col("method") != "statistics")
    )
    meant: dict[tuple[str, str, str, str], set[str]] = {}
    for table in DPCROSUE.tables:
        for part in table.parts:
            for column in part.columns:
                for method in table.methods:
                    meant.setdefault((table.key, column.data, method, column.published), set()).add(column.metric)
    rows = list(printed.select("artefact", "dataset", "method", "metric").iter_rows())
    assert set(rows) == set(meant)
    assert len(rows) == len(set(rows)) == 240
    for (_, network, _, name), metrics in meant.items():
        assert len(metrics) == (1 if name.endswith("f1") or name == "occupation_precision" else 2)
        assert all(metric.startswith(f"{network}/") for metric in metrics)


def test_every_printed_statistic_is_shown() -> None:
    printed = pl.read_csv(ROOT / "data/reference/paper_tables.csv").filter(
        (pl.col("paper") == "dipsgnn") & (pl.col("dataset") == "ml-1m") & (pl.col("method") == "statistics")
    )
    assert set(printed["metric"]) == set(STATISTICS)


@pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
def test_every_table_and_figure_has_a_chart_and_its_methods_are_known(paper: Paper) -> None:
    read = {"table5"} if paper is DPCROSUE else set()  # small enough to be read
    assert set(report_of(paper.key).tables) == {table.anchor for table in paper.tables} - read
    assert set(report_of(paper.key).figures) == {figure.key for figure in paper.figures}
    drawn = {name for figure in paper.figures for name in figure.drawn}
    assert drawn | {name for table in paper.tables for name in table.methods} <= set(paper.methods)
    assert set(paper.protecting) <= set(paper.methods)
    assert paper.utility in paper.qualities


def test_every_paper_has_a_key_and_no_other_is_one() -> None:
    assert {key: paper.key for key, paper in PAPERS.items()} == {key: key for key in PAPERS}
    assert describe(None) is GERAI
    with pytest.raises(KeyError):
        describe("geraint")


def test_the_paper_that_params_yaml_names_decides_and_not_the_name_of_the_suite() -> None:
    """The same results under another paper: its layout, and on real data its numbers; under none, no numbers."""
    made_up = example_privsr.results()
    assert made_up.reproduced is made_up.layout is PAPERS["privsr"]
    other = shown.described(replace(made_up, paper="dpvae"))
    assert other.reproduced is other.layout is DPVAE
    synthetic = replace(other, synthetic=True)
    assert (synthetic.reproduced, synthetic.layout) == (None, DPVAE)
    none = shown.described(replace(made_up, paper=None))
    assert (none.reproduced, none.layout) == (None, GERAI)


def test_every_suite_names_its_paper() -> None:
    suites = load(ROOT / "params.yaml").suites
    others = {"demo": "gerai", "membership": None}
    assert {name: suite.paper for name, suite in suites.items()} == {
        name: others.get(name, name.partition("-")[0]) for name in suites
    }


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
    assert not any({SAMPLED, FULL} <= _protocols(table) for table in GERAI.tables)
    assert all(table.comparable != (FULL in _protocols(table)) for table in GERAI.tables)
    assert [_protocols(table) for table in DIPSGNN.tables] == [{"next"}, {"next-new"}]
    assert [table.comparable for table in DIPSGNN.tables] == [True, False]


def test_a_figure_without_a_chart_says_whether_it_was_not_run_or_cannot_be() -> None:
    bare, public = example_dpcrosue.ione(), example_privsr.results()
    base = replace(public, metrics=public.metrics.filter(pl.col("setting") == "base"))
    unable, idle = (_about(shown.page(results, []), "figure3") for results in (bare, base))
    assert "has not been run" not in unable
    assert "Not reproducible here:" in unable
    assert "because the data lack its users&#39; interests" in unable
    assert " has not been run at several values here." in idle
    assert "Not reproducible here:" not in idle


def _about(page: str, anchor: str) -> str:
    """What stands below the heading of an artefact, up to the next heading or section."""
    return re.split(r"<h[234]|</section>", page.partition(f'<h3 id="{anchor}">')[2])[0]


def _protocols(table: Table) -> set[str]:
    return {column.protocol for part in table.parts for column in part.columns}


def test_methods_of_the_suite_are_models_or_systems() -> None:
    run = {"BPR", "GCN", "GERAI", "GERAI-NL", "GERAI-NF"}
    assert {GERAI.methods[name] for name in run} <= set(systems())
    assert {name for table in GERAI.tables for name in table.methods} <= set(GERAI.methods)
