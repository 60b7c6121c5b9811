"""Reports of PrivSR: errors where less is better, means, folds, attacks, iterations, figures, claims, the page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from markupsafe import escape

from tasks.config.params import load
from tasks.evaluation.statistics import paired_tests
from tasks.models.social.privsr import PrivSRConfig
from tasks.reporting import page
from tasks.reporting.core import claims, comparison, figures, findings, sweeps
from tasks.reporting.core.results import Results, System
from tasks.reporting.sections import (
    accounting,
    data_statistics,
    lead,
    means,
    reconstruction,
    tables,
    tradeoff,
    validation,
)
from tasks.results.claims import Measure, Order, Side
from tasks.stages.report import report_of
from tests.reporting import example_dpvae, example_privsr, shown
from tests.reporting.example_privsr import (
    EPOCHS,
    ERROR,
    PER_EPOCH,
    PRIVSR,
    SENSITIVE_BUDGETS,
    SHARE,
    SHARES,
    TOTALS,
    VALUES,
)


@pytest.fixture(scope="module")
def known() -> Results:
    """Ciao, whose statistics the paper prints."""
    return example_privsr.results()


@pytest.fixture(scope="module")
def random() -> Results:
    """Epinions, whose trust relations are those of other users."""
    return example_privsr.results("privsr-epinions", origin="epinions")


@pytest.fixture(scope="module")
def replica() -> Results:
    return example_privsr.replica()


def system(results: Results, label: str) -> System:
    system_ = results.find(label)
    assert system_ is not None
    return system_


def with_error(results: Results, label: str, level: float, deviation: float = 0.001) -> Results:
    """The same results, but for one system's MAE at setting `base`."""
    mine = (
        (pl.col("experiment") == system(results, label).experiment)
        & (pl.col("setting") == "base")
        & (pl.col("metric") == "mae")
    )
    value = pl.when(mine).then(level + deviation * (pl.col("seed") - 2)).otherwise(pl.col("value"))
    return replace(results, metrics=results.metrics.with_columns(value=value))


def test_less_error_is_better(known: Results) -> None:
    differences = {
        (difference.system.label, difference.other): difference
        for difference in findings.yardstick_differences(known, "mae", 0, lower=True)
    }
    assert differences["privsr", "bias"].worse
    assert differences["privsr", "bias"].mean == pytest.approx(ERROR["privsr"] - ERROR["bias"], abs=0.002)
    assert differences["privsr", "global-mean"].better
    assert {name for _, name in differences} == {"global-mean", "user-mean", "item-mean", "bias", "dp-bias"}
    assert not any(difference.better and difference.mean > 0 for difference in differences.values())


def test_the_lead_says_that_the_method_loses_to_means(known: Results) -> None:
    text = lead.lead(known, 0)
    assert "5 folds each" in text
    assert "privsr loses to user-mean, item-mean and bias." in text
    assert "the best, bias, has MAE 0.735" in text
    assert " 0.756 and protects nobody. Protected systems minus that: from +" in text
    budget = "(accounted ε 0.1 for one rating changed)"
    assert f"Beside dp-bias, noisy means of users and items {budget}, predicting worse: dpmf, privsr" in text
    better = with_error(known, "privsr", 0.70)
    assert "privsr loses" not in lead.lead(better, 0)
    assert "better: privsr" in lead.lead(better, 0)


def test_a_table_of_means_marks_who_loses(known: Results, real: Results) -> None:
    table = means.table(known, 0)
    assert table is not None
    cells = {row.name: dict(zip((h.text for h in table.headings[1:]), row.cells, strict=True)) for row in table.rows}
    assert cells["privsr"]["bias"].kind == "number found"
    assert cells["privsr"]["bias"].lines[-1] == "worse"
    assert cells["privsr"]["global-mean"].lines[-1] == "better"
    assert "bias" not in cells
    assert means.table(real, 10) is None
    assert means.lead(real, 10) == ""


def test_differences_over_folds_have_the_interval_of_the_corrected_test(known: Results) -> None:
    left, right = known.paired_values(system(known, "privsr"), "mae", 0, system(known, "mf"), "mae", 0)
    got = findings.interval(known, left - right)
    wanted = paired_tests({"": (left, right)}, overlap=0.25)[""]
    assert (got.mean, got.low, got.high) == pytest.approx((wanted.difference, wanted.low, wanted.high))
    plain = paired_tests({"": (left, right)})[""]
    assert got.high - got.low == pytest.approx(1.5 * (plain.high - plain.low))  # (1/5 + 1/4) / (1/5) = 1.5²


