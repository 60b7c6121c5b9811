"""Reports of DP-CroSUE: two networks, what needs no embedding, attacks, alignment, and what data cannot give."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tasks.evaluation.statistics import paired_tests
from tasks.reporting.core import comparison, ledger, sweeps
from tasks.reporting.core.layout import Row, Table
from tasks.reporting.core.results import Aligned, Results, System
from tasks.reporting.sections import alignment, controls, details, leaks, links, networks, summary, tables
from tasks.reporting.sections.alignment import Way
from tasks.stages.report import report_of
from tests.reporting import example_dpcrosue, example_privsr, shown
from tests.reporting.example_dpcrosue import INTERESTS, WAYS

VALUES = {
    "features_epsilon": [1.0, 5.0, 10.0, 15.0],
    "edges_epsilon": [1.0, 5.0, 10.0, 15.0],
    "text_epsilon": [0.1, 2.5, 5.0, 7.5],
}
"""Budgets that the paper's Figure 3 varies."""


@pytest.fixture(scope="module")
def full() -> Results:
    """Everything that the paper had, as if it were true."""
    return example_dpcrosue.full()


@pytest.fixture(scope="module")
def replica() -> Results:
    return example_dpcrosue.replica()


@pytest.fixture(scope="module")
def published() -> Results:
    return example_dpcrosue.real()


@pytest.fixture(scope="module")
def bare() -> Results:
    return example_dpcrosue.ione()


def system(results: Results, label: str) -> System:
    named = results.find(label)
    assert named is not None
    return named


def values(results: Results, label: str, metric: str, setting: str = "base") -> np.ndarray:
    return results.values(system(results, label), metric, 0, setting)


def rows(table: Table | None) -> dict[str, Row]:
    assert table is not None
    return {row.name: row for row in table.rows}


def test_each_network_stands_beside_its_own_printed_numbers(full: Results) -> None:
    frame = comparison.frame(full)
    assert set(frame["dataset"]) == {"foursquare", "twitter"}
    mine = frame.filter(
        (pl.col("artefact") == "table3") & (pl.col("method") == "R-GCN") & (pl.col("metric") == "interest_precision")
    )
    actual = {(row["dataset"], row["protocol"]): row for row in mine.iter_rows(named=True)}
    swapped = "precision, guess and truth exchanged"
    assert {key: row["published"] for key, row in actual.items()} == {
        ("foursquare", "precision"): "0.53",
        ("foursquare", swapped): "0.53",
        ("twitter", "precision"): "0.546",
        ("twitter", swapped): "0.546",
    }
    ours = values(full, "rgcn", "twitter/interests/precision-swapped").mean()
    assert float(actual["twitter", swapped]["ours_mean"]) == pytest.approx(ours, abs=1e-6)


def test_generated_networks_are_never_compared(replica: Results) -> None:
    assert set(comparison.frame(replica)["published"]) == {""}
    assert shown.claims(replica, 0) == []
    assert networks.missing_artefacts(replica) == {}


def test_tmr_is_interests_over_the_sum_of_the_attacks(full: Results) -> None:
    (entry,) = [
        entry
        for entry in comparison.entries(full)
        if (entry.table.key, entry.method.name, entry.column.data) == ("table2", "friendship", "twitter")
        and entry.column.metric.endswith("/precision")
    ]
    interests, gender, occupation = (
        values(full, "deepwalk", f"twitter/{what}")
        for what in ("interests/precision", "gender/precision", "occupation/precision-weighted")
    )
    assert entry.ours == pytest.approx(interests / (gender + occupation))
    assert entry.printed == 0.665
    without = full.metrics.filter(~pl.col("metric").str.contains("occupation"))
    cut = [entry for entry in comparison.entries(replace(full, metrics=without)) if entry.table.key == "table2"]
    assert all(not len(entry.ours) for entry in cut)


def test_what_needs_no_method_stands_above_the_methods(full: Results) -> None:
    shown = {table.key: parts for table, parts in tables.published_tables(full)}
    interests = rows(shown["table3"][0])
    assert list(interests)[:3] == ["majority", "everything", "Word2Vec"]
    assert [cell.text for cell in interests["everything"].cells] == ["0.390", "1.000", "0.560"]
    assert list(rows(shown["table4"][0]))[:2] == ["majority", "Word2Vec"]
    assert "random" in rows(shown["table4"][0])
    assert set(rows(shown["table5"][0])) == {
        "majority", "everything", "CroGCN-NH", "CroGCN-NA", "CroGCN", "ordering agreement"
    }  # fmt: skip


