"""Leakage: what is judged of attacks follows from their numbers, and pages show cells of committed tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.pages import page
from tasks.results import leakage, significance
from tests.pages.committed import SUITES, draw, results, table


def evidence_of(suite: str, name: str) -> dict[str, Any]:
    """What a suite has of one kind."""
    return next(of for of in leakage.collect(results(suite)) if of["name"] == name)


def attack(gain: float, low: float | None, **more: Any) -> dict[str, Any]:
    """One attack on one target."""
    about = {"target": "age", "experiment": "a", "attacker": "knn", "control": "ratings", "k": 10}
    return about | {"gain": gain, "low": low, "high": None if low is None else 2 * gain - low} | more


# Judging.


@given(st.floats(-1, 1), st.floats(1e-3, 1), st.one_of(st.none(), st.integers(2, 20)))
def test_a_single_attack_is_significant_exactly_where_its_interval_lies_above_zero(
    gain: float, half: float, runs: int | None
) -> None:
    if abs(gain - half) > 1e-6:
        row = significance.assess(significance.table([attack(gain, gain - half, runs=runs)])).row(0, named=True)
        assert row["significant"] == row["above"] == (gain > half)


@given(st.lists(st.tuples(st.floats(-0.2, 0.4), st.floats(0.01, 0.3)), min_size=1, max_size=12))
def test_p_is_corrected_for_all_attacks_on_the_same_target_alone(attempts: list[tuple[float, float]]) -> None:
    rows = [attack(gain, gain - half, k=number) for number, (gain, half) in enumerate(attempts, 1)]
    alone = significance.assess(significance.table(rows))
    together = significance.assess(significance.table([*rows, attack(0.3, 0.2, target="gender")]))
    np.testing.assert_allclose(alone["p_adjusted"], np.minimum(1, len(rows) * alone["p"].to_numpy()))
    assert together.filter(target="age")["p_adjusted"].to_list() == alone["p_adjusted"].to_list()


def test_an_attack_has_to_beat_every_deciding_control() -> None:
    both = [attack(0.3, 0.2), attack(0.1, -0.1, control="random"), attack(0.0, -0.3, control="majority")]
    (row,) = significance.assess(significance.table(both), ("ratings", "random")).to_dicts()
    assert (row["control"], row["gain"], row["significant"]) == ("random", 0.1, False)


def test_controls_and_sweep_points_are_no_evidence() -> None:
    rows = [attack(0.9, 0.8, is_control=True), attack(0.9, 0.8, setting="epsilon=9")]
    assert significance.assess(significance.table(rows)).is_empty()


def test_without_leakage_one_family_in_twenty_at_most_has_a_finding() -> None:
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(400):
        means = rng.normal(0, 1, 10)
        rows = [attack(mean, mean - 1.959964, k=number) for number, mean in enumerate(means, 1)]
        alarms += significance.findings(significance.assess(significance.table(rows)))[0]["leaking"] != []
    assert alarms <= stats.binom.isf(1e-3, 400, 0.05)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=8))
def test_paired_gains_are_those_of_the_t_test(pairs: list[tuple[float, float]]) -> None:
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    if np.std(left - right) < 1e-6:
        return
    made = significance.paired(dict(enumerate(left)), dict(enumerate(right)))
    test = stats.ttest_rel(left, right)
    interval = test.confidence_interval(0.95)
    assert (made["low"], made["high"]) == (pytest.approx(interval.low), pytest.approx(interval.high))
    p = significance.assess(significance.table([attack(**made)]))["p"][0]
    expected = test.pvalue if made["gain"] > 0 else 1.0
    assert p == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_differences_that_are_equal_in_all_runs_say_nothing_about_chance() -> None:
    same = significance.paired({0: 0.75, 1: 0.75}, {0: 0.5, 1: 0.5})
    assert significance.assess(significance.table([attack(**same)]))["p"][0] == 1.0


@given(st.integers(1, 400), st.data())
def test_people_are_counted_by_the_score_interval(n: int, data: st.DataObject) -> None:
    right = data.draw(st.integers(0, n))
    expected = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert leakage.wilson(right / n, n) == pytest.approx((expected.low, expected.high), abs=1e-6)


# Committed suites.


@pytest.mark.parametrize("suite", ["gerai", "demo"])
def test_gains_of_attribute_inference_are_cells_of_the_committed_table(suite: str) -> None:
    cells = {
        tuple(row[name] for name in ("attribute", "experiment", "setting", "attacker", "k")): row
        for row in results(suite).attacks.filter(control="ratings").iter_rows(named=True)
    }
    judged = evidence_of(suite, "attributes")["judged"]
    assert judged.height == sum(key[2] == "base" for key in cells)
    for row in judged.iter_rows(named=True):
        cell = cells[row["target"], row["experiment"], "base", row["attacker"], row["k"]]
        assert (row["gain"], row["low"], row["high"]) == (cell["gain"], cell["low"], cell["high"])


def test_on_gerai_blurred_profiles_leak_gender_and_no_list_leaks_age_or_occupation() -> None:
    leaks = {finding["target"]: finding["leaking"] for finding in evidence_of("gerai", "attributes")["findings"]}
    assert leaks == {"age": [], "gender": ["gerai-blurm"], "occupation": []}


def test_membership_is_told_from_the_open_systems_and_from_no_system_with_user_level_epsilon() -> None:
    evidence, facts = evidence_of("membership", "membership"), results("membership")
    user = next(finding for finding in evidence["findings"] if finding["target"] == "user")
    bounded = set(facts.attacks.filter(pl.col("target") == "user", pl.col("epsilon").is_not_null())["system"])
    assert set(user["leaking"]) == {"membership-ease", "membership-bpr", "membership-gcn"}
    assert not bounded & set(user["leaking"])


def test_releases_without_noise_and_lists_of_no_system_are_controls() -> None:
    gains = evidence_of("dipsgnn", "interactions")["gains"]
    controls = gains.filter(pl.col("is_control"))
    assert set(leakage.NO_SYSTEM) <= set(controls["experiment"])
    assert controls.filter(~pl.col("experiment").is_in(leakage.NO_SYSTEM))["epsilon"].null_count() == (
        gains["epsilon"].null_count() - controls.filter(pl.col("experiment").is_in(leakage.NO_SYSTEM)).height
    )
    assert gains.filter(~pl.col("is_control"))["epsilon"].null_count() == 0


def test_the_method_without_its_noise_is_the_positive_control_of_reconstruction() -> None:
    assert leakage.unprotected(results("privsr")) == {"privsr-nonoise"}
    gains = evidence_of("privsr", "ratings")["gains"]
    control = gains.filter(pl.col("is_control"), pl.col("setting") == "base")
    assert set(control["experiment"]) == {"privsr-nonoise"}
    assert max(control["gain"]) > max(evidence_of("privsr", "ratings")["judged"]["gain"])


def test_links_have_to_beat_each_control_by_its_best_scorer() -> None:
    facts = results("dpcrosue-ione")
    gains = evidence_of("dpcrosue-ione", "vectors")["gains"].filter(target="twitter/links", control="degree")
    best = max(
        facts.mean("dpcrosue-ione-degree", f"twitter/links/{name}/auc") or 0 for name in ("cosine", "dot", "hadamard")
    )
    for row in gains.iter_rows(named=True):
        assert row["gain"] == pytest.approx(row["value"] - best, abs=1e-3)  # some have fewer seeds


def test_an_alignment_is_at_chance_at_seeds_that_the_binomial_test_does_not_tell_from_it() -> None:
    for row in evidence_of("dpcrosue-ione", "accounts")["shown"]["ways"]:
        for seed, value in row["seeds"].items():
            right = round(value * row["judged"])
            p = stats.binom.sf(right - 1, row["judged"], row["chance"])
            assert (seed in row["failed"]) == (p > leakage.AT_CHANCE)


# Pages.


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_its_evidence_drawn_and_synthetic_data_are_labelled(suite: str) -> None:
    html = draw(suite, "attacks")
    for evidence in leakage.collect(results(suite)):
        assert f'id="{evidence["name"]}"' in html
    assert ("SYNTHETIC DATA" in html) == results(suite).suite.synthetic
    assert "Undefined" not in html


def test_numbers_of_the_page_are_cells_of_the_committed_tables() -> None:
    facts, html = results("gerai"), draw("gerai", "attacks")
    f1 = {f"{value:.3f}" for value in facts.means.filter(pl.col("metric").str.ends_with("/f1"), setting="base")["mean"]}
    for row in table(html, "Strongest attack on each system")[2:]:
        assert set(row[1::2]) <= f1, row
    gains = {page.signed(value) for value in facts.attacks["gain"]}
    for row in table(html, "Strongest attack on each system")[2:]:
        assert set(row[2::2]) <= gains, row


def test_no_table_has_epsilon_of_two_levels() -> None:
    html = draw("membership", "attacks")
    for caption, level, other in (
        ("Membership of a user", "user-level", "interaction-level"),
        ("Membership of an interaction", "interaction-level", "user-level"),
    ):
        head = " ".join(table(html, caption)[0])
        assert level in head
        assert other not in head
