"""Reports of a next-item suite: printed percents beside our shares, marks, sweeps, modes of accounting, the page."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tasks.evaluation.run_numbers import APART
from tasks.papers.dipsgnn import authors_code
from tasks.reporting import page, site
from tasks.reporting.core import comparison, figures, headline
from tasks.reporting.core.layout import format_difference
from tasks.reporting.core.results import BASE, Results
from tasks.reporting.sections import accounting, data_statistics, lead, summary, tables
from tasks.stages.report import report_of
from tests.reporting import example_next, shown
from tests.reporting.example_next import QUALITY, SEEDS, STEPS

K = 20


@pytest.fixture(scope="module")
def known() -> Results:
    """ML-1M, of which the paper prints results."""
    return example_next.results()


@pytest.fixture(scope="module")
def other() -> Results:
    """ML-100K, of which it prints none."""
    return example_next.results("dipsgnn", dataset="ml-100k")


def values(results: Results, label: str, metric: str, k: int, setting: str = BASE) -> pl.Series:
    rows = results.metrics.filter(
        (pl.col("experiment") == f"{results.suite}-{label}")
        & (pl.col("setting") == setting)
        & (pl.col("metric") == metric)
        & (pl.col("k") == k)
    )
    return rows["value"]


def test_printed_percents_stand_as_shares_beside_ours(known: Results) -> None:
    frame = comparison.frame(known)
    (row,) = frame.filter(
        (pl.col("method") == "DIPSGNN") & (pl.col("metric") == "mrr@10") & (pl.col("protocol") == "next")
    ).to_dicts()
    assert row["published"] == "0.0563"
    assert float(row["ours_mean"]) == pytest.approx(values(known, "dipsgnn", "next/mrr", 10).mean(), abs=1e-6)
    assert (frame["published"] != "").sum() == 44  # eleven methods, four columns
    assert set(frame.filter(pl.col("protocol") == "next-new")["published"]) == {""}


@pytest.fixture(scope="module")
def pages(known: Results, other: Results) -> list[str]:
    """Of what the paper prints, of other data, and of a part of the systems."""
    every = known, other, example_next.results(full=False)
    return [shown.page(results, shown.claims(results, K)) for results in every]


def test_nothing_printed_stands_beside_other_data(other: Results, pages: list[str]) -> None:
    frame = comparison.frame(other)
    assert set(frame["published"]) == {""}
    assert frame.height == 2 * 4 * len(QUALITY)
    text = pages[1]
    assert "The paper has no results on these data" in text
    assert not re.search(r"paper 0\.|of the whole data set\. ", text)


def test_every_system_has_a_row_in_both_tables(known: Results) -> None:
    for _, (part,) in tables.published_tables(known):
        rows = [row for row in part.rows if not row.kind]
        assert len(rows) == len(QUALITY)
        assert {"popularity", "dp-popularity", "DIPSGNN", "nonp", "dipsgnn-rigorous"} <= {row.name for row in rows}


def test_the_best_of_those_that_claim_privacy_and_of_the_others_are_marked(known: Results) -> None:
    (_, (part,)), _ = tables.published_tables(known)
    marks = {row.name: row.cells[0].lines[-1] for row in part.rows if "found" in row.cells[0].kind}
    assert marks == {"DIPSGNN": "best private", "nonp": "best public"}
    shifted = pl.when(pl.col("model") == "dp-popularity").then(pl.col("value") + 1).otherwise(pl.col("value"))
    better = replace(known, metrics=known.metrics.with_columns(value=shifted))
    (_, (part,)), _ = tables.published_tables(better)
    marks = {row.name: row.cells[0].lines[-1] for row in part.rows if "found" in row.cells[0].kind}
    assert marks == {"dp-popularity": "best private", "nonp": "best public"}


def test_the_code_of_the_authors_stands_beside_the_printed_row_and_says_what_its_noise_is_worth(
    known: Results, other: Results, pages: list[str]
) -> None:
    shown_section = authors_code.section(known, K)
    sentence, table = shown_section.blocks
    chosen = values(known, "dipsgnn-authors-code", "chosen-on-test/next/recall", K).mean()
    assert f"The printed Recall@20 of 0.2113 is reproduced (ours {chosen:.4f}) with noise worth ε = 25.86" in sentence
    assert "for the aggregates by the paper&#39;s own theorem, ∞ for what is released, choosing epochs on the test" in (
        sentence
    )
    paper, *rows = table.rows
    assert [cell.text for cell in paper.cells[-4:]] == ["0.2113", "0.0611", "0.1404", "0.0563"]
    assert [row.name for row in rows] == [f"C = {clip:g}" for clip in (0.2, 0.4, 0.6, 0.8, 1.0)]
    assert [rows[0].cells[place].text for place in (0, 1)] == ["25.86", "∞"]
    held = values(known, "dipsgnn-authors-code", "next/recall", K).mean()
    control = values(known, "dipsgnn-authors-code", "next/recall", K, "accounting=published").mean()
    assert f"the other noise makes {format_difference(held - control, 4)} where validation chooses" in sentence
    assert [rows[0].cells[place].text for place in (2, 3)] == [f"{control:.4f}", f"{held:.4f}"]
    assert {row.cells[2].text for row in rows[1:]} == {"not run"}
    assert rows[0].cells[4].text == f"{chosen:.4f}"
    assert ("noise of the code, chosen on test", 4) in table.groups
    alone, _ = authors_code.section(other, K).blocks
    assert "Recall@20 at C = 0.2 is" in alone
    assert "As the authors&#39; code computes it" in pages[0]
    lower = pl.when(pl.col("metric").str.starts_with("chosen")).then(pl.col("value") * 0.5).otherwise(pl.col("value"))
    sentence, _ = authors_code.section(replace(known, metrics=known.metrics.with_columns(value=lower)), K).blocks
    assert "is not reached" in sentence


def test_a_choice_on_the_test_stands_in_its_own_section_alone(known: Results) -> None:
    """Made so large that its numbers could not be missed: no other table, board, claim of privacy or mark has it."""
    shifted = pl.when(pl.col("metric").str.starts_with("chosen")).then(pl.col("value") + 7).otherwise(pl.col("value"))
    planted = replace(known, metrics=known.metrics.with_columns(value=shifted))
    assert comparison.frame(planted).equals(comparison.frame(known))
    assert headline.standings(planted, K) == headline.standings(known, K)
    report = report_of(planted.paper)
    before, after = (
        page.sections(results, report, shown.claims(results, K), k=K, docs="") for results in (known, planted)
    )
    others = [
        str(section.blocks) for section in before if section.anchor not in ("authors-code", "published", "summary")
    ]
    assert others == [
        str(section.blocks) for section in after if section.anchor not in ("authors-code", "published", "summary")
    ]
    board = site.suite(planted, report, shown.claims(planted, K))
    assert all(system.utility is None or system.utility < 1 for system in board.report.systems)
    (_, (part,)), _ = tables.published_tables(
        replace(planted, metrics=planted.metrics.with_columns(
            value=pl.when(pl.col("model") == "dipsgnn-authors-code").then(9.0).otherwise(pl.col("value"))
        ))
    )  # fmt: skip
    (row,) = [row for row in part.rows if row.name == "dipsgnn-authors-code"]
    assert not any("best" in line for cell in row.cells for line in cell.lines)


def test_what_the_noise_and_the_choice_make_is_told_of_the_same_runs(known: Results) -> None:
    """One C runs on further splits, the others do not: no mean is taken over splits that another one lacks."""
    base = known.metrics.filter(pl.col("setting") == BASE)
    further = base.with_columns(pl.col("seed") + APART, pl.col("value") + 7)
    everywhere = replace(known, metrics=pl.concat([known.metrics, further]))
    assert str(authors_code.section(everywhere, K).blocks) == str(authors_code.section(known, K).blocks)
    before, after = accounting.table(known, K), accounting.table(everywhere, K)
    assert before is not None
    assert after == before  # one mode is a sweep point


def test_a_suite_without_the_authors_code_has_no_section_of_it(known: Results) -> None:
    without = replace(known, systems=tuple(s for s in known.systems if s.label != "dipsgnn-authors-code"))
    assert not authors_code.section(without, K).blocks
    assert not any("authors' code" in claim.evidence for claim in shown.claims(without, K))
    assert any("noise of its authors' code" in claim.evidence for claim in shown.claims(known, K))


def test_statistics_are_counted_where_the_paper_counts_them(known: Results, other: Results) -> None:
    table = data_statistics.table(known)
    assert table is not None
    cells = {row.name: [cell.text for cell in row.cells] for row in table.rows}
    assert cells["Users"] == ["5,949", "5,945", "+4"]
    assert cells["Interactions"] == ["365,535", "365,535", "0"]
    assert cells["Average length"] == ["96.07", "96.07", "0.00"]  # of the 10-core, 571,531 / 5,949
    assert "96.07 is that of the 10-core" in data_statistics.note(known)
    alone = data_statistics.table(other)
    assert alone is not None
    assert [len(row.cells) for row in alone.rows] == [1] * 5
    assert data_statistics.note(other) == ""
    assert data_statistics.table(shown.described(replace(known, paper="gerai"))) is None  # GERAI prints none
    steps = data_statistics.steps(known)
    assert steps is not None
    assert len(steps.rows) == len(STEPS)


def test_sweeps_have_every_value_and_the_printed_point_at_the_default(known: Results, other: Results) -> None:
    drawn = report_of(known.paper).charts(known, K)
    xs = {key: drawn[key].panels[0].x_ticks for key in drawn if "figure" in key}
    assert xs["figure3"] == [3, 4, 5]
    assert xs["figure4"] == [10, 20, 30]
    assert xs["figure5"] == [0, 1, 2, 3, 4, 5]
    assert xs["figure6"] == [0.2, 0.4, 0.6, 0.8, 1]
    assert xs["figure7"] == ["Nonp", "Nonp-U", "Priv", "Priv-U"]
    series = {series.name: series for series in drawn["figure5"].panels[0].series}
    assert list(series) == ["dipsgnn", "DIPSGNN, paper", "edgerand", "EdgeRand, paper"]
    (point,) = series["DIPSGNN, paper"].points
    assert (point.x, point.y) == (1.0, pytest.approx(0.2113))
    assert series["DIPSGNN, paper"].line, "findings are of the ends of lines alone"
    ours = series["dipsgnn"].points[1]
    assert ours.y == pytest.approx(values(known, "dipsgnn", "next/recall", K).mean())
    low, high = ours.y_interval or (0.0, 0.0)
    assert low < ours.y < high
    elsewhere = report_of(other.paper).charts(other, K)["figure5"].panels[0].series
    assert [system.name for system in elsewhere] == ["dipsgnn", "edgerand"]
    (panel,) = figures.sweeps(known, K).panels  # all others belong to a figure of the paper
    assert [curve.name for curve in panel.series] == ["dipsgnn-authors-code"]


def test_modes_stand_side_by_side_with_their_budgets(known: Results, real: Results) -> None:
    table = accounting.table(known, K)
    assert table is not None
    rows = {row.name: row.cells for row in table.rows}
    assert list(rows) == [
        "as published",
        "as released, epoch chosen on validation",
        "rigorous",
        "one release per user, kept",
        "no graph",
    ]
    assert [rows[name][0].text for name in rows] == [
        "dipsgnn",
        "dipsgnn-authors-code",
        "dipsgnn-rigorous",
        "dipsgnn-cached",
        "dipsgnn, steps=0",
    ]
    assert [rows["as published"][place].lines[0] for place in (3, 4)] == ["edge: 5, δ = 1e-06", "edge: ∞"]
    assert rows["rigorous"][4].lines[0] == "edge: 5, δ = 1e-06"
    assert float(rows["rigorous"][1].text) == pytest.approx(QUALITY["dipsgnn-rigorous"], abs=2e-3)
    assert len(accounting.chart(known, K).panels[0].series) == 5
    assert accounting.table(real, 10) is None
    assert not accounting.chart(real, 10).panels


def test_claims_follow_the_numbers(known: Results) -> None:
    actual = {claim.claim: claim for claim in shown.claims(known, K)}
    verdicts = {claim: actual.verdict for claim, actual in actual.items()}
    assert "not run" not in verdicts.values()
    assert verdicts["DIPSGNN ranks better than EdgeRand"] == "supported"
    assert verdicts["EdgeRand falls faster with T than DIPSGNN"] == "supported"
    assert verdicts["The gap between DIPSGNN and EdgeRand grows with ε2"] == "contradicted"  # as made up
    (gain,) = [claim for claim in verdicts if "19.99 %" in claim]
    assert verdicts[gain] == "supported"  # by half of it
    falling = actual["DIPSGNN ranks worse with a larger T"]
    assert "at T = 1," in falling.evidence  # not from our own T = 0
    assert {actual.artefact for actual in actual.values()} == {
        "table2",
        "figure3",
        "figure4",
        "figure5",
        "figure6",
        "figure7",
    }


def test_claims_that_name_ml_1m_are_not_tested_elsewhere(known: Results, other: Results) -> None:
    here, there = ({claim.claim for claim in shown.claims(results, K)} for results in (known, other))
    assert there < here
    assert {re.sub(r"[0-9.]+ %", "", claim).split(" ")[0] for claim in here - there} == {
        "DIPSGNN's",
        "DIPSGNN",
        "C",
        "Recall@20",
    }
    assert len(here - there) == 5
    assert shown.claims(replace(other, synthetic=True), K) == []


def test_the_papers_own_numbers_support_what_it_says_of_table_2(known: Results) -> None:
    """The readings of the claims are faithful."""
    rng = np.random.default_rng(5)
    printed = known.published.filter(
        (pl.col("paper") == "dipsgnn") & (pl.col("dataset") == "ml-1m") & (pl.col("artefact") == "table2")
    )
    methods = known.layout.methods
    rows = [
        (f"{known.suite}-{methods[method]}", "base", seed, f"next/{metric}", int(k), share / 100 + 1e-6 * rng.normal())
        for method, name, share in printed.select("method", "metric", "value").iter_rows()
        for metric, _, k in [name.partition("@")]
        for seed in SEEDS
    ]
    frame = pl.DataFrame(rows, schema=["experiment", "setting", "seed", "metric", "k", "value"], orient="row")
    actual = shown.claims(replace(known, metrics=frame), K)
    verdicts = {actual.claim: actual.verdict for actual in actual if actual.artefact == "table2"}
    assert set(verdicts.values()) == {"supported"}
    assert len(verdicts) == 9


def test_the_first_paragraph_and_the_summary_speak_of_recall(known: Results) -> None:
    text = lead.lead(known, K)
    assert "apgnn has Recall@20 (all items) 0.21" in text
    assert "NDCG" not in text
    assert all("@20 (all items)" in line for line in summary.standing(known, K))
    assert page.headline_cutoff(known) == K


def test_the_page_is_whole_and_its_links_lead_somewhere(pages: list[str]) -> None:
    for text in pages:
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
        assert "<another>" not in text
    results = example_next.results(full=False)
    assert pages[2] == shown.page(results, shown.claims(results, K))


def test_sections_stand_only_where_there_is_something_to_tell(real: Results, pages: list[str]) -> None:
    text, bare = pages[0], shown.page(real, [])
    for name in ("limits", "accounting", "edges"):
        assert f'<section id="{name}">' in text
        assert f'<section id="{name}">' not in bare
    assert "Made up: the first users. The paper&#39;s" in text or "Made up: the first users. The paper's" in text
    assert 'id="table1"' not in bare