def test_table_1_stands_beside_the_paper_where_the_data_are_its_own(published: Results, bare: Results) -> None:
    actual = rows(networks.statistics(published))
    assert [cell.text for cell in actual["Foursquare: friendships"].cells] == ["76,972", "76,972", "+0"]
    assert [cell.text for cell in actual["Twitter: friendships"].cells] == ["–", "164,920", "–"]
    assert [cell.text for cell in actual["Anchors"].cells] == ["3,282", "3,388", "−106"]
    assert all(len(row.cells) == 1 for row in rows(networks.statistics(bare)).values())
    assert networks.statistics(example_privsr.results()) is None


def test_what_data_cannot_give_is_said_with_its_reason(published: Results, bare: Results, full: Results) -> None:
    actual = networks.missing_artefacts(published)
    assert set(actual) == {"table2", "table3", "table4", "table5", "figure3"}
    twitter, cross, words = actual["table3"]
    assert twitter.startswith("Twitter, because the data lack its users' friendships")
    assert cross.startswith("DP-CroSUE and CroSUE, because they embed both networks")
    assert words.startswith("SANTEXT, because the data have of texts one vector for each user")
    assert any(actual.startswith("ε_t, because") for actual in actual["figure3"])
    assert "gender" not in actual["table4"][0]  # Twitter's are known, but nothing is embedded there
    assert [line.split(",")[0] for line in networks.missing_artefacts(bare)["table4"]] == ["Foursquare", "Twitter"]
    assert networks.missing_artefacts(full) == {}


def test_a_table_of_any_name_needs_what_its_description_says(published: Results) -> None:
    table = replace(published.layout.tables[1], key="table6", needs=(), words="", methods=("R-GCN",))
    other = replace(published, layout=replace(published.layout, tables=(table,), figures=()))
    assert [line.split(",")[0] for line in networks.missing_artefacts(other)["table6"]] == [
        "Twitter"
    ]  # has no friendships
    asking = replace(other, layout=replace(other.layout, tables=(replace(table, words="Whatever"),)))
    assert networks.missing_artefacts(asking)["table6"][-1].startswith("Whatever, because the data have of texts")


def test_differences_from_controls_are_paired_by_seed(full: Results) -> None:
    metric = "foursquare/interests/precision"
    own = {"everything": "foursquare/interests/everything/precision"}
    actual = controls.compare_with_controls(full, metric, own=own, systems=("random",))
    rgcn, random = system(full, "rgcn"), system(full, "random")
    first = actual[rgcn.experiment, "random"]
    test = paired_tests({"": (values(full, "rgcn", metric), values(full, "random", metric))})[""]
    assert (first.mean, first.low, first.high) == pytest.approx((test.difference, test.low, test.high))
    assert first.verdict == "better"
    assert actual[random.experiment, "everything"].verdict == "worse"
    assert (random.experiment, "random") not in actual


def test_every_interest_for_everybody_stands_beside_the_best_printed_number(full: Results, replica: Results) -> None:
    foursquare, twitter = controls.sentences(full)[:2]
    assert foursquare.endswith("Its micro-F1 is 0.560, above every method's that the paper prints (at most 0.551).")
    assert twitter.endswith("Its micro-F1 is 0.560, not above every method's that the paper prints (at most 0.569).")
    assert not any("prints" in sentence for sentence in controls.sentences(replica))


def test_one_seed_decides_nothing(full: Results) -> None:
    single = replace(full, metrics=full.metrics.filter(pl.col("seed") == 0))
    actual = controls.compare_with_controls(single, "foursquare/gender/precision", systems=("random",))
    assert actual
    assert {actual.verdict for actual in actual.values()} == {"undecided"}
    assert not any(actual.gains for actual in actual.values())
    shown.page(single, shown.claims(single, 0))


def test_an_attack_is_a_leak_where_it_is_above_random_vectors(full: Results) -> None:
    table = controls.attacks(full)[0]
    cells = {name: row.cells[0] for name, row in rows(table).items()}
    assert cells["udmf"].kind == "number found"
    assert cells["random"].kind == "number"  # above the majority guess, as all are
    assert any("✓" in line for line in cells["random"].lines)
    assert cells["deepwalk"].kind == "number"
    leaking = example_dpcrosue.shifted(full, "deepwalk", "foursquare/gender/precision", 0.1)
    assert rows(controls.attacks(leaking)[0])["deepwalk"].cells[0].kind == "number found"
    text = "Gender on Foursquare is told better than by random vectors by those of {} of 16 systems."
    assert text.format(11) in controls.sentences(full)
    assert text.format(12) in controls.sentences(leaking)


