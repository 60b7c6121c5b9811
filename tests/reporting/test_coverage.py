"""Printed numbers are counted once each, under the best data that they were measured on, and none lacks its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from flows.cli import app
from tasks.config.originals import stands_for
from tasks.config.params import load
from tasks.reporting import coverage, files
from tasks.reporting.core import comparison, origins
from tasks.reporting.core.layout import DASH
from tasks.reporting.core.results import Results
from tasks.stages import coverage as stage
from tasks.stages import data
from tasks.stages.report import read, report_of
from tests.reporting import example_dpcrosue

ROOT = Path(__file__).resolve().parents[2]
K = 10


@pytest.fixture(scope="module")
def printed() -> pl.DataFrame:
    return files.read_published(ROOT / "data/reference/paper_tables.csv")


@pytest.fixture(scope="module")
def committed() -> Iterator[list[coverage.Line]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield stage.committed()


def evidence_of(results: Results) -> coverage.Evidence:
    evidence = coverage.evidence(results, report_of(results.paper), K)
    assert evidence is not None
    return evidence


def counted(lines: list[coverage.Line], paper: str, *datasets: str) -> Counter[str]:
    mine = [line.numbers for line in lines if line.paper == paper and (not datasets or line.dataset in datasets)]
    return sum(mine, Counter[str]())


def test_every_printed_number_counts_once_and_none_lacks_its_reason(
    committed: list[coverage.Line], printed: pl.DataFrame
) -> None:
    tables = {
        key: n for *key, n in printed.group_by("paper", "artefact", "dataset").len().iter_rows() for key in [tuple(key)]
    }
    assert {
        (line.paper, line.artefact, line.dataset): line.numbers.total() for line in committed if line.dataset
    } == tables
    for line in committed:
        assert bool(line.reasons) == (line.numbers[coverage.NONE] > 0 or not (line.dataset or line.drawn)), line
        assert not line.dataset or bool(line.steps) == (line.numbers["real"] < line.numbers.total()), line
    *_, total = coverage.by_artefact(committed)
    assert total[2] == f"{printed.height:,}"


def test_what_the_data_at_hand_allow_is_measured_on_them(committed: list[coverage.Line]) -> None:
    assert counted(committed, "gerai") == {"real": 356}
    assert counted(committed, "dpvae", "ml-100k") == {"real": 94}
    assert counted(committed, "privsr") == {"real": 8}
    assert counted(committed, "dpcrosue")["real"] == 43
    assert {line.name for line in committed if line.paper == "dipsgnn" and not line.dataset} == {
        f"Figure {number}" for number in range(3, 8)
    }


def test_a_picture_says_which_of_its_methods_and_data_it_lacks(committed: list[coverage.Line]) -> None:
    drawn = {(line.paper, line.artefact): dict(line.drawn) for line in committed if not line.dataset}
    assert drawn["dpcrosue", "figure3"]["real"] == "drawn, of DP-R-GCN", "no suite on real data has DP-CroSUE"
    assert drawn["dpcrosue", "figure3"]["synthetic"] == "drawn"
    for number in (3, 4, 6):
        assert drawn["dipsgnn", f"figure{number}"]["real"] == "drawn, on other data", "MovieLens 100K is not its data"
    for figure in (("gerai", "figure2"), ("dpvae", "figure3"), ("privsr", "figure3"), ("privsr", "figure5")):
        assert drawn[figure]["real"] == "drawn", "of several suites the best counts"
    shown = {row[:2]: row[3:] for row in coverage.by_artefact(committed)}
    assert "drawn, of DP-R-GCN" in shown["dpcrosue", "Figure 3"]


def test_a_picture_is_judged_by_the_suite_that_draws_most_of_it(printed: pl.DataFrame) -> None:
    """Not by the shortest text: that names the fewest methods. Other data come after the paper's."""
    results = example_dpcrosue.full()
    figure = replace(results.layout.figures[0], methods=("DP-CroSUE", "CroGCN", "DP-R-GCN"))
    first = evidence_of(results)

    def drawn(*suites: tuple[tuple[str, ...], bool]) -> str:
        collected = [
            replace(first, drawn={figure.key: coverage.Drawing(methods, methods == figure.methods, elsewhere)})
            for methods, elsewhere in suites
        ]
        every = coverage.lines(collected, printed, {"dpcrosue": [figure]}, {})
        (line,) = [line for line in every if line.artefact == figure.key]
        return line.drawn["real"]

    few, more, every_method = (("CroGCN",), False), (("DP-CroSUE", "DP-R-GCN"), False), (figure.methods, False)
    for order in ((few, more), (more, few)):
        assert drawn(*order) == "drawn, of DP-CroSUE and DP-R-GCN"
        assert drawn(*order, every_method) == "drawn"
        assert drawn(*order, (figure.methods, True)) == "drawn, of DP-CroSUE and DP-R-GCN"
    assert drawn((figure.methods, True)) == "drawn, on other data"
    assert drawn((few[0], True), (more[0], True)) == "drawn, of DP-CroSUE and DP-R-GCN, on other data"


