"""Papers as data: every printed number has its column, and every reason says where its evidence is."""

import re

import polars as pl
import pytest

from tasks.config.params import load
from tasks.papers import PAPERS
from tasks.pipeline.papers import describe
from tasks.results.paper import Paper, Table
from tests.parameters import ROOT
from tests.results.made import COMMITTED, REFERENCE, committed
from tests.systems import systems

ALONE = {"gerai": "ml-100k", "dipsgnn": "ml-1m"}
"""The data set on which a paper prints all its tables, where there is one."""
PRINTED = pl.read_csv(REFERENCE).with_columns(pl.col("setting").fill_null("")).filter(pl.col("method") != "statistics")


@pytest.fixture(params=PAPERS)
def paper(request: pytest.FixtureRequest) -> Paper:
    return describe(request.param)


def test_every_printed_number_has_its_column(paper: Paper) -> None:
    rows = PRINTED.filter(pl.col("paper") == paper.key, pl.col("artefact") != paper.settings_table)
    columns = ("artefact", "method", "setting", "metric")
    meant = [
        (table.key, *row, column.published)
        for table in paper.tables
        if table.comparable
        for part in table.parts
        for column in part.columns
        for row in (
            [(version.method, version.setting) for version in table.versions]
            or [(method, column.setting) for method in table.methods]
        )
    ]
    assert set(rows.select(columns).iter_rows()) == {*meant}
    if paper.key in ALONE:  # of the paper's other data sets nothing else is printed
        assert sorted(rows.filter(dataset=ALONE[paper.key]).select(columns).iter_rows()) == sorted(meant)
    elif paper.key != "dpcrosue":  # it prints the same of every network; see below
        assert len(meant) == len({*meant})


def test_every_number_printed_of_a_network_has_its_columns() -> None:
    """A precision has two, in both senses; everything else one."""
    meant: dict[tuple[str, str, str, str], set[str]] = {}
    for table in describe("dpcrosue").tables:
        for column in [column for part in table.parts for column in part.columns]:
            for method in table.methods:
                meant.setdefault((table.key, column.data, method, column.published), set()).add(column.metric)
    rows = PRINTED.filter(paper="dpcrosue").select("artefact", "dataset", "method", "metric").rows()
    assert sorted(rows) == sorted(meant)
    for (_, network, _, name), metrics in meant.items():
        assert len(metrics) == (1 if name.endswith("f1") or name == "occupation_precision" else 2)
        assert all(metric.startswith(f"{network}/") for metric in metrics)


def test_a_paper_names_its_methods_and_the_metric_that_it_ranks_by(paper: Paper) -> None:
    artefacts = (*paper.tables, *paper.figures)
    assert {name for artefact in artefacts for name in artefact.methods} <= set(paper.methods)
    assert paper.utility in paper.qualities
    assert {table for reason in paper.reasons for table in reason.tables} <= {table.key for table in paper.tables}


def test_columns_of_gerai_are_at_the_cut_off_and_attacker_that_they_were_printed_for() -> None:
    gerai = describe("gerai")
    for column in [column for table in gerai.tables for part in table.parts for column in part.columns]:
        assert column.published.endswith(f"@{column.k}")
        if column.metric.startswith("attribute/"):
            attacker = column.metric.split("/")[2].removeprefix("default_")
            assert attacker == (column.setting.removeprefix("attacker=") or "neural")
    assert {gerai.methods[name] for name in ("BPR", "GCN", "GERAI", "GERAI-NL", "GERAI-NF")} <= set(systems())


def test_protocols_never_share_a_table() -> None:
    def protocols(table: Table) -> set[str]:
        return {column.protocol for part in table.parts for column in part.columns}

    for table in describe("gerai").tables:
        assert not {"sampled-100", "full"} <= protocols(table)
        assert table.comparable != bool({"full", "tuned-attackers"} & protocols(table))
    next_items = describe("dipsgnn").tables
    assert [(protocols(table), table.comparable) for table in next_items] == [({"next"}, True), ({"next-new"}, False)]


def test_the_paper_that_params_yaml_names_decides_and_not_the_name_of_the_suite() -> None:
    others = {"demo": "gerai", "membership": None, "frontier": None}
    for name, suite in load(ROOT / "params.yaml").suites.items():
        first = name.partition("-")[0]
        assert suite.paper == others.get(first, first)
    assert describe(None) is describe("gerai")
    with pytest.raises(KeyError):
        describe("geraint")


def test_every_reason_says_where_its_evidence_is(paper: Paper) -> None:
    for given in paper.reasons:
        assert given.sources
        for source in given.sources:
            page, _, anchor = source.partition("#")
            path, _, test = source.partition("::")
            if page.endswith(".md"):
                headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
                assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, (
                    source
                )
            else:
                assert (f"def {test}(" if test else "def test_") in (ROOT / path).read_text(encoding="utf-8"), source


def test_systems_of_readings_are_in_a_suite_of_the_paper(paper: Paper) -> None:
    known = {system.label for suite in COMMITTED for system in committed(suite).suite.systems}
    planned = load(ROOT / "params.yaml").suites.items()
    known |= {name.removeprefix(f"{suite}-") for suite, of in planned for name in of.experiments}
    read = {label for given in paper.reasons if given.reading for label in given.reading.systems.values()}
    assert read <= known