def test_folds_that_overlap_decide_less_than_seeds(known: Results) -> None:
    """The same numbers: significant as seeds, not as folds."""
    gap = with_error(with_error(known, "mf", 0.76, 0.0), "soreg", 0.7588, 0.001)
    spec = Order("figure3", "Made up", ((Side("SoReg"), Side("MF")),), (Measure("MAE", "mae", better="lower"),))
    (claim,) = claims.evaluate(gap, [spec])
    assert claim.verdict == "not decided"
    assert "d = 0.8" in claim.evidence
    tight = with_error(with_error(known, "mf", 0.76, 0.0), "soreg", 0.7575, 0.001)
    p = {overlap: paired_tests({"": _sides(tight)}, overlap=overlap)[""].p_holm for overlap in (None, 0.25)}
    assert p[None] < 0.05 / 2 < p[0.25] < 0.05  # both directions are tested: twice the p-value
    assert claims.evaluate(tight, [spec])[0].verdict == "not decided"


def _sides(results: Results) -> tuple[np.ndarray, np.ndarray]:
    mf, soreg = (results.values(system(results, name), "mae", 0) for name in ("mf", "soreg"))
    return mf, soreg


def test_the_table_of_all_systems_has_communication(known: Results) -> None:
    table = tables.headline(known, 0)
    headings = [heading.text for heading in table.headings]
    assert headings[1] == "MAE"
    rows = {row.name: dict(zip(headings[1:], row.cells, strict=True)) for row in table.rows}
    assert rows["privsr"]["messages"].text == "400,000"
    assert rows["privsr"]["bytes"].text == "12,000,000"
    assert rows["privsr"]["iterations"].text == "10"
    assert rows["bias"]["messages"].text == "–"
    assert sum(n for _, n in table.groups) == len(headings) - 1


def test_settings_are_found_by_what_they_vary_not_by_their_name(known: Results) -> None:
    privsr, mf = system(known, "privsr"), system(known, "mf")
    at = sweeps.settings_along(known, privsr, SHARE, {"epsilon": 0.05})
    assert list(at) == list(SHARES)
    assert at[0.1] == "epsilon=0.05"  # x as at setting base
    assert at[0.3] == "epsilon=0.05,sensitive_share=0.3"
    assert sweeps.settings_along(known, privsr, SHARE)[0.1] == "base"
    assert sweeps.settings_along(known, mf, SHARE, {"epsilon": 0.05})[0.2] == "sensitive_share=0.2"  # it has no ε
    assert sweeps.settings_along(known, privsr, "epsilon", {"beta": 1.0}) == {
        x: f"beta=1.0,epsilon={x}" for x in VALUES
    }
    assert sweeps.find_setting(known, privsr, {SHARE: 0.3, "epsilon": 0.05}) == "epsilon=0.05,sensitive_share=0.3"
    assert sweeps.find_setting(known, privsr, {SHARE: 0.1, "epsilon": 0.1}) == "base"
    assert sweeps.find_setting(known, mf, {"epsilon": 0.1, SHARE: 0.5}) == "sensitive_share=0.5"
    assert sweeps.find_setting(known, privsr, {"epsilon": 7.0}) is None


def test_settings_of_one_key_are_found_as_before() -> None:
    results = example_dpvae.results()
    for name, key in example_dpvae.SWEPT.items():
        first = system(results, name)
        assert sweeps.settings_along(results, first, key) == sweeps.swept(results, first)[key]


def test_attackers_stand_beside_their_controls(known: Results) -> None:
    table = reconstruction.table(known)
    assert table is not None
    names = [heading.text for heading in table.headings[1:]]
    assert names == ["control", "published", "tuned", "averaged", "weighted", "first", "replayed", "friend"]
    rows = {row.name: dict(zip(names, row.cells, strict=True)) for row in table.rows}
    assert table.rows[0].name == "nonoise (positive control)"
    assert rows["privsr"]["weighted"].kind == "number found"  # below the control
    assert rows["privsr"]["published"].kind == "number"  # above it
    assert rows["mf"]["friend"].text == "–"
    values = known.values(system(known, "privsr"), "reconstruction/weighted/mae", 0)
    assert rows["privsr"]["weighted"].text == f"{values.mean():.3f}"