def test_it_counts_what_the_committed_comparisons_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for suite in ("gerai", "dpcrosue", "dipsgnn-ml-1m"):
        table = pl.read_csv(ROOT / "data/results" / suite / "comparison.csv", infer_schema=False)
        both = table.filter(pl.col("protocol") != comparison.COUNTED).drop_nulls(["published", "ours_mean"])
        results, report, _ = read(suite)
        measured = {number for number in evidence_of(results).measured if number[3] != comparison.STATISTICS}
        numbers = both.select(pl.col("artefact", "metric"), pl.col("method", "setting").fill_null("")).unique()
        assert len(measured) == len(numbers) > 0, suite
        assert report is report_of(results.paper)


def test_a_replica_and_a_part_count_for_what_they_stand_for(real: Results, printed: pl.DataFrame) -> None:
    complete = replace(real, stands_for="")
    twin = replace(real, synthetic=True, stands_for="ml-100k", processed=replace(real.processed, dataset="twin"))
    part = replace(real, stands_for="ml-100k", processed=replace(real.processed, dataset="ml-100k-part"))
    kinds = {origins.kind(results): evidence_of(results) for results in (complete, part, twin)}
    assert list(kinds) == list(origins.KINDS)
    assert len({frozenset(evidence.measured) for evidence in kinds.values()}) == 1
    assert all(set(evidence.measured.values()) == {kind} for kind, evidence in kinds.items())
    assert kinds["real"].near == kinds["part"].near != frozenset()
    assert kinds["synthetic"].near == frozenset(), "synthetic numbers are compared with nothing"
    papers = dict.fromkeys(printed["paper"], "")
    on_replicas, on_data = (
        coverage.by_paper(coverage.lines([kinds[kind]], printed, {}, {}), papers).rows[-1].cells[-1].text
        for kind in ("synthetic", "real")
    )
    assert (on_replicas, on_data) == (DASH, f"{len(kinds['real'].near):,}")
    for best in ("synthetic", "part", "real"):
        of = [evidence for kind, evidence in kinds.items() if origins.KINDS.index(kind) >= origins.KINDS.index(best)]
        for order in (of, of[::-1]):
            lines = coverage.lines(order, printed, {}, {})
            assert counted(lines, "gerai")[best] == len(kinds["real"].measured)
    less = replace(kinds["synthetic"], measured=dict(list(kinds["synthetic"].measured.items())[:7]))
    assert counted(coverage.lines([less], printed, {}, {}), "gerai")["synthetic"] == 7


def test_data_that_stand_for_nothing_count_for_nothing(real: Results, demo: Results) -> None:
    for results in (replace(demo, stands_for=""), replace(real, paper=None)):
        assert coverage.evidence(results, report_of(real.paper), K) is None


