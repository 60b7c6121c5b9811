"""Leakage: what is judged of attacks follows from their numbers, and pages show cells of committed tables."""

from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.pages import page
from tasks.results import leakage, significance
from tests.pages.committed import SUITES, draw, parts, results, table


def evidence_of(suite: str, name: str) -> dict[str, Any]:
    return next(of for of in leakage.collect(results(suite)) if of["name"] == name)


def attack(gain: float, low: float | None, **more: Any) -> dict[str, Any]:
    about = {"target": "age", "experiment": "a", "attacker": "knn", "control": "ratings", "k": 10}
    return about | {"gain": gain, "low": low, "high": None if low is None else 2 * gain - low} | more


# Judging.


@given(st.floats(-1, 1), st.floats(1e-3, 1), st.one_of(st.none(), st.integers(2, 20)))
def test_a_difference_is_decided_by_its_interval_of_99_percent(gain: float, half: float, runs: int | None) -> None:
    at = stats.norm.ppf if runs is None else partial(stats.t.ppf, df=runs - 1)
    wide = half * float(at(0.995) / at(0.975))
    decision = significance.decide(gain, gain - half, gain + half, runs)
    assert (decision.low, decision.high) == (pytest.approx(gain - wide), pytest.approx(gain + wide))
    if abs(abs(gain) - wide) > 1e-6:
        assert decision.side == (gain > wide) - (gain < -wide)
        assert decision.undecided == ("" if decision.side else "zero-inside")


def test_another_system_moves_no_verdict_on_an_attack() -> None:
    rows = [attack(0.3, 0.3 - half, k=number) for number, half in enumerate((0.1, 0.22, 0.24, 0.4), 1)]
    alone = significance.assess(significance.table(rows))
    others = [attack(0.0, -0.1, experiment=f"other-{number}") for number in range(100)]
    together = significance.assess(significance.table([*rows, *others]))
    assert alone["significant"].to_list() == [True, True, False, False]
    assert together.filter(experiment="a").equals(alone)


def test_an_attack_has_to_beat_every_deciding_control() -> None:
    both = [attack(0.3, 0.2), attack(0.1, -0.1, control="random"), attack(0.0, -0.3, control="majority")]
    (row,) = significance.assess(significance.table(both), ("ratings", "random")).to_dicts()
    assert (row["control"], row["gain"], row["significant"]) == ("random", 0.1, False)


def test_controls_and_sweep_points_are_no_evidence() -> None:
    rows = [attack(0.9, 0.8, is_control=True), attack(0.9, 0.8, setting="epsilon=9")]
    assert significance.assess(significance.table(rows)).is_empty()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=8))
def test_paired_gains_are_those_of_the_t_test(pairs: list[tuple[float, float]]) -> None:
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    if np.std(left - right) < 1e-6:
        return
    made = significance.paired(dict(enumerate(left)), dict(enumerate(right)))
    test = stats.ttest_rel(left, right)
    interval = test.confidence_interval(0.95)
    assert (made["low"], made["high"]) == (pytest.approx(interval.low), pytest.approx(interval.high))
    side = significance.decide(made["gain"], made["low"], made["high"], made["runs"]).side
    assert (side != 0) == (test.pvalue < 0.01)


@pytest.mark.parametrize(("runs", "undecided"), [(1, "one-run"), (2, "equal-runs")])
def test_one_run_or_runs_that_are_all_equal_say_nothing_about_chance(runs: int, undecided: str) -> None:
    same = significance.paired(dict.fromkeys(range(runs), 0.75), dict.fromkeys(range(runs), 0.5))
    (row,) = significance.assess(significance.table([attack(**same)])).to_dicts()
    assert (row["significant"], row["undecided"]) == (False, undecided)


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
        assert (row["gain"], row["low"] <= cell["low"], row["high"] >= cell["high"]) == (cell["gain"], True, True)


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
    drawn = leakage.collect(results(suite))
    assert bool(drawn) == ("attacks" in parts(suite))
    html = draw(suite, "attacks") if drawn else ""
    for evidence in drawn:
        assert f'id="{evidence["name"]}"' in html
    assert ("SYNTHETIC DATA" in html) == (results(suite).suite.synthetic and bool(drawn))
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