def test_link_stealing_stands_beside_chance_and_controls(full: Results, bare: Results) -> None:
    actual = rows(links.table(full)[0])
    assert list(actual)[:4] == ["chance", "attributes (control)", "degree (control)", "random (control)"]
    assert [cell.text for cell in actual["chance"].cells] == ["0.50"] * 3 + ["0.01"] * 3
    assert actual["deepwalk"].cells[0].kind == "number found"
    assert actual["word2vec"].cells[0].kind == "number"  # above random, below attributes
    assert len(rows(links.table(bare)[1])["deepwalk"].cells[0].lines) == 2  # there are no attributes


def test_seeds_that_fail_are_told_and_every_seed_is_seen(bare: Results) -> None:
    actual = {row.name: row for row in rows(alignment.table(bare)).values()}
    blind = actual["unsupervised: adversarial start"]
    assert blind.cells[0].lines == ("0.000 0.000 0.450 0.000 0.000",)
    assert (blind.cells[2].text, blind.cells[2].lines) == ("4 of 5", ("seed 0, 1, 3 and 4",))
    assert actual["80 % of the anchors known"].cells[2].text == "0 of 5"
    (panel,) = alignment.chart(bare).panels
    assert sum(len(series.points) for series in panel.series) == 2 * 5 * 5  # entries, ways, seeds
    sentences = alignment.sentences(bare)
    assert "is at chance at 4 of 5 seeds" in sentences[0]
    assert "so it fails" not in sentences[0]
    none = bare.metrics.with_columns(
        value=pl.when(pl.col("metric") == "alignment/adversarial/precision").then(0.0).otherwise(pl.col("value"))
    )
    failed = replace(bare, metrics=none)
    assert "so it fails, while these work: 5 % of the anchors known" in alignment.sentences(failed)[0]
    assert "no way matches more accounts of one person than chance, at any seed" in alignment.lead(failed)


@pytest.mark.parametrize(("hits", "fails"), [(0, True), (1, True), (5, False)])
def test_a_seed_is_at_chance_where_its_hits_could_be_luck(hits: int, fails: bool) -> None:
    """Of 500 accounts among 1000, half a hit is expected: one is luck (39 %), five are not (0.2 per mille)."""
    way = Way(Aligned("made-up", "", 500), "adversarial", {1: {0: hits / 500}}, {1: 0.001})
    assert bool(way.failed) == fails


def test_a_name_hash_is_told_by_how_often_it_beats_chance(published: Results) -> None:
    true, noisy = alignment.sentences(published)
    times = WAYS["attributes"][0] * 5223
    assert f"match 62.0 %, {times:,.0f} times as many as by chance" in true
    assert noisy.startswith("foursquare-twitter-noisy (perturbed attributes)")
    assert "62.0 % of the accounts of one person are matched" in alignment.lead(published)


def test_re_identification_says_who_is_named_and_whether_rightly(replica: Results) -> None:
    actual = rows(alignment.risk(replica))
    assert [cell.text for cell in actual["nearest by attributes (ft-twin-rgcn)"].cells] == ["0.620", "0.500", "0.930"]
    assert actual["vectors released by dp-crosue"].cells[2].text == "nobody named"
    assert actual["unsupervised: adversarial start (ft-twin-rgcn)"].cells[2].lines == ("– – 0.930 – –",)
    assert actual["vectors released by crosue"].cells[2].text == "0.920"
    assert "vectors released by rgcn" not in actual