def test_a_system_that_a_suite_has_since_its_results_is_not_said_to_be_missing(
    real: Results, printed: pl.DataFrame
) -> None:
    without = evidence_of(replace(real, stands_for="", systems=tuple(s for s in real.systems if s.label != "bpr")))

    def reasons(planned: dict[str, list[str]]) -> set[str]:
        every = coverage.lines([without], printed, {}, {}, planned)
        return {reason for line in every if line.name == "Table 3" for reason in line.reasons}

    assert "gerai: there is no bpr." in reasons({}) & reasons({"another": ["bpr"]})
    since = reasons({"gerai": ["bpr", "gcn"]})
    assert "gerai: the suite has bpr since these results were made; run it again." in since
    assert "gerai: there is no bpr." not in since
    assert "gerai: there is no rap." in since


def test_committed_reasons_are_those_of_their_suites(committed: list[coverage.Line]) -> None:
    """What a suite has is not said to be missing, and what data do not have is said to be impossible."""
    suites = load(ROOT / "params.yaml").suites
    for line in committed:
        for reason in line.reasons:
            suite, _, said = reason.partition(": ")
            if said.startswith("there is no "):
                label = said.removeprefix("there is no ").partition(".")[0]
                assert f"{suite}-{label}" not in suites[suite].experiments, reason
            if "prior=user" in said:
                assert "Not there: user-level priors: nothing is known of these users" in said


def test_what_was_not_run_is_a_reason(real: Results, printed: pl.DataFrame) -> None:
    dropped = replace(
        real, stands_for="", systems=tuple(system for system in real.systems if system.label not in ("bpr", "ease"))
    )
    reasons = evidence_of(dropped).reasons
    assert {reason for number, reason in reasons.items() if number[3] == "BPR"} == {"gerai: there is no bpr."}
    (line,) = [
        line
        for line in coverage.lines([evidence_of(dropped)], printed, {}, {})
        if (line.paper, line.name) == ("gerai", "Table 4")
    ]
    assert "gerai: there is no gerai-nl." in line.reasons
    assert not any("bpr" in reason for reason in line.reasons)
    nothing = [line for line in coverage.lines([], printed, {}, {}) if line.dataset == "netflix"]
    assert {line.reasons for line in nothing} == {
        ("no suite of the paper has results on netflix, a part of it or a replica.",)
    }


def test_networks_of_others_under_the_same_names_count_for_nothing() -> None:
    of_paper = replace(example_dpcrosue.weibo(), stands_for="weibo")
    assert any(number[2] == "weibo1" for number in evidence_of(of_paper).measured)
    others = replace(
        of_paper, synthetic=False, stands_for="", processed=replace(of_paper.processed, dataset="weibo-by-others")
    )
    assert evidence_of(others).measured == {}


def test_what_stands_for_what_is_declared_with_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    params = load()
    for name, dataset in params.datasets.items():
        assert (dataset.replica_of is not None) == dataset.source.startswith("twin_"), name
    assert stands_for("dipsgnn-ml-1m-part", params) == stands_for("dipsgnn-ml-1m-twin", params) == "ml-1m"
    assert stands_for("dipsgnn-ml-100k", params) == ""


def test_official_data_are_looked_at_by_a_command_that_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    steps = stage.official_steps()
    assert {"dprec data verify tmall", "dprec data verify netflix", "dprec data verify weibo"} <= {
        verify for verify, _ in steps.values()
    }
    for verify, then in steps.values():
        data._dataset(verify.removeprefix("dprec data verify "))
        assert Path(then.removeprefix("then ")).is_file()


def test_the_command_shows_every_artefact_and_what_is_missing(
    committed: list[coverage.Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(stage, "committed", lambda: committed)
    shown = CliRunner().invoke(app, ["coverage"])
    assert shown.exit_code == 0
    for line in committed:
        assert all(f": {reason}" in shown.output for reason in line.reasons)
    assert "all papers" in shown.output
    assert "With the official data: dprec data verify tmall, then docs/dipsgnn.md" in shown.output
