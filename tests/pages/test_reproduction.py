"""Reproduction: printed and ours are cells of comparison.csv, and disagreements follow from them and from runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape
from scipy import stats

from tasks.results import reproduction
from tasks.results.printed import COUNTED, Against, Cell
from tasks.results.summary import reproduction as counts
from tests.pages.committed import SUITES, draw, paper, parts, results, table

PRINTED = ("gerai", "dipsgnn-ml-1m", "dpvae", "dpcrosue")
"""Suites of whose data a paper prints numbers of methods."""


def against(suite: str) -> Against:
    return Against(results(suite), paper(suite))


@given(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-3), st.floats(-5, 5))
def test_a_number_is_reproduced_within_a_tenth_of_the_printed_one(printed: float, ours: float) -> None:
    assert Cell("a", printed, ours).near == (abs(ours - printed) <= 0.1 * abs(printed))
    assert Cell("a", printed, None).near is Cell("a", None, ours).near is None


@pytest.mark.parametrize("suite", PRINTED)
def test_cells_are_those_of_the_comparison(suite: str) -> None:
    blocks = reproduction.blocks(against(suite))
    controls = {name for of in blocks for column in of["part"].columns for name in column.controls}
    cells = [cell for of in blocks for method, line in of["rows"] for cell in line if method.name not in controls]
    rows = results(suite).comparison.filter(results(suite).comparison["protocol"] != COUNTED)
    assert sorted((cell.printed or -1, cell.mean or -1) for cell in cells if cell.n or cell.printed is not None) == (
        sorted((printed or -1, ours or -1) for printed, ours in rows.select("published", "ours_mean").iter_rows())
    )


@pytest.mark.parametrize("suite", ["gerai", "dipsgnn-ml-1m", "dpvae"])
def test_counts_of_the_page_are_those_of_the_summary(suite: str) -> None:
    rows = parts(suite)["reproduction"].context["artefacts"]
    expected = counts(results(suite).comparison)
    assert {name: sum(row[name] for row in rows) for name in expected} == expected


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_of_a_paper_has_a_page_and_others_have_none(suite: str) -> None:
    assert ("reproduction" in parts(suite)) == (results(suite).suite.paper is not None)
    if "reproduction" in parts(suite):
        html = draw(suite, "reproduction")
        assert escape(paper(suite).notes.get(results(suite).suite.publication, "")) in html
        if results(suite).claims.height:
            assert len(table(html, "Claims")) == results(suite).claims.height + 1


@pytest.mark.parametrize("suite", [name for name in SUITES if name.endswith("twin")])
def test_synthetic_data_are_compared_with_nothing_printed(suite: str) -> None:
    context = parts(suite)["reproduction"].context
    assert not context["pairs"]
    assert sum(row["cells"] for row in context["artefacts"]) == 0
    assert "SYNTHETIC DATA" in draw(suite, "reproduction")


def test_a_reversed_order_is_shown_where_the_paired_test_over_common_runs_shows_it() -> None:
    facts, of = results("dipsgnn-ml-1m"), against("dipsgnn-ml-1m")
    for pair in reproduction.pairs(of, reproduction.blocks(of), ()):
        runs = [
            facts.values(cell.experiment, pair.column.metric, pair.column.k, cell.setting)
            for cell in (pair.worse, pair.better)
        ]
        seeds = sorted(runs[0].keys() & runs[1].keys())
        worse, better = ([of[seed] for seed in seeds] for of in runs)
        if np.std(np.subtract(worse, better)):
            side = "greater" if pair.column.better == "higher" else "less"
            assert pair.shown == (stats.ttest_rel(worse, better, alternative=side).pvalue < 0.005)


def test_points_of_a_figure_are_means_of_the_setting_that_varies_its_key_alone() -> None:
    (figure,) = reproduction.figures(against("gerai"))
    facts = results("gerai")
    for of in figure["panels"]:
        panel = of["panel"]
        for point in of["points"]:
            settings = facts.systems["gerai-gerai"].settings()
            named = [name for name, own in settings.items() if own == {panel.key: point["x"]}] or ["base"]
            values = facts.values("gerai-gerai", panel.metric, panel.k, named[0])
            runs = [value for seed, value in values.items() if seed < 1_000_000]
            assert point["y"] == pytest.approx(np.mean(runs))
            assert (point["low"], point["high"]) == (min(runs), max(runs))


def test_figures_hold_the_other_keys_where_the_paper_does() -> None:
    by_key = {of["figure"].key: of["panels"] for of in reproduction.figures(against("privsr"))}
    (at_one, *_) = by_key["figure5"]
    settings = results("privsr").systems["privsr-privsr"].settings()
    expected = {own["epsilon"] for own in settings.values() if own.keys() == {"beta", "epsilon"} and own["beta"] == 1}
    assert {point["x"] for point in at_one["points"]} == expected