def test_attackers_that_do_not_beat_the_control_are_named(known: Results, real: Results) -> None:
    sentences = {sentence.split(" ")[0]: sentence for sentence in reconstruction.sentences(known)}
    assert "does not beat it against dpmf, privsr, rigorous and rigorous-local" in sentences["Published"]
    assert "beats the control against no system; fails without noise, too" in sentences["Friend"]
    assert "messages add to what tuned knows against nonoise" in sentences["Averaged"]
    assert "messages" not in sentences["Tuned"]
    text = reconstruction.lead(known)
    assert "better than published ratings alone allow: dpmf, privsr" in text
    assert "Without noise these attackers do so: published" in text
    assert reconstruction.table(real) is None
    assert reconstruction.lead(real) == ""


def test_attacks_are_listed_whole(known: Results) -> None:
    frame = reconstruction.frame(known)
    rows = frame.filter((pl.col("experiment") == "privsr-privsr") & (pl.col("setting") == "base"))
    assert rows["attacker"].to_list() == ["averaged", "first", "friend", "published", "replayed", "tuned", "weighted"]
    assert (frame["difference"] - (frame["mae"] - frame["control"])).abs().max() < 1e-12
    assert ((frame["low"] <= frame["difference"]) & (frame["difference"] <= frame["high"])).all()
    assert frame.filter(pl.col("setting") == "sensitive_share=0.0").is_empty()  # nothing is sensitive there


def test_iterations_that_a_total_can_afford(known: Results) -> None:
    chart = accounting.iterations_chart(known, 0)
    published, rigorous, local = chart.panels
    assert published.title == "as published"
    assert [series.name for series in rigorous.series] == [f"ε = {total:g}" for total in TOTALS]
    assert [series.name for series in local.series] == [series.name for series in rigorous.series]
    xs = [PER_EPOCH * epochs for epochs in EPOCHS]
    for line in rigorous.series:
        assert [point.x for point in line.points] == pytest.approx(xs)
    tight = rigorous.series[0].points[-1]
    values = known.values(system(known, "rigorous"), "mae", 0, "epochs=50,epsilon=0.1")
    assert tight.y == pytest.approx(values.mean())
    assert [level.name for level in rigorous.levels] == ["level of bias", "level of mf", "level of nonoise"]
    assert {series.style for panel in chart.panels for series in panel.series if series.name == "ε = 0.1"} == {0}
    assert not accounting.iterations_chart(example_dpvae.results(), 100).panels


def test_published_and_rigorous_noise_stand_side_by_side(known: Results) -> None:
    table = accounting.table(known, 0)
    assert table is not None
    accounted = {row.name: row.cells[3].lines for row in table.rows}
    assert accounted["as published"] == ("interaction: ∞",)
    assert accounted["rigorous"] == accounted["rigorous, towards the recommender"] == ("interaction: 1",)
    (panel,) = tradeoff.chart(known, 0).panels
    lines = {series.name: series for series in panel.series}
    assert set(lines) == {"privsr, claimed", "dpmf, claimed", "rigorous", "rigorous-local", "dp-bias"}
    assert [point.x for point in lines["rigorous"].points] == list(TOTALS)


def test_figures_3_and_4_have_every_line_and_the_control(known: Results) -> None:
    drawn = report_of(known.paper).charts(known, 0)
    assert set(drawn) == {"figure3", "figure4", "figure5"}
    (error,), (attack,) = drawn["figure3"].panels, drawn["figure4"].panels
    names = ["PrivSR, ε = 0.1", "PrivSR, ε = 0.05", "DPMF, ε = 0.1", "DPMF, ε = 0.05", "MF", "SoReg"]
    assert [series.name for series in error.series] == names
    assert [point.x for point in error.series[1].points] == list(SHARES)
    wanted = known.values(system(known, "privsr"), "mae", 0, "epsilon=0.05,sensitive_share=0.4").mean()
    assert error.series[1].points[4].y == pytest.approx(wanted)
    assert [series.name for series in attack.series] == [*names, "published ratings alone (control)"]
    assert [point.x for point in attack.series[0].points] == list(SHARES[1:])
    assert "K =" not in error.series[0].points[0].text
    assert figures.sweeps(known, 0).panels == []  # all sweeps are in figures