def test_attacks_are_listed_whole_with_their_controls(replica: Results) -> None:
    frame = leaks.frame(replica)
    assert frame.select("experiment", "setting", "attack", "k", "control").is_unique().all()
    known = frame.filter(pl.col("level").is_not_null())
    assert np.allclose(known["difference"], known["value"] - known["level"], rtol=0, atol=1e-12)
    assert (known.filter(pl.col("low").is_not_null())["low"] <= known.filter(pl.col("low").is_not_null())["high"]).all()
    of = {
        row["control"]: row
        for row in frame.filter(
            (pl.col("experiment") == "dpcrosue-foursquare-twitter-twin-rgcn")
            & (pl.col("attack") == "twitter/gender/precision")
        ).iter_rows(named=True)
    }
    assert set(of) == {"majority", "random", "rgcn-attribute-free"}
    assert of["random"]["value"] == pytest.approx(values(replica, "rgcn", "twitter/gender/precision").mean())
    stolen = frame.filter(pl.col("attack") == "twitter/links/dot/auc")
    assert set(stolen.filter(pl.col("control") == "chance")["level"]) == {0.5}
    matched = frame.filter((pl.col("attack") == "alignment/attributes/precision") & (pl.col("k") == 10))
    assert matched["level"].to_list() == pytest.approx([10 / 5223])
    assert set(frame.filter(pl.col("attack") == "anchors/confident/share")["control"]) == {""}
    assert "edges_epsilon=1.0" in set(frame["setting"])


def test_networks_have_budgets_of_their_own(replica: Results) -> None:
    rigorous = system(replica, "dp-rgcn-rigorous")
    lines = [line for line in ledger.lines_at(replica, rigorous) if line.entry.protects != "text"]
    assert [line.protects for line in lines] == [
        "foursquare: edge", "foursquare: feature", "twitter: edge", "twitter: feature"
    ]  # fmt: skip
    bounded = replace(rigorous, spent=tuple(entry for entry in rigorous.spent if entry.entry.protects != "text"))
    assert ledger.total_epsilon(replica, bounded) == pytest.approx(2 * (5 + 11))  # somebody may be in both
    assert ledger.total_epsilon(replica, rigorous) is None  # words have no finite guarantee
    assert rows(summary.budgets(replica))["dp-rgcn"].cells[1].lines == ("foursquare: feature: 5", "twitter: feature: 5")
    frame = ledger.frame(replica)
    assert set(frame["network"]) == {"foursquare", "twitter"}
    mine = frame.filter((pl.col("experiment") == rigorous.experiment) & (pl.col("protects") == "text"))
    assert set(mine["accounted_epsilon"]) == {"∞"}
    assert all(mine["accounted_note"])
    assert "network" not in ledger.frame(example_privsr.results()).columns


def test_the_claimed_relation_is_told_and_the_ledger_has_all(replica: Results) -> None:
    private = system(replica, "dp-rgcn")
    budgets = [budget for budget in ledger.budgets(ledger.lines_at(replica, private)) if budget.what.endswith("text")]
    assert [(budget.what, budget.claimed, budget.accounted) for budget in budgets] == [
        ("foursquare: text", "7.5", "∞"), ("twitter: text", "7.5", "∞")
    ]  # fmt: skip
    listed = [row for row in details.ledger_table(replica).rows if row.name == "dp-rgcn"]
    assert sum(row.cells[0].text == "twitter: text" for row in listed) == 2
    headings = [heading for heading, _ in details.gaps(replica)]
    assert any("on foursquare and twitter: " in heading and "features" in heading for heading in headings)


def test_figure_3_has_each_budget_with_the_one_of_all_other_results(replica: Results, published: Results) -> None:
    charts = report_of(replica.paper).charts(replica, 0)
    assert "table5" not in charts  # nothing draws it
    panels = charts["figure3"].panels
    assert len(panels) == 2 * 3 * 3  # networks, budgets, what is seen
    first = panels[0]
    assert [series.name for series in first.series] == ["dp-crosue", "dp-rgcn"]
    at = [point.x for point in first.series[0].points]
    assert at == VALUES["features_epsilon"]
    assert first.log
    base = values(replica, "dp-crosue", "foursquare/interests/precision").mean()
    assert first.series[0].points[1].y == pytest.approx(base)  # ε_a = 5
    assert [level.name for level in first.levels] == ["level of rgcn", "every interest for everybody"]
    assert [level.name for level in panels[1].levels] == ["level of rgcn", "majority guess"]
    for key, known in VALUES.items():
        assert [*sweeps.swept(replica, system(replica, "dp-crosue"))[key]] == known
    alone = report_of(published.paper).charts(published, 0)["figure3"].panels
    assert {series.name for panel in alone for series in panel.series} == {"dp-rgcn"}
    assert len(alone) == 2 * 3  # no words to replace


