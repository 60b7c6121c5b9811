"""The first screen: what is refuted, which systems have a guarantee, and how much was reproduced."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.evaluation.gains import Gain
from tasks.reporting import cards, page
from tasks.reporting.core import figures, findings, headline, ledger
from tasks.reporting.core.chart import ALARM, Panel
from tasks.reporting.core.findings import refutations
from tasks.reporting.core.layout import Table
from tasks.reporting.core.results import Results
from tasks.reporting.sections import details, tables, tradeoff
from tasks.reporting.sections.verdicts import Line, verdicts
from tests.reporting import committed, shown

K = 10


def refuted(results: Results, proved: float, **changes: Any) -> Results:
    """Results in which an audit proves more of noisy popularity than it claims."""
    (record,) = [audit for audit in results.audit if "counts" in audit["mechanism"]]
    more = record | {"audited_epsilon": proved, "verdict": "refuted"} | changes
    return replace(results, audit=(*(audit for audit in results.audit if audit is not record), more))


def test_the_claim_that_is_furthest_exceeded_leads(real: Results) -> None:
    assert refutations(real) == []
    assert ", made-up). No audit refutes a claim" in verdicts(real, [], K)[0].text
    broken = refuted(real, 3.0)
    unnamed = broken.audit[0] | {"mechanism": "a mechanism of nobody", "epsilon_claimed": 2.0, "audited_epsilon": 9.0,
                                 "verdict": "refuted"}  # fmt: skip
    first, second = refutations(replace(broken, audit=(*broken.audit, unnamed)))
    assert (first.label, first.experiments, first.proved) == ("“a mechanism of nobody”", (), 9.0)
    assert (second.label, second.experiments, second.claimed) == ("dp-popularity", ("gerai-dp-popularity",), 1.0)
    line = verdicts(broken, [], K)[0]
    assert line.alarm
    assert line.topic == "Another system's claim refuted"
    assert line.text.startswith("gerai claims ε = 20 for one user's features replaced made-up (accounted ")
    assert line.text.endswith(
        " 1 of 3 audits refutes a claim; furthest, dp-popularity claims ε = 1, but ε ≥ 3 is proved."
    )


def test_refuted_systems_are_red_and_those_without_a_finite_guarantee_stand_at_infinity(real: Results) -> None:
    (panel,) = figures.frontier(refuted(real, 3.0), K).panels
    by_name = {series.name: series for series in panel.series}
    assert by_name["dp-popularity ✗"].colour == ALARM
    assert by_name["dp-popularity ✗"].points[0].x == 1.0
    assert "3 is proved" in by_name["dp-popularity ✗"].points[0].text
    assert by_name["bpr"].points[0].x == math.inf
    assert not any(series.alarm for series in figures.frontier(real, K).panels[0].series)


def test_every_comparison_has_its_row_and_every_printed_number_its_mark(real: Results, demo: Results) -> None:
    forest = figures.comparisons(real, K)
    assert [panel.title for panel in forest.panels] == ["minus popularity", "minus dp-popularity"]
    for panel in forest.panels:
        assert {row.name for row in panel.rows} == {system.label for system in real.compared if not system.is_yardstick}
        means = [row.mean for row in panel.rows]
        assert means == sorted(means, reverse=True)
    numbers = headline.reproduction_counts(real)
    drawn = figures.agreement(real)
    assert sum(len(series.points) for panel in drawn.panels for series in panel.series) == numbers["run"] > 100
    assert drawn.finding == f"{numbers['within_10_percent']} of {numbers['run']} numbers within 10 %"
    assert figures.agreement(demo).panels == []


def test_synthetic_data_reproduce_nothing(real: Results, demo: Results) -> None:
    topics = [line.topic for line in verdicts(real, shown.claims(real, K), K)]
    assert topics == ["Privacy", "Utility", "Attacks", "Reproduction"]
    assert "Reproduction" not in [line.topic for line in verdicts(demo, [], K)]


@pytest.mark.parametrize("name", ["real", "demo", "every"])
def test_verdicts_are_few_short_and_lead_to_their_evidence(name: str, request: pytest.FixtureRequest) -> None:
    results: Results = request.getfixturevalue(name)
    lines = verdicts(results, shown.claims(results, K), K)
    assert 3 <= len(lines) <= 5
    assert all(len(sentence.split()) <= 30 for line in lines for sentence in line.text.split(". "))


def utility(results: Results) -> Line:
    (line,) = [line for line in verdicts(results, [], K) if line.topic == "Utility"]
    return line


def test_undecided_is_not_worse_and_only_what_is_decided_alarms(real: Results) -> None:
    below = utility(replace(real, systems=tuple(system for system in real.systems if system.label != "gerai-nf")))
    assert "1 private system against dp-popularity, a noisy list of best-sellers: 1 worse (gerai)." in below.text
    assert below.alarm
    single = utility(replace(real, metrics=real.metrics.filter(pl.col("seed") == 0)))
    assert ": 2 undecided" in single.text
    assert not single.alarm


@pytest.mark.parametrize("suite", ["dpvae-ml-20m-twin", "dpcrosue-ione"])
def test_suites_with_little_to_say_have_three_verdicts(suite: str) -> None:
    results, _, claims = committed.read(suite)
    lines = verdicts(results, claims, page.headline_cutoff(results))
    assert 3 <= len(lines) <= 5
    assert [line.topic for line in lines].count("Guarantee") == 1


@pytest.mark.parametrize(
    ("suite", "begin"),
    [
        ("dpcrosue", "Private vectors tell friendships on Foursquare: best AUC 0."),
        ("dpcrosue-ione", "Without any known anchor no way matches more accounts of one person than chance"),
    ],
)
def test_attacks_on_vectors_are_told_of_private_systems_first_and_beside_chance(suite: str, begin: str) -> None:
    results, _, claims = committed.read(suite)
    lines = verdicts(results, claims, page.headline_cutoff(results))
    assert [line.text for line in lines if line.text.startswith(begin)]
    assert not any(" 0 times as many" in line.text for line in lines)


def test_systems_without_a_claim_are_compared_by_utility(real: Results) -> None:
    plain = replace(real, systems=tuple(of for of in real.systems if not findings.claims_privacy(of)))
    best = r"\S+ has the best NDCG@10 \(full ranking\) of \d+ systems: 0\.\d{3}\."
    assert re.fullmatch(best, utility(plain).text)


def test_many_attacks_alarm_by_chance_no_more_often_than_one() -> None:
    """1,000 suites of 60 attacks that gain nothing: at most 2.5 % alarm, and 4 standard errors (false alarm 3e-5).

    Counting those whose own interval lies above zero alarms in nearly all of them at least once.
    """
    gains = np.random.default_rng(3).normal(size=(1_000, 60))
    half = 1.959963984540054
    alarms = [findings.any_beats([Gain(value, value - half, value + half) for value in suite]) for suite in gains]
    assert np.mean(alarms) <= 0.025 + 4 * math.sqrt(0.025 * 0.975 / 1_000)
    assert np.mean((gains > half).any(axis=1)) > 0.5
    assert findings.any_beats([Gain(0.1, 0.07, 0.13), *[Gain(0.0, -0.01, 0.01)] * 59])
    assert not findings.any_beats([])


def test_what_is_reconstructed_at_other_settings_alone_is_named() -> None:
    results, _, claims = committed.read("privsr-yelp-hin")
    (line,) = [line for line in verdicts(results, claims, 0) if line.topic == "Attacks"]
    assert "(dpmf and privsr). At other settings, too: rigorous at ε = 8" in line.text
    assert line.alarm
    (line,) = [line for line in verdicts(*committed.read("privsr")[::2], 0) if line.topic == "Attacks"]
    assert line.text.endswith("At other settings, too: rigorous at 5 settings and rigorous-local at ε = 8.")


def test_a_table_of_which_no_number_is_near_is_named_and_a_finite_budget_has_its_unit() -> None:
    results, _, claims = committed.read("gerai")
    said = {line.topic: line.text for line in verdicts(results, claims, K)}
    assert "published numbers within 10 % (none of 96 in Table 3); " in said["Reproduction"]
    assert said["Utility"].endswith("(dpmf-rigorous), for one interaction, given the configuration.")
    assert "attribute attacks (blurm, by up to 0.21); chance alone gives" in said["Attacks"]
    results, _, claims = committed.read("dpvae-ml-latest-small")
    said = {line.topic: line.text for line in verdicts(results, claims, 100)}
    assert ", for a user, δ up to 0.001, given the configuration and the epoch." in said["Utility"]


def test_a_claim_that_is_refuted_at_other_settings_only_is_said_with_them_and_marks_no_point() -> None:
    results, _, claims = committed.read("privsr")
    line = verdicts(results, claims, 0)[0]
    assert line.topic == "Privacy claim refuted"
    assert " (accounted ∞; proved ≥ 4.65, refuted). " in line.text
    assert line.text.endswith("privsr claims ε = 0.1, but ε ≥ 4.89 is proved (at β = 1 and ε = 0.1).")
    embedded, _, _ = committed.read("dpcrosue")
    assert any(of.experiments == ("dpcrosue-dp-rgcn",) for of in refutations(embedded))
    (panel,) = headline.frontier(embedded, 0).panels
    assert isinstance(panel, Panel)
    assert [series.name for series in panel.series if series.alarm] == ["dp-rgcn-released ✗"]


@pytest.mark.parametrize("suite", ["dipsgnn", "dpcrosue", "privsr", "gerai"])
def test_every_red_point_of_the_first_figure_has_a_claim_that_is_refuted_there(suite: str) -> None:
    results, _, _ = committed.read(suite)
    (panel,) = headline.frontier(results, page.headline_cutoff(results)).panels
    assert isinstance(panel, Panel)
    red = {series.name.removesuffix(" ✗") for series in panel.series if series.alarm}
    assert red
    for system in results.compared:
        audits = [line.audit for line in ledger.lines_at(results, system) if line.audit is not None]
        assert (system.label in red) == any(audit["verdict"] == headline.REFUTED for audit in audits)


def test_a_system_without_an_entry_in_the_ledger_is_not_drawn_as_one_without_a_bound() -> None:
    results, _, _ = committed.read("dpcrosue")
    drawn = headline.frontier(results, 0)
    assert drawn.caption.endswith(" Not in the ledger, so not here: random.")
    (panel,) = drawn.panels
    assert isinstance(panel, Panel)
    assert "random" not in [series.name for series in panel.series]


def test_budgets_towards_different_observers_are_told_apart() -> None:
    results, _, _ = committed.read("privsr")
    said = "rigorous was run at this ε; accounted for all that can be seen: 1.099 to 170.6;"
    assert said in tradeoff.chart(results, 0).caption
    (row,) = [row for row in cards.summary_rows(results, 0) if row.name == "rigorous"]
    _, claimed, accounted, _, proved, _ = row.cells
    assert (claimed.lines, proved.lines) == (("1, δ = 1e-06",), ("1, δ = 1e-06: ≥ 0.201, inconclusive",))
    assert (accounted.text, accounted.lines) == (
        "12.48",
        ("towards a recommender who sees each submission", "given the configuration and the epoch"),
    )


def test_each_claim_has_what_is_proved_of_it() -> None:
    results, _, _ = committed.read("dpcrosue")
    proved = {row.name: (row.cells[1].lines, row.cells[4].lines) for row in cards.summary_rows(results, 0)}
    assert proved["dp-rgcn"] == (
        ("10", "5"),
        ("10: ≥ 7.05, inconclusive", "5: ≥ 4.78, inconclusive"),
    )


@pytest.mark.parametrize(
    ("suite", "topic", "said"),
    [
        (
            "dipsgnn",
            "Privacy claim refuted",
            "And ε = 20 for a user's features (accounted 20; proved ≥ 8.39, inconcl",
        ),
        ("demo", "Another system's claim refuted", "gerai claims ε = 20 for a user's features (accounted ∞; proved ≥"),
        (
            "dpvae-netflix-twin",
            "Another system's claim refuted",
            "dpvae claims ε = 1 for a user (accounted ∞; not audit",
        ),
    ],
)
def test_each_claim_of_the_papers_own_method_has_what_is_accounted_and_shown(suite: str, topic: str, said: str) -> None:
    """On replicas, too; a finite line is not passed over because all together is not finite."""
    results, _, claims = committed.read(suite)
    line = verdicts(results, claims, page.headline_cutoff(results))[0]
    assert (line.topic, said in line.text) == (topic, True)
    assert all(len(sentence.split()) <= 30 for sentence in line.text.split(". "))


def test_refuted_claims_and_audited_systems_are_named_in_their_tables() -> None:
    results, _, _ = committed.read("dpcrosue")
    rows = {row.name: row.cells for row in tables.headline(results, 0).rows}
    proved = {name: [line for cell in cells for line in cell.lines if "≥" in line] for name, cells in rows.items()}
    assert [name for name, lines in proved.items() if any(line.endswith(", refuted") for line in lines)] == [
        "dp-rgcn-released"
    ]
    audited = details.audit_table(results)
    assert audited is not None
    of = [line for row in audited.rows for line in row.cells[0].lines if line.startswith("of ")]
    assert len(of) == sum(bool(record["covers"]) for record in results.audit) > 0
    assert any("dp-rgcn-released" in line for line in of)


def test_the_papers_own_method_is_named_where_utility_is_judged() -> None:
    results, _, claims = committed.read("dpvae")
    text = next(line.text for line in verdicts(results, claims, 100) if line.topic == "Utility")
    assert "5 better and 1 worse (dpvae). " in text


@pytest.mark.parametrize(("suite", "said"), [("dpcrosue", True), ("dipsgnn", True), ("gerai", False)])
def test_systems_with_the_noise_of_released_code_are_said_not_to_be_counted(suite: str, said: bool) -> None:
    results, _, claims = committed.read(suite)
    lines = verdicts(results, claims, page.headline_cutoff(results))
    (counted,) = [line.text for line in lines if re.search(r"\d private systems?", line.text)]
    assert ("private systems besides released code" in counted) == said


def test_several_systems_claim_and_one_claims() -> None:
    results, _, claims = committed.read("dipsgnn-yelp-twin")
    assert "furthest, dipsgnn and priv-u claim ε = 5, but" in verdicts(results, claims, 20)[0].text


def test_lines_of_a_card_that_say_the_same_are_one() -> None:
    results, _, _ = committed.read("dpvae")
    (dpvae,) = [system for system in results.systems if system.label == "dpvae"]
    (table,) = [block for block in cards.card(results, dpvae, K) if isinstance(block, Table)]
    assert len(table.rows) == len({repr(row) for row in table.rows}) < len(ledger.lines_at(results, dpvae))


def test_ratios_of_a_claim_are_those_of_the_table() -> None:
    _, _, claims = committed.read("dpcrosue")
    (claim,) = [claim for claim in claims if "TMR: " in claim.evidence]
    ours = pl.read_csv(committed.ROOT / "data/results/dpcrosue/comparison.csv", infer_schema=False)
    ratios = ours.filter(pl.col("metric") == "tmr", pl.col("dataset") == "foursquare")
    for name in ("friendship", "posts", "attribute"):
        of = ratios.filter(pl.col("method") == name)
        assert {f"{float(value):.3f}" for value in of["ours_mean"]} <= set(
            re.findall(rf"{name} (\d\.\d+)", claim.evidence)
        )