def test_figure_5_holds_one_budget_fixed(known: Results) -> None:
    by_epsilon, attacked, by_beta, attacked_by_beta = report_of(known.paper).charts(known, 0)["figure5"].panels
    for panel in (by_epsilon, attacked, by_beta, attacked_by_beta):
        (line,) = panel.series
        assert [point.x for point in line.points] == list(VALUES)
    assert by_epsilon.series[0].points[0].y == by_beta.series[0].points[-1].y  # ε = 0.01, β = 1
    assert [level.name for level in attacked.levels] == ["published ratings alone (control)"]


def test_validation_is_an_error_again(known: Results) -> None:
    (panel,) = validation.chart(replace(known, validation="minus the MAE")).panels
    assert "minus" not in f"{panel.title} {panel.y_label}"
    assert all(point.y > 0 for line in panel.series for point in line.points)
    assert panel.y_label == "MAE"


def test_claims_are_tested_on_data_of_which_nothing_is_printed_but_on_no_replica(
    known: Results, replica: Results
) -> None:
    elsewhere = replace(known, processed=replace(known.processed, dataset="yelp-hin"))
    assert not comparison.is_printed(elsewhere, PRIVSR)
    assert {claim.artefact for claim in shown.claims(elsewhere, 0)} == {"figure3", "figure4", "figure5"}
    assert shown.claims(replica, 0) == []


def test_printed_statistics_stand_beside_ours(known: Results, replica: Results) -> None:
    table = data_statistics.network(known)
    cells = {row.name: [cell.text for cell in row.cells] for row in table.rows}
    assert cells["Relationships"] == ["111,527", "28,513", "+83,014"]
    assert cells["Items"] == ["21,880", "21,889", "−9"]
    assert len(comparison.frame(known)) == 0  # no figure of the paper has numbers
    steps = data_statistics.steps(known)
    assert steps is not None
    assert [row.cells[-1].text for row in steps.rows] == ["–", "–", "111,527"]
    alone = data_statistics.network(replica)
    assert [heading.text for heading in alone.headings] == ["count", "ours"]


def test_claims_follow_the_numbers(known: Results, random: Results, replica: Results) -> None:
    actual = {claim.claim: claim for claim in shown.claims(known, 0)}
    verdicts = {claim.partition(" (read as")[0]: actual.verdict for claim, actual in actual.items()}
    assert (
        verdicts["In general PrivSR (ε = 0.1) outperforms MF, whatever share of ratings is sensitive"] == "contradicted"
    )
    assert (
        verdicts["In general PrivSR (ε = 0.1) outperforms DPMF, whatever share of ratings is sensitive"] == "supported"
    )
    assert verdicts["PrivSR with ε = 0.05 is better than DPMF with ε = 0.1 in most cases"] == "supported"
    assert verdicts["A larger ε gives better recommendation (β = 1)"] == "supported"
    assert verdicts["At fixed ε recommendation stays the same whatever β"] == "supported"
    assert verdicts["At fixed ε protection of sensitive ratings falls with β"] == "not decided"
    assert "not run" not in verdicts.values()
    assert {actual.artefact for actual in actual.values()} == {"figure3", "figure4", "figure5"}
    assert all("as claimed by" in actual.evidence for actual in actual.values())
    assert len(shown.claims(random, 0)) == len(actual)
    assert shown.claims(replica, 0) == []


def test_good_effectiveness_is_read_beside_a_constant_too(known: Results) -> None:
    """Whatever is within 5 % of itself may be worse than the mean of all ratings: that depends on the reading."""
    effective = "It retains a good effectiveness"
    means = known.metrics.filter(pl.col("experiment") == "privsr-mf", pl.col("metric") == "mae")
    means = means.with_columns(experiment=pl.lit("privsr-global-mean"), value=0.85 + 0.0 * pl.col("value"))
    others = known.metrics.filter(pl.col("experiment") != "privsr-global-mean")
    mine = (pl.col("experiment") == "privsr-privsr") & (pl.col("metric") == "mae")
    for level, verdict, said in (
        (0.90, "depends on the reading", "5 of 5; furthest, MAE"),
        (0.70, "supported", "0 of 5."),
    ):
        value = pl.when(mine).then(level + 0.001 * pl.col("seed")).otherwise(pl.col("value"))
        changed = replace(known, metrics=pl.concat([others.with_columns(value=value), means]))
        actual = {claim.claim: claim for claim in shown.claims(changed, 0)}
        assert actual[effective].verdict == verdict
        assert "Its MAE is at most 5 % above that of ε = 0.1: supported." in actual[effective].evidence
        (flat,) = [claim for text, claim in actual.items() if "recommendation stays the same whatever β" in text]
        assert flat.verdict == "supported"
        for claim in (actual[effective], flat, actual["A larger ε gives better recommendation (β = 1)"]):
            assert f"Means over all runs worse than that of global-mean: {said}" in claim.evidence


