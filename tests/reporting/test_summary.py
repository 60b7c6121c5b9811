"""The summary says what the numbers say, and changes when they do."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from tasks.reporting.core import findings
from tasks.reporting.core.layout import format_difference
from tasks.reporting.core.results import Results
from tasks.reporting.sections import attacks, summary
from tasks.reporting.sections.lead import lead
from tests.reporting.committed import ROOT, read

K = 10


def shifted(results: Results, model: str, metric: str, by: float) -> Results:
    """The same results with one metric of one model moved."""
    here = (pl.col("model") == model) & (pl.col("metric") == metric)
    value = pl.when(here).then(pl.col("value") + by).otherwise(pl.col("value"))
    return replace(results, metrics=results.metrics.with_columns(value=value))


def gains(results: Results, gain: float, **where: object) -> Results:
    """The same results with the chosen gains (all without a choice) moved, intervals with them."""
    here = pl.all_horizontal(pl.lit(True), *(pl.col(column) == value for column, value in where.items()))
    columns = [pl.when(here).then(pl.col(name) + gain).otherwise(pl.col(name)) for name in ("gain", "low", "high")]
    return replace(results, gains=results.gains.with_columns(*columns))


def test_a_private_system_below_dp_popularity_is_named(real: Results) -> None:
    text = "Beside dp-popularity, a noisy list of best-sellers (accounted ε 1 for one user added made-up),"
    none = "No finite accounted ε covers all they learn from."
    assert f"{text} ranking better: gerai-nf; ranking worse: gerai. {none}" in lead(real, K)
    assert f"{text} ranking better: gerai and gerai-nf. {none}" in lead(shifted(real, "gerai", "full/ndcg", 0.2), K)
    noise = pl.col("seed").replace_strict({0: 1.0, 1: -1.0, 2: 0.1}, return_dtype=pl.Float64)
    moved = pl.when(pl.col("model") == "gerai").then(pl.col("value") + noise).otherwise(pl.col("value"))
    noisy = replace(real, metrics=real.metrics.with_columns(value=moved))
    assert f"{text} ranking better: gerai-nf; undecided: gerai. {none}" in lead(noisy, K)


def test_what_protection_costs_is_told_beside_the_better_open_system(every: Results) -> None:
    text = lead(every, K)
    assert "ease has NDCG@10 (full ranking) 0.2" in text
    gap = every.values(every.find_compared("rap"), "full/ndcg", K) - every.values(
        every.find_compared("ease"), "full/ndcg", K
    )
    assert f"{format_difference(gap.mean())} (rap)" in text
    assert "bpr has NDCG@10" in lead(shifted(every, "bpr", "full/ndcg", 1.0), K)


def test_the_first_paragraph_is_short(every: Results) -> None:
    for results in (every, gains(every, 0.5)):
        assert len(lead(results, K).split()) <= 165


def test_a_difference_as_large_as_its_noise_is_not_decided(real: Results) -> None:
    # Differences +1, -1, +0.1 over three seeds: no test at 5 % can call that a difference.
    noise = pl.col("seed").replace_strict({0: 1.0, 1: -1.0, 2: 0.1}, return_dtype=pl.Float64)
    moved = pl.when(pl.col("model") == "gcn").then(pl.col("value") + noise).otherwise(pl.col("value"))
    noisy = replace(real, metrics=real.metrics.with_columns(value=moved))
    actual = {
        difference.system.name: difference for difference in findings.yardstick_differences(noisy, "full/ndcg", K)
    }
    assert not actual["gcn"].significant


def test_a_single_seed_decides_nothing(real: Results) -> None:
    single = replace(real, metrics=real.metrics.filter(pl.col("seed") == 0))
    assert not any(difference.significant for difference in findings.yardstick_differences(single, "full/ndcg", K))
    assert "undecided: gerai" in lead(single, K)


@pytest.mark.parametrize("suite", ["membership", "dpvae-netflix-twin"])
def test_a_page_of_one_seed_says_that_it_has_no_intervals_over_seeds(suite: str) -> None:
    section = str(summary.section(read(suite)[0], [], K))
    assert "of one seed. That has no interval and decides nothing" in section
    assert "A single one decides no comparison of rankings." in section
    assert "bootstrap" not in section
    assert "An interval covers no other seed" in section


@pytest.mark.parametrize("control", ["majority", "ratings", "random"])
def test_an_attack_beats_a_control_only_with_its_whole_interval(real: Results, control: str) -> None:
    compare = {
        "majority": findings.above_chance,
        "ratings": findings.above_ratings,
        "random": findings.above_random,
    }[control]
    actual = {comparison.system.name for comparison in compare(real, "gender", "neural", K) if comparison.significant}
    assert actual == {"bpr", "gcn", "gerai", "gerai-nf"}
    touching = gains(real, -0.01, model="gerai", control=control)  # gain 0.02, interval from 0
    assert "gerai" not in {
        comparison.system.name for comparison in compare(touching, "gender", "neural", K) if comparison.significant
    }


def test_the_first_paragraph_tells_ratings_from_recommendations(every: Results) -> None:
    text = lead(every, K)
    assert "On age against 5 of 13 systems, most gcn (+0.080, 0.060 to 0.100)." in text
    assert "none of them gains: blurm, dpae, dpne and dpmf." in text
    text = lead(gains(every, -0.5, control="ratings"), K)
    assert "No attacker is shown to guess age, gender and occupation better" in text
    assert "so no protection can be shown to help" in text


def test_attacks_that_beat_nothing_are_said_so(real: Results) -> None:
    first, *_ = attacks.unbeaten_controls(real, K)
    assert first.startswith("Age: 26 of 30 attacks beat none; against no system at all: decision tree,")
    table = attacks.beaten_controls(real, K)[0]
    cells = {row.name: [cell.text for cell in row.cells] for row in table.rows}
    assert cells["gcn"] == ["majority, ratings, random", *["none"] * 4]
    assert cells["popularity"] == ["none"] * 5
    only = gains(real, -0.5, model="gcn", control="ratings")
    assert attacks.beaten_controls(only, K)[0].rows[3].cells[0].text == "majority, random"


def test_every_gain_is_shown_with_its_interval(real: Results) -> None:
    table = attacks.gains(real, K)[0]
    row = next(row for row in table.rows if row.name == "gcn")
    assert row.cells[0].lines[0] == "majority +0.080 (0.060 to 0.100) ✓"
    assert row.cells[1].lines[0] == "majority −0.050 (−0.070 to −0.030)"


def test_blurred_profiles_are_set_beside_true_ones(every: Results, real: Results) -> None:
    assert attacks.blurring(real, K) is None
    actual = attacks.blurring(every, K)
    assert actual is not None
    text, table = actual
    assert "AUC 0.900 (0.850 to 0.940; guessing has 0.5): the blurring is not hidden" in text
    assert len(table.rows) == 15
    true, blurred, gap = table.rows[0].cells[3:]
    assert float(blurred.text) - float(true.text) == pytest.approx(float(gap.text.replace("−", "-")), abs=2e-3)


def test_budgets_name_what_is_covered_by_a_finite_one(real: Results) -> None:
    table = summary.budgets(real)
    assert table is not None
    cells = {row.name: row.cells for row in table.rows}
    assert cells["dp-popularity"][0].text == "1 for one user added made-up"
    assert cells["gerai"][0].text == "∞"
    assert cells["gerai"][1].lines == ("feature: 20",)
    assert "bpr" not in cells
    assert any(block == table for block in summary.section(real, [], K).blocks)


def test_what_another_processor_moved_is_named_as_the_findings_have_it() -> None:
    for page, moved in (
        *(("gerai", ("0.044", "graph systems")), ("dipsgnn", ("0.025", "replica of Tmall"))),
        ("dpcrosue", ("0.054", "NetMF and UDMF")),
    ):
        findings_ = (ROOT / f"docs/choices-{page}.md").read_text(encoding="utf-8")
        for said in (*moved, "another processor"):
            assert said in findings_
        assert all(said in summary.VARIATION for said in (*moved, f"docs/choices-{page}.md"))
    assert "nothing else" not in summary.VARIATION


def test_synthetic_data_are_called_so_in_the_first_paragraph(demo: Results, real: Results) -> None:
    assert "synthetic data set demo" in lead(demo, K)
    assert "synthetic" not in lead(real, K)
