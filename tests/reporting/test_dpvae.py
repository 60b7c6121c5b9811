"""Reports of DP-VAE: versions beside printed numbers, data and settings, sweeps, what each ε buys, claims, the page."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tasks.papers.dpvae import preparation
from tasks.reporting import page
from tasks.reporting.core import comparison, figures
from tasks.reporting.core.results import Processed, Results
from tasks.reporting.sections import lead, one_run, summary, tables, tradeoff, validation, word_vectors
from tasks.results.claims import Claim
from tasks.stages.report import report_of
from tests.reporting import example_dpvae, example_next, shown
from tests.reporting.example_dpvae import (
    CONSTANT,
    CUTOFFS,
    DPVAE,
    EPSILONS,
    NDCG,
    QUALITY,
    RECALL,
    SEEDS,
    STANDARD,
)

K = 100
DATASETS = ("ml-100k", "ml-20m", "netflix")


@pytest.fixture(scope="module")
def known() -> Results:
    """ML-100K, whose numbers the paper prints."""
    return example_dpvae.results()


@pytest.fixture(scope="module")
def large() -> Results:
    """ML-20M as if it were real."""
    return example_dpvae.results("dpvae-ml-20m", dataset="ml-20m", origin="ml-20m")


@pytest.fixture(scope="module")
def replica() -> Results:
    return example_dpvae.replica()


@pytest.fixture(scope="module")
def page_of_known(known: Results) -> str:
    return shown.page(known, shown.claims(known, K))


@pytest.fixture(scope="module")
def page_of_replica(replica: Results) -> str:
    return shown.page(replica, [])


def mean(results: Results, label: str, setting: str, metric: str, k: int) -> float:
    system = results.find(label)
    assert system is not None
    return float(results.values(system, metric, k, setting).mean())


def test_every_number_printed_of_the_data_stands_once_beside_the_setting_that_answers_to_it(
    known: Results, large: Results
) -> None:
    for results in (known, large):
        printed = results.published.filter(
            (pl.col("paper") == "dpvae")
            & (pl.col("dataset") == results.origin)
            & ~pl.col("artefact").is_in(["table2", "table3"])
        )
        frame = comparison.frame(results).filter(pl.col("published") != "")
        key = ("artefact", "method", "setting", "metric")
        columns = printed.with_columns(pl.col("setting").fill_null(""))
        assert sorted(frame.select(key).iter_rows()) == sorted(columns.select(key).iter_rows())
    (row,) = (
        comparison.frame(known)
        .filter(
            (pl.col("setting") == "prior=user-level")
            & (pl.col("method") == "DP-VAE")
            & (pl.col("metric") == "recall@50")
        )
        .to_dicts()
    )
    assert row["published"] == "0.52"
    assert float(row["ours_mean"]) == pytest.approx(mean(known, "dpvae", CONSTANT, RECALL, 50), abs=1e-6)


def test_a_version_is_what_the_configuration_says_not_what_a_setting_is_called(
    known: Results, replica: Results
) -> None:
    """Without metadata `base` has the standard prior: it answers to NUP, and nothing does to ULP or OV."""
    actual = {
        (entry.table.key, entry.method.printed_as(entry.column)): entry.method.setting
        for entry in comparison.entries(replica)
        if entry.method.version is not None and entry.method.system is not None
    }
    plain, swept = {"dpvae": CONSTANT, "vae": "base"}, ("epsilon_max=0.3", "epsilon_max=1.5")
    assert actual["table5", ("DP-VAE", "data=preprocessed")] == plain["dpvae"]
    assert actual["table5", ("VAE", "data=preprocessed")] == plain["vae"]
    of_table = {
        key: {row: setting for (table, row), setting in actual.items() if table == key}
        for key in ("table6", "table7", "table9", "table10")
    }
    assert of_table["table6"] == {
        ("DP-VAE", "prior=standard"): plain["dpvae"],
        ("VAE", "prior=standard"): plain["vae"],
    }
    assert of_table["table7"] == {("DP-VAE", "clip=constant"): plain["dpvae"], ("DP-VAE", "clip=optimal"): "base"}
    assert of_table["table9"] == {("DP-VAE", "version=plain"): plain["dpvae"]}
    assert of_table["table10"]["DP-VAE", "epsilon_max=1"] == "base"
    assert {of_table["table10"]["DP-VAE", prior] for prior in swept} == set(swept)
    priors = {claim: tested.verdict for claim, tested in _tested(replace(replica, synthetic=False)).items()}
    assert priors["User-level priors improve VAE"] == "not run"
    assert priors["Priors and optimal clip together (OV) improve plain DP-VAE (NV)"] == "not run"
    assert priors["The optimal clipping bound improves DP-VAE"] == "supported"
    vae = known.find("vae")
    assert vae is not None
    names = ("prior=user", "privacy=none,prior=standard", STANDARD, "prior=other")
    assert [known.find_setting(vae, name) for name in names] == ["base", STANDARD, STANDARD, None]


def _tested(results: Results) -> dict[str, Claim]:
    real = replace(results, processed=Processed("ml-20m", 0, example_dpvae.STEPS))
    return {claim.claim: claim for claim in shown.claims(real, K)}


def test_the_paper_prints_one_number_for_whatever_is_read_as_one_run() -> None:
    """Rows of different tables that answer to the same run of ours agree, on every data set: the mapping is faithful.

    Table 5 has plain DP-VAE, and so have Table 6 without priors, Table 7 with a constant clip and Table 9 as NV.
    """
    for dataset in DATASETS:
        results = example_dpvae.results("dpvae-x", dataset=dataset, origin=dataset)
        runs: dict[tuple[str, str, str, int], list[float]] = {}
        for entry in comparison.entries(results):
            if entry.printed is not None and entry.method.system is not None:
                run = (entry.method.system.label, entry.method.setting, entry.column.metric, entry.column.k)
                runs.setdefault(run, []).append(entry.printed)
        repeated = [values for values in runs.values() if len(values) > 1]
        assert len(repeated) >= 6
        assert all(len(set(values)) == 1 for values in repeated)


def test_popularity_lists_have_a_row_in_every_table(known: Results, large: Results, replica: Results) -> None:
    for results in (known, large, replica):
        for table, parts in tables.published_tables(results):
            for part in parts:
                assert {"popularity", "dp-popularity"} <= {row.name for row in part.rows}, table.key
    (everyone,) = [parts[0] for table, parts in tables.published_tables(known) if table.key == "table8"]
    assert len([row for row in everyone.rows if not row.kind]) == len(QUALITY)


def test_original_data_are_not_run_where_no_suite_has_them(known: Results, large: Results, page_of_known: str) -> None:
    actual = {table.key: parts for table, parts in tables.published_tables(large)}
    cells = {row.name: row.cells[0] for row in actual["table5"][0].rows}
    assert (cells["KNN, original data"].text, cells["KNN, original data"].lines) == ("not run", ("paper 0.210",))
    assert "difference" in cells["KNN, pre-processed"].lines[-1]
    (not_run,) = [claim for claim in shown.claims(large, K) if claim.artefact == "table5"]
    assert not_run.verdict == "not run"
    here = {table.key: parts for table, parts in tables.published_tables(known)}
    assert here["table5"] == []
    assert "Not for these data" in page_of_known


def test_what_was_run_on_other_data_stands_beside_nothing_but_its_own_table(large: Results, replica: Results) -> None:
    """Ranking on other data is no better or worse: such systems are in Table 5 and, with their data named, in lists."""
    for suite in (large, replica):
        results = example_dpvae.with_original(suite)
        original = {"knn-original", "svd-original"}
        assert {system.label for system in results.elsewhere} == original
        tables_ = {
            table.key: {row.name for part in parts for row in part.rows}
            for table, parts in tables.published_tables(results)
        }
        named = (
            {"KNN, original data", "SVD, original data"}
            if suite is large
            else {f"{x}, original data" for x in original}
        )
        assert named <= tables_.pop("table5")
        assert not any("original" in name for names in tables_.values() for name in names)
        before = [row.name for row in tables.headline(replace(suite, systems=results.compared), K).rows]
        assert [row.name for row in tables.headline(results, K).rows] == [
            *before,
            *(f"{name}, on {results.dataset}-original" for name in sorted(original)),
        ]
        alone = replace(results, systems=results.compared)
        assert lead.lead(results, K) == lead.lead(alone, K)
        assert summary.standing(results, K) == summary.standing(alone, K)
        assert summary.budgets(results) == summary.budgets(alone)
        assert [figures.tradeoff(results, K), tradeoff.chart(results, K)] == [
            figures.tradeoff(alone, K),
            tradeoff.chart(alone, K),
        ]
        assert validation.chart(results) == validation.chart(alone)
        assert (
            report_of(results.paper).charts(results, K)["figure3"] == report_of(alone.paper).charts(alone, K)["figure3"]
        )
        assert results.find("svd") is None  # the one on other data does not stand in for it
    (cell,) = [
        row.cells[0]
        for table, parts in tables.published_tables(example_dpvae.with_original(large))
        if table.key == "table5"
        for row in parts[0].rows
        if row.name == "KNN, original data"
    ]
    assert cell.lines[0] == "paper 0.210"
    (claim,) = [claim for claim in shown.claims(example_dpvae.with_original(large), K) if claim.artefact == "table5"]
    assert claim.verdict == "contradicted"  # as made up: original data rank better


def test_statistics_stand_before_and_after_beside_the_printed_ones(large: Results) -> None:
    counts = (
        {"step": "published", "users": 5, "items": 9, "interactions": 100},
        {"step": "sampled", "users": 5, "items": 8, "interactions": 30},
        {"step": "most recent 1772 of each user", "users": 4, "items": 8, "interactions": 24},
    )
    table = preparation.statistics(replace(large, processed=Processed("netflix", 0, counts)))
    cells = {row.name: [cell.text for cell in row.cells] for row in table.rows}
    assert cells["Users"] == ["5", "311,266", "−311,261", "4", "279,128", "−279,124"]
    assert cells["Sparsity (%)"] == ["25.00", "98.71", "−73.71", "25.00", "98.58", "−73.58"]
    assert table.caption.startswith("Table 2")


def test_the_printed_numbers_of_parameters_are_those_of_the_network() -> None:
    printed = example_dpvae.results().published.filter(
        (pl.col("paper") == "dpvae") & (pl.col("metric") == "parameters")
    )
    counts = dict(printed.select("dataset", "value").iter_rows())
    sizes = {"ml-100k": (1682, 80, 20), "ml-20m": (26744, 100, 30), "netflix": (17770, 100, 50)}
    assert {name: preparation.n_parameters(*size) for name, size in sizes.items()} == counts


def test_settings_stand_beside_the_printed_ones(known: Results, replica: Results) -> None:
    table = preparation.settings(known)
    assert table is not None
    cells = {row.name: [cell.text for cell in row.cells] for row in table.rows}
    assert cells["Number of parameters"] == ["275,802", "275,802", "0", "not told", "not told"]
    assert cells["Batch size, users"] == ["10", "10", "0", "not told", "40"]
    alone = preparation.settings(replica)
    assert alone is not None
    assert [heading.text for heading in alone.headings] == ["", "dpvae", "dpvae-rigorous", "dpvae-compact"]


def test_every_system_is_drawn_against_its_budget(known: Results) -> None:
    (panel,) = tradeoff.chart(known, K).panels
    names = ["dpvae, claimed", "dpvae-rigorous", "dpvae-compact", "dpals", "dp-popularity"]
    assert [series.name for series in panel.series] == names
    values = sorted((*EPSILONS, 1.0))
    for series in panel.series:
        assert [point.x for point in series.points] == values
        assert all(point.y_interval is not None for point in series.points)
    at_one = panel.series[0].points[values.index(1.0)]
    assert at_one.y == pytest.approx(mean(known, "dpvae", "base", NDCG, K))
    assert at_one.text.endswith("ε = 1, accounted: ∞")
    assert panel.series[3].points[-1].text.endswith("ε = 8, accounted: 8, δ = 1e-05")
    assert {level.name: level.y for level in panel.levels} == {
        f"level of {name}": pytest.approx(mean(known, name, "base", NDCG, K)) for name in ("popularity", "vae")
    }
    table = tradeoff.table(known, K)
    assert table is not None
    assert table.rows[0].name == "dpvae, claimed ε"
    assert table.rows[0].cells[0].lines == ("accounted: ∞",)
    assert figures.sweeps(known, K).panels == []  # they are in this figure


def test_nothing_is_drawn_against_epsilon_elsewhere(real: Results) -> None:
    assert tradeoff.table(example_next.results(), 20) is None
    assert not tradeoff.chart(example_next.results(), 20).panels
    assert tradeoff.table(real, 10) is None


def test_figure_3_has_every_system_at_every_length(known: Results) -> None:
    ndcg, recall = report_of(known.paper).charts(known, K)["figure3"].panels
    for panel in (ndcg, recall):
        assert {series.name for series in panel.series} == set(QUALITY)
        assert [point.x for point in panel.series[0].points] == list(CUTOFFS)
    assert recall.series[0].points[0].y == pytest.approx(mean(known, "popularity", "base", RECALL, 5))


def test_charts_show_versions_and_printed_numbers_side_by_side(known: Results, replica: Results) -> None:
    drawn = report_of(known.paper).charts(known, K)
    assert set(drawn) == {"table6", "table7", "table8", "table9", "table10", "table11", "figure3"}
    priors = drawn["table6"].panels[0]
    assert [series.name for series in priors.series] == ["NUP", "NUP, paper", "ULP", "ULP, paper"]
    assert [point.y for point in priors.series[3].points] == [0.42, 0.44]
    assert [series.name for series in drawn["table8"].panels[0].series] == ["ours", "paper"]
    ours, theirs = drawn["table10"].panels[0].series
    assert [point.x for point in ours.points] == [0.3, 0.5, 1, 1.5]
    assert [point.y for point in theirs.points] == [0.28, 0.38, 0.41, 0.42]
    apart = report_of(replica.paper).charts(replica, K)
    assert not any(line.name.endswith("paper") for chart in apart.values() for line in chart.legend)


def test_claims_follow_the_numbers(known: Results) -> None:
    actual = {claim.claim: claim for claim in shown.claims(known, K)}
    verdicts = {claim: actual.verdict for claim, actual in actual.items()}
    assert verdicts["User-level priors improve DP-VAE"] == "supported"
    assert verdicts["DP-VAE ranks above KNN"] == "contradicted"  # as made up
    assert verdicts["DP-VAE ranks better with a larger ε_max"] == "supported"
    (clip,) = [verdict for claim, verdict in verdicts.items() if "(DP-O) MF ranks above MF" in claim]
    assert clip == "supported"
    assert [claim for claim, verdict in verdicts.items() if verdict == "not run"] == [
        "The constructed data sets improve every method significantly"
    ]
    tables_ = {f"table{number}" for number in (2, 5, 6, 7, 8, 9, 10, 11)}
    assert {actual.artefact for actual in actual.values()} == {*tables_, "figure3"}


def test_claims_of_ml_100k_are_not_tested_elsewhere(known: Results, large: Results, replica: Results) -> None:
    there = {claim.claim: claim for claim in shown.claims(large, K)}
    assert not any(claim.artefact == "table10" for claim in there.values())
    assert len(there) < len(shown.claims(known, K))
    assert shown.claims(replica, K) == []
    unprinted = shown.claims(replace(large, processed=replace(large.processed, dataset="ml-1m")), K)
    assert {claim.claim for claim in unprinted} == there.keys()


def test_the_papers_own_numbers_support_what_it_says_of_ml_100k(known: Results) -> None:
    """The readings of the claims are faithful: what is printed as equal alone is undecided."""
    rng = np.random.default_rng(5)
    rows = {
        (entry.method.system.experiment, entry.method.setting, entry.column.metric, entry.column.k): entry.printed
        for entry in comparison.entries(known)
        if entry.printed is not None and entry.method.system is not None
    }
    frame = pl.DataFrame(
        [(*key, seed, value + 1e-6 * rng.normal()) for key, value in rows.items() for seed in SEEDS],
        schema=["experiment", "setting", "metric", "k", "seed", "value"],
        orient="row",
    )
    actual = shown.claims(replace(known, metrics=frame), K)
    verdicts = {
        actual.claim: actual.verdict for actual in actual if actual.artefact not in ("figure3", "table5", "table9")
    }
    undecided = {claim for claim, verdict in verdicts.items() if verdict == "not decided"}
    assert undecided == {"User-level priors improve VAE"}  # Recall@50 is 0.60 with and without
    assert set(verdicts.values()) == {"supported", "not decided"}
    assert len(verdicts) == 20


@pytest.fixture(scope="module")
def bare_page(known: Results) -> str:
    """Without an audit by one run, and without embedded texts."""
    return shown.page(replace(known, one_run=(), words=()), [])


def test_an_audit_by_one_run_stands_beside_its_claim_and_control(
    known: Results, page_of_known: str, bare_page: str
) -> None:
    table = one_run.table(known)
    assert table is not None
    rows = {row.name: row.cells for row in table.rows}
    seen = "what every step releases"
    assert [cell.text for cell in rows["dpvae"]] == [seen, "1", "∞", "2.50", "4.10", "3.90", "–"]
    assert rows["dpvae-rigorous"][3].lines[-1] == "above accounted"
    assert rows["dpvae-rigorous, epsilon_max=8.0"][3].lines == ("95 % confidence",)
    assert rows["dpvae-rigorous, epsilon_max=8.0"][1].text == "8"
    assert 'id="one-run"' in page_of_known
    assert 'id="one-run"' not in bare_page


def test_embeddings_name_their_source_and_what_has_a_stand_in(known: Results, replica: Results, bare_page: str) -> None:
    (sentence,) = word_vectors.sentences(known)
    assert "made-up.zip (400,000 words), reduced to 20 numbers per word, which keep 51 % of their variance" in sentence
    assert sentence.endswith("1 word not in it.")
    table = word_vectors.table(known)
    assert table is not None
    assert [cell.text for cell in table.rows[1].cells] == ["1", "20 of 943", ""]
    (sentence,) = word_vectors.sentences(replica)
    assert "no GloVe, but hashed vectors" in sentence
    assert 'id="embeddings"' not in bare_page


def test_the_page_is_whole_and_its_links_lead_somewhere(
    known: Results, large: Results, replica: Results, page_of_known: str, page_of_replica: str
) -> None:
    assert shown.claims(replica, K) == []
    for text in (page_of_known, shown.page(large, shown.claims(large, K)), page_of_replica):
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
        assert "<healthcare>" not in text
        assert {"tradeoff", "accounting", "table2", "table3", "table6", "figure3", "embeddings"} <= set(ids)
    assert shown.page(replica, []) == page_of_replica
    assert page.headline_cutoff(known) == DPVAE.headline_k


def test_nothing_printed_stands_beside_generated_data(replica: Results, page_of_replica: str) -> None:
    assert set(comparison.frame(replica)["published"]) == {""}
    assert "SYNTHETIC" in page_of_replica
    assert not re.search(r"paper 0\.|>paper<", page_of_replica)
