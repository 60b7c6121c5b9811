"""Reproduction: printed and ours are cells of comparison.csv, and disagreements follow from them and from runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.results import reproduction
from tasks.results.claims import Reading, Reason
from tasks.results.coverage import reproduction as counts
from tasks.results.printed import COUNTED, Against, Cell
from tasks.results.reproduction import Pair
from tests.pages.committed import SUITES, draw, paper, parts, results, table

PRINTED = ("gerai", "dipsgnn-ml-1m", "dpvae", "dpcrosue")
"""Suites of whose data a paper prints numbers of methods."""


def reason(**fields: Any) -> Reason:
    """A made-up reason."""
    about: dict[str, Any] = {"name": "a reason", "kind": "protocol unstated", "evidence": "", "sources": ()}
    return Reason(**about | fields)


def against(suite: str) -> Against:
    """A suite with its paper."""
    return Against(results(suite), paper(suite))


def judged(suite: str, *reasons: Reason) -> list[Pair]:
    """Every pair of a suite."""
    return reproduction.pairs(against(suite), reproduction.blocks(against(suite)), reasons)


def reversed_(pairs: list[Pair]) -> list[Pair]:
    """Those that we order otherwise."""
    return [pair for pair in pairs if pair.order == "reversed"]


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
    total = {name: sum(row[name] for row in rows) for name in ("printed", "measured", "near")}
    expected = counts(results(suite).comparison)
    assert total == {"printed": expected["cells"], "measured": expected["run"], "near": expected["within_10_percent"]}


@pytest.mark.parametrize("suite", PRINTED)
def test_pairs_are_ordered_as_their_printed_numbers_are(suite: str) -> None:
    for pair in judged(suite):
        sign = 1 if pair.column.better == "higher" else -1
        assert sign * (pair.better.printed - pair.worse.printed) > 0  # type: ignore[operator]  # both are printed
        assert pair.better.mean is not None
        assert pair.worse.mean is not None
        if pair.better.n == pair.worse.n:
            gap = sign * (pair.better.mean - pair.worse.mean)
            assert pair.order == ("as printed" if gap > 5e-7 else "reversed" if gap < -5e-7 else pair.order)
        assert pair.order == "reversed" or not pair.shown


def test_a_reason_covers_the_reversed_pairs_that_it_names_and_the_first_counts() -> None:
    narrow, wide = reason(name="narrow", rows=("Blurm",), metrics=("hit@",)), reason(name="wide", tables=("table3",))
    for pair in judged("gerai", narrow, wide):
        names = {pair.better.method, pair.worse.method}
        if pair.order != "reversed":
            assert pair.reason is None
        elif "Blurm" in names and pair.column.published.startswith("hit@"):
            assert pair.reason is not None
            assert pair.reason.name == "narrow"
        else:
            assert (pair.reason is not None and pair.reason.name == "wide") == (pair.table == "table3")


def test_a_reason_with_a_reading_covers_pairs_that_the_reading_orders_as_printed_alone() -> None:
    added = reason(reading=Reading(settings={"Blurm": {"added": "offered"}}))
    covered = [pair for pair in judged("gerai", added) if pair.reason]
    facts = results("gerai")
    assert covered
    for pair in covered:
        assert "Blurm" in {pair.better.method, pair.worse.method}
        read = {
            cell.method: facts.values(
                cell.experiment,
                pair.column.metric,
                pair.column.k,
                "added=offered" if cell.method == "Blurm" else "base",
            )
            for cell in (pair.better, pair.worse)
        }
        seeds = read[pair.better.method].keys() & read[pair.worse.method].keys()
        gap = np.mean([read[pair.better.method][seed] - read[pair.worse.method][seed] for seed in seeds])
        assert gap * (1 if pair.column.better == "higher" else -1) > 0


def test_a_reading_that_reverses_as_much_as_it_turns_decides_nothing() -> None:
    same = Reading(systems={"BPR": "popularity", "GCN": "popularity", "RAP": "popularity"})
    kinds = {pair.kind for pair in judged("gerai", reason(reading=same)) if pair.reason}
    assert kinds <= {reproduction.UNDECIDED}


def test_that_data_are_a_part_explains_nothing_of_whole_data() -> None:
    part = reason(kind=reproduction.PART)
    assert not any(pair.reason for pair in judged("gerai", part))
    covered = reversed_(judged("dipsgnn-ml-1m", part))
    assert covered
    assert all(pair.reason for pair in covered)


def test_reasons_without_a_reading_leave_the_order_and_the_tests_as_they_are() -> None:
    plain, explained = judged("dpvae"), judged("dpvae", reason())
    assert [replace(pair, reason=None) for pair in explained] == plain


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_of_a_paper_has_a_page_and_others_have_none(suite: str) -> None:
    assert ("reproduction" in parts(suite)) == (results(suite).suite.paper is not None)
    if "reproduction" in parts(suite):
        html = draw(suite, "reproduction")
        assert html.count('<li id="claim-') == results(suite).claims.height
        assert ("printed" in html.split("<main>")[1].split("</table>")[0]) or results(suite).comparison.is_empty()


@pytest.mark.parametrize("suite", [name for name in SUITES if name.endswith("twin")])
def test_synthetic_data_are_compared_with_nothing_printed(suite: str) -> None:
    context = parts(suite)["reproduction"].context
    assert not context["pairs"]
    assert sum(row["printed"] for row in context["artefacts"]) == 0
    assert "SYNTHETIC DATA" in draw(suite, "reproduction")


def test_numbers_of_the_summary_are_those_of_its_rows() -> None:
    html = draw("gerai", "reproduction")
    rows = table(html, "Printed tables")[1:]
    expected = counts(results("gerai").comparison)
    assert sum(int(row[2]) for row in rows) == expected["cells"]
    assert f"{sum(int(row[4]) for row in rows)} of {expected['run']} measured numbers" in html


def test_a_reversed_order_is_shown_where_the_paired_test_over_common_runs_shows_it() -> None:
    facts = results("dipsgnn-ml-1m")
    for pair in judged("dipsgnn-ml-1m"):
        runs = [
            facts.values(cell.experiment, pair.column.metric, pair.column.k, cell.setting)
            for cell in (pair.worse, pair.better)
        ]
        seeds = sorted(runs[0].keys() & runs[1].keys())
        worse, better = ([of[seed] for seed in seeds] for of in runs)
        if np.std(np.subtract(worse, better)):
            side = "greater" if pair.column.better == "higher" else "less"
            assert pair.shown == (stats.ttest_rel(worse, better, alternative=side).pvalue < reproduction.ONE_SIDED)


def test_points_of_a_figure_are_means_of_the_setting_that_varies_its_key_alone() -> None:
    (figure,) = reproduction.figures(against("gerai"))
    facts = results("gerai")
    for of in figure["panels"]:
        panel = of["panel"]
        for point in of["points"]:
            settings = facts.system("gerai-gerai").settings()
            named = [name for name, own in settings.items() if own == {panel.key: point["x"]}] or ["base"]
            values = facts.values("gerai-gerai", panel.metric, panel.k, named[0])
            runs = [value for seed, value in values.items() if seed < 1_000_000]
            assert point["y"] == pytest.approx(np.mean(runs))
            assert (point["low"], point["high"]) == (min(runs), max(runs))


def test_figures_hold_the_other_keys_where_the_paper_does() -> None:
    by_key = {of["figure"].key: of["panels"] for of in reproduction.figures(against("privsr"))}
    (at_one, *_) = by_key["figure5"]
    settings = results("privsr").system("privsr-privsr").settings()
    expected = {own["epsilon"] for own in settings.values() if own.keys() == {"beta", "epsilon"} and own["beta"] == 1}
    assert {point["x"] for point in at_one["points"]} == expected