def test_claims_follow_the_numbers_of_each_network(full: Results, published: Results, bare: Results) -> None:
    def verdicts(results: Results) -> dict[str, str]:
        return {claim.claim.partition(" (read as")[0]: claim.verdict for claim in shown.claims(results, 0)}

    actual = verdicts(full)
    assert actual["Twitter: DP-CroSUE outperforms every method that sees one network"] == "supported"
    assert actual["Foursquare: DeepWalk has no ability to infer gender"] == "supported"
    assert actual["Foursquare: at every ε_a DP-CroSUE outperforms R-GCN"] == "contradicted"  # at ε_a = 1
    assert actual["Foursquare: at ε_g = 1 its interests are worse than R-GCN's"] == "supported"
    assert "not run" not in actual.values()
    worse = verdicts(example_dpcrosue.shifted(full, "dp-crosue", "twitter/interests/micro-f1", -0.1))
    assert worse["Twitter: DP-CroSUE outperforms every method that sees one network"] == "contradicted"
    assert worse["Foursquare: DP-CroSUE outperforms every method that sees one network"] == "supported"
    shown_verdicts = verdicts(example_dpcrosue.shifted(full, "deepwalk", "foursquare/gender/precision", 0.05))
    assert shown_verdicts["Foursquare: DeepWalk has no ability to infer gender"] == "contradicted"
    assert shown_verdicts["Twitter: DeepWalk has no ability to infer gender"] == "supported"
    small = verdicts(published)
    assert small["Foursquare: DP-R-GCN is less attackable than R-GCN"] == "supported"
    assert small["Foursquare: hierarchical layers help (CroGCN above CroGCN-NH)"] == "not run"
    same = replace(system(published, "rgcn"), name="rgcn-text-free", label="rgcn-text-free")  # as DP-R-GCN reads
    fair = verdicts(replace(published, systems=[*published.systems, same]))
    assert fair["Foursquare: DP-R-GCN is less attackable than R-GCN without texts"] == "supported"
    assert not any(claim.startswith("Twitter") for claim in small)
    assert verdicts(bare) == {}


def test_what_holds_on_most_data_sets_counts_scores_and_networks(full: Results) -> None:
    """Of eight scores of attacks two the other way leave it supported, four contradict it."""
    networks = ("foursquare", "twitter")
    better = [f"{network}/occupation/{score}" for network in networks for score in ("precision-weighted", "micro-f1")]
    for flipped, verdict in ((1, "supported"), (2, "contradicted")):
        worse = [f"{network}/gender/{score}" for network in networks[:flipped] for score in ("precision", "micro-f1")]
        moved = full
        for metric in (*better, *worse):
            moved = example_dpcrosue.shifted(moved, "dp-crosue", metric, 0.1 if metric in worse else -0.02)
        (claim,) = [claim for claim in shown.claims(moved, 0) if "less attackable than DP-R-GCN" in claim.claim]
        assert claim.verdict == verdict


def test_the_table_of_all_systems_has_the_columns_that_were_measured(replica: Results, bare: Results) -> None:
    groups = [name for name, _ in tables.headline(replica, 0).groups]
    assert groups == ["Interests", "Precision of the attack on gender", "Precision of the attack on occupation",
                      "Link stealing, AUC", "Accounts matched", "ε of one run"]  # fmt: skip
    actual = tables.headline(bare, 0)
    assert [name for name, _ in actual.groups] == ["Link stealing, AUC", "ε of one run"]
    assert "K =" not in actual.caption


def test_the_page_is_whole_and_says_what_it_cannot_show(published: Results, bare: Results, replica: Results) -> None:
    every = {"published": published, "bare": bare, "weibo": example_dpcrosue.weibo(), "replica": replica}
    pages = {name: shown.page(results, shown.claims(results, 0)) for name, results in every.items()}
    for results, text in zip(every.values(), pages.values(), strict=True):
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
        assert {"links", "alignment", "risk", "chart-links"} <= set(ids)
        assert ("interests" in ids) == ("inferred" in ids) == (results is not bare)
        assert ("Not reproducible here" in text) == (not results.synthetic)
        assert ("SYNTHETIC" in text) == results.synthetic
        assert not re.search(r"@0\b|best-sellers|popularity|over K\b|rank(s|ing)? (better|worse)", text)
    assert "The paper has no results on these data" in pages["bare"]
    assert "Interests on Weibo2" in pages["weibo"]
    assert "Foursquare" not in pages["weibo"]
    assert pages["replica"] == shown.page(example_dpcrosue.replica(), [])


def test_interests_of_all_systems_are_in_the_example() -> None:
    layout = example_dpcrosue.full().layout
    assert {layout.methods[name] for table in layout.tables for name in table.methods} <= set(INTERESTS)