def test_what_holds_in_most_cases_counts_each_share(known: Results) -> None:
    """Two of six shares the other way leave it supported, three contradict it."""
    for flipped, verdict in ((2, "supported"), (3, "contradicted")):
        names = ["epsilon=0.05,sensitive_share=0.0", "epsilon=0.05", "epsilon=0.05,sensitive_share=0.2"][:flipped]
        mine = (pl.col("experiment") == "privsr-privsr") & pl.col("setting").is_in(names) & (pl.col("metric") == "mae")
        worse = known.metrics.with_columns(value=pl.col("value") + pl.when(mine).then(0.1).otherwise(0.0))
        actual = shown.claims(replace(known, metrics=worse), 0)
        (claim,) = [actual for actual in actual if "in most cases" in actual.claim]
        assert claim.verdict == verdict


def test_who_is_better_at_the_same_budget_is_asked_at_that_of_sensitive_ratings(known: Results) -> None:
    """DPMF as good as PrivSR at ε = 0.11 or 0.055 contradicts it, and at 0.1 or 0.05 it says nothing of it."""
    for budgets, verdict in ((("0.11", "0.055"), "contradicted"), (("base", "0.05"), "supported")):
        at = [f"epsilon={budget}".replace("epsilon=base", "base") for budget in budgets]
        at += [f"{setting},{SHARE}={share}" for setting in at for share in SHARES]
        at += [f"{SHARE}={share}" for share in SHARES if "base" in budgets]
        mine = (pl.col("experiment") == "privsr-dpmf") & pl.col("setting").is_in(at) & (pl.col("metric") == "mae")
        better = known.metrics.with_columns(value=pl.col("value") - pl.when(mine).then(0.2).otherwise(0.0))
        actual = shown.claims(replace(known, metrics=better), 0)
        (claim,) = [claim for claim in actual if claim.claim.startswith("At the same budget for sensitive ratings")]
        assert claim.verdict == verdict


def test_dpmf_runs_where_privsr_does_at_its_budgets_for_sensitive_ratings() -> None:
    """In all three suites, whatever shares they have; the numbers are those of the model."""
    experiments = load(Path(__file__).resolve().parents[2] / "params.yaml").experiments
    for suite in ("privsr", "privsr-epinions", "privsr-yelp-hin"):
        dpmf = {(of["epsilon"], of[SHARE]) for of in experiments[f"{suite}-dpmf"].settings().values()}
        for config in experiments[f"{suite}-privsr"].settings().values():
            if config["beta"] == 0.1 and config["epsilon"] in SENSITIVE_BUDGETS and config[SHARE]:
                model = PrivSRConfig.model_validate({key: value for key, value in config.items() if key != SHARE})
                same = SENSITIVE_BUDGETS[config["epsilon"]]
                assert model.sensitive_epsilon == pytest.approx(same)
                assert (same, config[SHARE]) in dpmf, suite


def test_without_sweeps_claims_are_not_run(known: Results) -> None:
    base = replace(known, metrics=known.metrics.filter(pl.col("setting") == "base"))
    actual = {claim.claim: claim.verdict for claim in shown.claims(base, 0)}
    assert actual["PrivSR with ε = 0.05 is better than DPMF with ε = 0.1 in most cases"] == "not run"
    assert actual["A larger ε gives better recommendation (β = 1)"] == "not run"
    assert not report_of(base.paper).charts(base, 0)
    shown.page(base, [])


def test_the_page_is_whole_and_says_what_it_cannot_show(known: Results, random: Results, replica: Results) -> None:
    for results in (known, random, replica):
        text = shown.page(results, shown.claims(results, 0))
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
        assert {"reconstruction", "tradeoff", "accounting", "chart-iterations", "figure3", "figure5"} <= set(ids)
        assert str(escape(PRIVSR.caveats[""][0])) in text
        assert not re.search(r"MAE@|best-sellers|popularity|over seeds|rank(s|ing)? (better|worse)", text)
        assert (str(escape(PRIVSR.caveats["epinions"][0])) in text) == (results is random)
    assert page.headline_cutoff(known) == PRIVSR.headline_k == 0
    assert "No result can be compared" in shown.page(known, [])
    assert "No result can be compared" not in text  # of the replica
