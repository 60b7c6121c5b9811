"""Known results give known verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tasks.reporting.core import claims
from tasks.reporting.core.results import Results
from tasks.results.claims import Claim, Measure, Order, Readings, Side, Trend
from tasks.stages.papers import describe
from tasks.stages.report import read, report_of
from tests.reporting import shown
from tests.reporting.example import SEEDS

GERAI = describe("gerai")
CUTOFFS = (5, 10, 15, 20, 25, 30)
METRIC = "sampled-100/hit"
HIT = Measure("Hit@5", METRIC, (5,), "higher")


def with_values(results: Results, levels: Mapping[tuple[str, str, int], float], deviation: float = 0.001) -> Results:
    """Results with one metric: (model, setting, k) -> level, which every seed misses by about `spread`."""
    rng = np.random.default_rng(7)
    rows = [
        (system.experiment, model, setting, seed, METRIC, k, level + deviation * rng.normal())
        for (model, setting, k), level in levels.items()
        if (system := results.find_compared(model)) is not None
        for seed in SEEDS
    ]
    columns = ["experiment", "model", "setting", "seed", "metric", "k", "value"]
    return replace(results, metrics=pl.DataFrame(rows, schema=columns, orient="row"))


def claim_of(results: Results, spec: Order | Trend) -> Claim:
    (claim,) = claims.evaluate(results, [spec])
    return claim


def above(*others: str, measure: Measure = HIT, most: bool = False) -> Order:
    return Order("table3", "GERAI is best", tuple((Side("GERAI"), Side(other)) for other in others), (measure,), most)


WORST = "Blurm ranks worst of all methods"


@pytest.mark.parametrize(
    ("gerai", "deviation", "verdict"),
    [
        (0.5, 0.001, "supported"),  # above both
        (0.3, 0.001, "contradicted"),  # above one, significantly below the other
        (0.4, 0.5, "not decided"),  # far less apart than the noise
    ],
)
def test_best_of_a_set_of_methods(every: Results, gerai: float, deviation: float, verdict: str) -> None:
    results = with_values(
        every, {("gerai", "base", 5): gerai, ("bpr", "base", 5): 0.4, ("gcn", "base", 5): 0.2}, deviation
    )
    actual = claim_of(results, above("BPR", "GCN"))
    assert (actual.verdict, actual.artefact) == (verdict, "table3")


def test_lower_is_better_where_the_measure_says_so(every: Results) -> None:
    lower = replace(HIT, better="lower")
    results = with_values(every, {("gerai", "base", 5): 0.2, ("bpr", "base", 5): 0.4})
    assert claim_of(results, above("BPR", measure=lower)).verdict == "supported"
    assert claim_of(results, above("BPR")).verdict == "contradicted"


def test_numbers_stand_in_the_evidence(every: Results) -> None:
    results = with_values(every, {("gerai", "base", 5): 0.2, ("bpr", "base", 5): 0.4}, 1e-5)
    assert claim_of(results, above("BPR")).evidence == (
        f"Hit@5: GERAI 0.200, BPR 0.400; significant the other way. Over {len(SEEDS)} seeds."
    )


def test_cut_offs_are_averaged(every: Results) -> None:
    both = replace(HIT, ks=(5, 10))
    levels = {("gerai", "base", 5): 0.5, ("gerai", "base", 10): 0.2, ("bpr", "base", 5): 0.3, ("bpr", "base", 10): 0.3}
    results = with_values(every, levels)
    assert claim_of(results, above("BPR", measure=both)).verdict == "supported"
    del levels["gerai", "base", 10]
    assert claim_of(with_values(every, levels), above("BPR", measure=both)).verdict == "not run"


def test_a_margin_scales_the_other_side(every: Results) -> None:
    results = with_values(every, {("gerai", "base", 5): 0.38, ("gcn", "base", 5): 0.4})
    for factor, verdict in ((0.9, "supported"), (1.0, "contradicted"), (0.97, "contradicted")):
        assert claim_of(results, above("GCN", measure=replace(HIT, factor=factor))).verdict == verdict


def test_what_was_not_run_is_said_and_leaves_nothing_supported(every: Results) -> None:
    results = with_values(every, {("gerai", "base", 5): 0.5, ("bpr", "base", 5): 0.4})
    actual = claim_of(results, above("BPR", "RAP"))
    assert actual.verdict == "not decided"
    assert actual.evidence.endswith("Not run: RAP.")
    actual = claim_of(results, above("RAP"))
    assert (actual.verdict, actual.evidence) == ("not run", "Not run: RAP.")
    worse = with_values(every, {("gerai", "base", 5): 0.3, ("bpr", "base", 5): 0.4})
    assert claim_of(worse, above("BPR", "RAP")).verdict == "contradicted"


def test_a_single_seed_decides_nothing(every: Results) -> None:
    results = with_values(every, {("gerai", "base", 5): 0.5, ("bpr", "base", 5): 0.4})
    actual = claim_of(replace(results, metrics=results.metrics.filter(pl.col("seed") == 0)), above("BPR"))
    assert actual.verdict == "not decided"
    assert "A single seed decides nothing." in actual.evidence


def test_systems_without_randomness_decide_nothing(every: Results) -> None:
    results = with_values(every, {("gerai", "base", 5): 0.5, ("bpr", "base", 5): 0.4}, deviation=0.0)
    assert claim_of(results, above("BPR")).verdict == "not decided"
    folds = replace(results, layout=replace(results.layout, overlap=0.2))
    evidence = claim_of(folds, above("BPR")).evidence
    assert "(as claimed by +0.100 in every run, which no test decides)" in evidence, "an interval without a width"


@pytest.mark.parametrize(
    ("better", "verdict"), [(3, "supported"), (2, "supported"), (1, "contradicted"), (0, "contradicted")]
)
def test_most_cases_are_more_than_half(every: Results, better: int, verdict: str) -> None:
    cases = tuple(replace(HIT, name=f"at {k}", ks=(k,)) for k in (5, 10, 15))
    levels = {("gerai", "base", k): 0.5 if place < better else 0.3 for place, k in enumerate((5, 10, 15))}
    results = with_values(every, levels | {("bpr", "base", k): 0.4 for k in (5, 10, 15)}, 1e-5)
    spec = Order("table5", "in most cases", ((Side("GERAI"), Side("BPR")),), cases, most=True)
    assert claim_of(results, spec).verdict == verdict
    more = tuple(replace(HIT, name=f"at {k}", ks=(k,)) for k in (20, 25, 30, 35))
    assert claim_of(results, replace(spec, measures=(*cases, *more))).verdict == "not decided"
    if better == 3:  # most of four, whatever the one that was not run says
        assert claim_of(results, replace(spec, measures=(*cases, more[0]))).verdict == "supported"


@pytest.mark.parametrize(
    ("gerai", "rap", "verdict"),
    [(0.45, 0.60, "supported"), (0.35, 0.60, "supported"), (0.60, 0.45, "contradicted")],  # GCN has 0.4
)
def test_closer_is_by_distance_on_either_side(every: Results, gerai: float, rap: float, verdict: str) -> None:
    levels = {("gerai", "base", 5): gerai, ("rap", "base", 5): rap, ("gcn", "base", 5): 0.4}
    results = with_values(every, levels, 1e-5)
    spec = Order("table3", "GERAI is closer to GCN", ((Side("GERAI"), Side("RAP")),), (HIT,), near="GCN")
    assert claim_of(results, spec).verdict == verdict


def test_a_gap_is_a_distance_on_either_side(every: Results) -> None:
    """GERAI is above GCN, and comes closer to it."""
    measure = replace(HIT, ks=(5, 10, 15))
    levels = {("gcn", "base", k): 0.4 for k in measure.ks} | {
        ("gerai", "base", k): level for k, level in zip(measure.ks, (0.5, 0.45, 0.42), strict=True)
    }
    results = with_values(every, levels, 1e-5)
    spec = Trend("table3", "The gap shrinks", "K", ("GERAI",), (measure,), rises=False, near="GCN")
    assert claim_of(results, spec).verdict == "supported"
    assert claim_of(results, replace(spec, near="", below="GCN")).verdict == "contradicted"  # by how much it is below


@pytest.mark.parametrize(("level", "verdict"), [(0.1, "supported"), (0.3, "not decided"), (0.5, "contradicted")])
def test_a_stricter_reading_contradicts_nothing_that_holds_without_it(
    every: Results, level: float, verdict: str
) -> None:
    """Much worse, read as at most half as well: what is worse by less stays undecided."""
    results = with_values(every, {("gerai", "base", 5): 0.4, ("bpr", "base", 5): level}, 1e-5)
    assert claim_of(results, above("BPR", measure=replace(HIT, factor=2.0, against=1.0))).verdict == verdict


def test_evidence_counts_what_is_the_other_way_in_every_run(every: Results) -> None:
    """Where a correction for many leaves nothing significant, that all runs agree is still told."""
    levels = {("gerai", "base", 5): 0.3, ("bpr", "base", 5): 0.4, ("gcn", "base", 5): 0.2}
    sure = claim_of(with_values(every, levels, 1e-5), above("BPR", "GCN"))
    assert "significant the other way in 1." in sure.evidence
    noisy = with_values(every, levels, 0.1)
    gerai, bpr = (noisy.by_seed(noisy.find(name), METRIC, 5, "base") for name in ("gerai", "bpr"))
    assert all(gerai[seed] < bpr[seed] for seed in SEEDS)
    evidence = claim_of(noisy, above("BPR", "GCN")).evidence
    assert "significant the other way in 0, the other way in every run in 1." in evidence


def test_a_sentence_that_can_be_read_in_several_ways_is_one_claim(every: Results) -> None:
    results = with_values(every, {("gerai", "base", 5): 0.3, ("bpr", "base", 5): 0.4, ("gcn", "base", 5): 0.2}, 1e-5)
    better, worse, absent = above("GCN"), above("BPR"), above("RAP")
    for readings, verdict in (
        ({"one": better, "two": worse}, "depends on the reading"),
        ({"one": better, "two": better}, "supported"),
        ({"one": better, "two": better, "three": absent}, "not decided"),
        ({"one": worse, "two": absent}, "not decided"),
        ({"one": absent}, "not run"),
    ):
        (actual,) = claims.evaluate(results, [Readings("table3", "GERAI is best", readings)])
        assert (actual.claim, actual.verdict) == ("GERAI is best", verdict)
    (actual, after) = claims.evaluate(results, [Readings("table3", "both", {"a": better, "b": worse}), better])
    assert actual.evidence.startswith("A: supported. Hit@5: GERAI 0.300, GCN 0.200; significant as claimed.")
    assert after == claim_of(results, better)


def swept(levels: dict[float, float], key: str = "epsilon", base: float = 0.4) -> dict[tuple[str, str, int], float]:
    return {("gerai", "base" if x == base else f"{key}={x:g}", 5): level for x, level in levels.items()}


def test_a_trend_follows_the_swept_key(every: Results) -> None:
    trend = Trend("figure2", "rises", "epsilon", ("GERAI",), (HIT,), rises=True)
    rising = with_values(every, swept({0.1: 0.2, 0.2: 0.25, 0.4: 0.3, 0.8: 0.35}))
    actual = claim_of(rising, trend)
    assert actual.verdict == "supported"
    assert "at ε = 0.1" in actual.evidence
    assert "at 0.8" in actual.evidence
    assert claim_of(rising, replace(trend, rises=False)).verdict == "contradicted"
    flat = with_values(every, swept(dict.fromkeys((0.1, 0.2, 0.4, 0.8), 0.3)), deviation=0.05)
    assert claim_of(flat, trend).verdict == "not decided"
    few = with_values(every, swept({0.1: 0.2, 0.4: 0.3}))
    assert claim_of(few, trend).verdict == "not run"


def test_curves_of_two_methods_are_compared_where_both_were_run(every: Results) -> None:
    """... at three values or more: each may have been run at others, too."""
    trend = Trend("figure2", "", "epsilon", ("GERAI",), (HIT,), rises=False, below="DPMF")
    other = {("dpmf", f"epsilon={x:g}", 5): 0.4 for x in (0.1, 0.2, 0.3, 0.8)}
    results = with_values(every, swept({0.1: 0.2, 0.2: 0.25, 0.4: 0.3, 0.8: 0.35}) | other)
    actual = claim_of(results, trend)
    assert actual.verdict == "supported"
    assert "0.200 at ε = 0.1, 0.050 at 0.8" in actual.evidence
    apart = {("dpmf", f"epsilon={x:g}", 5): 0.4 for x in (0.1, 0.3, 0.5)}
    nothing = claim_of(with_values(every, swept({0.1: 0.2, 0.2: 0.25, 0.4: 0.3}) | apart), trend)
    assert nothing.verdict == "not run"


def test_a_value_that_setting_base_alone_has_was_run(every: Results) -> None:
    at_base, unswept = Side("GERAI", "epsilon", 0.4), {("gerai", "base", 5): 0.5, ("bpr", "base", 5): 0.4}
    claim = Order("figure2", "", ((at_base, Side("BPR")),), (HIT,))
    assert claim_of(with_values(every, unswept), claim).verdict == "supported"
    other = Order("figure2", "", ((replace(at_base, value=0.3), Side("BPR")),), (HIT,))
    assert claim_of(with_values(every, unswept), other).verdict == "not run"


def test_a_trend_over_the_cut_off_and_of_a_gap(every: Results) -> None:
    measure = replace(HIT, ks=(5, 10, 15))
    levels = {("gerai", "base", k): 0.3 + k / 100 for k in measure.ks}
    results = with_values(every, levels | {("gcn", "base", k): 0.6 for k in measure.ks})
    assert claim_of(results, Trend("table2", "", "K", ("GERAI",), (measure,), rises=True)).verdict == "supported"
    gap = Trend("table3", "", "K", ("GERAI",), (measure,), rises=False, below="GCN")
    assert claim_of(results, gap).verdict == "supported"
    assert claim_of(results, replace(gap, rises=True)).verdict == "contradicted"


def test_what_must_all_hold_is_contradicted_after_correction_alone(every: Results) -> None:
    """One trend that alone is significantly the other way is not among forty that are noise."""
    rng = np.random.default_rng(3)
    ks = CUTOFFS
    rows = [
        ("gerai-gerai", "gerai", "base", seed, metric, k, value)
        for place in range(41)
        for metric in (f"m{place}",)
        for seed in SEEDS
        for k in ks
        for value in [(-0.01 * k if place == 0 else 0.0) + 0.03 * rng.normal()]
    ]
    columns = ["experiment", "model", "setting", "seed", "metric", "k", "value"]
    results = replace(every, metrics=pl.DataFrame(rows, schema=columns, orient="row"))
    measures = tuple(Measure("m", f"m{place}", ks, "higher") for place in range(41))
    alone, together = (Trend("figure2", "", "K", ("GERAI",), of, rises=True) for of in (measures[:1], measures))
    assert claim_of(results, alone).verdict == "contradicted"
    assert claim_of(results, together).verdict == "not decided"
    assert [claim.verdict for claim in claims.evaluate(results, [alone, together])] == ["contradicted"] * 2


def test_each_of_many_comparisons_must_hold_and_none_is_corrected_for_the_others(every: Results) -> None:
    """Every one of forty is significant, none of them after Holm's correction."""
    columns = ["experiment", "model", "setting", "seed", "metric", "k", "value"]
    off = np.array([-1.0, 0.0, 1.0]) * 0.2  # of three seeds: t = 8.7, p = 0.0065
    rows = [
        (f"gerai-{model}", model, "base", seed, f"m{place}", 5, value)
        for place in range(40)
        for model in ("gerai", "bpr")
        for seed, value in zip(SEEDS, 1.0 + off if model == "gerai" else np.zeros(len(off)), strict=False)
    ]
    results = replace(every, metrics=pl.DataFrame(rows, schema=columns, orient="row"))
    measures = tuple(Measure("m", f"m{place}", (5,), "higher") for place in range(40))
    spec = Order("table3", "", ((Side("GERAI"), Side("BPR")),), measures)
    assert claim_of(results, spec).verdict == "supported"
    assert claim_of(results, replace(spec, most=True)).verdict == "not decided"


def test_every_published_claim_has_a_verdict(every: Results) -> None:
    actual = shown.claims(every, 10)
    assert {actual.artefact for actual in actual} == {"table2", "table3", "table4", "table5", "figure2"}
    assert len({(actual.artefact, actual.claim) for actual in actual}) == len(actual) > 30
    verdicts = {actual.claim: actual.verdict for actual in actual}
    assert "not run" not in verdicts.values()
    (worst,) = [claim.evidence for claim in actual if claim.claim == WORST]
    assert worst.count(": not run. Not run:") == 2  # items that it adds offered: a sweep of ours
    assert verdicts["GCN protects the least of all methods"] == "supported"  # as made up
    assert verdicts["GERAI ranks above all private baselines"] == "contradicted"
    keys = [actual.artefact for actual in actual]
    assert keys == sorted(keys, key=["table2", "table3", "table4", "table5", "figure2"].index)
    table = claims.frame(actual)
    assert table.columns == list(claims.COLUMNS)
    assert table.height == len(actual)


def test_without_runs_only_the_arithmetic_is_judged(read: Callable[..., Results]) -> None:
    actual = shown.claims(read(models=("popularity",)), 10)
    assert {actual.verdict for actual in actual if "noise parameters" not in actual.claim} == {"not run"}
    assert next(actual.verdict for actual in actual if "noise parameters" in actual.claim) == "supported"


def test_no_claims_without_the_papers_data(demo: Results, every: Results) -> None:
    assert shown.claims(demo, 10) == []
    other = replace(every, processed=replace(every.processed, dataset="ml-1m"))
    assert shown.claims(other, 10) == []
    assert shown.claims(replace(every, synthetic=True), 10) == []
    assert claims.frame([]).columns == list(claims.COLUMNS)


def test_the_papers_own_numbers_support_what_it_says_of_its_tables(every: Results) -> None:
    """The readings of the claims are faithful: fed with the printed numbers, one of them alone is contradicted.

    What a held-out item is ranked against is not printed: the numbers stand for either.

    On age DPMF's printed mean over K is above BPR's by 0.0007. Margins that are read off a table leave half of it.
    """
    rng = np.random.default_rng(11)
    printed = {}
    for row in every.published.iter_rows(named=True):
        printed[row["artefact"], row["method"], row["setting"] or "", row["metric"]] = row["value"]
    rows = []
    for table in GERAI.tables:
        for column in [column for part in table.parts for column in part.columns if table.comparable]:
            for method in table.methods:
                value = printed[table.key, method, column.setting, column.published]
                model = GERAI.methods[method]
                rows += [
                    (f"gerai-{model}", model, "base", seed, metric, column.k, value, rng.normal())
                    for metric in dict.fromkeys((column.metric, column.metric.replace("sampled-100/", "full/")))
                    for seed in range(5)
                ]
    columns = ["experiment", "model", "setting", "seed", "metric", "k", "value", "noise"]
    table = pl.DataFrame(rows, schema=columns, orient="row").unique(
        ["model", "metric", "k", "seed"], keep="first", maintain_order=True
    )
    table = table.with_columns(value=pl.col("value") + 1e-5 * pl.col("noise")).drop("noise")
    results = replace(every, metrics=table)
    tables = [row for row in claims.rows(results, report_of("gerai"), 10) if row.artefact != "figure2"]
    actual = claims.evaluate(results, tables)
    odd = {actual.claim: actual.verdict for actual in actual if actual.verdict != "supported"}
    assert odd.pop("Methods with differential privacy have a lower F1 than BPR and GCN") == "contradicted"
    (worst,) = [claim.evidence for claim in actual if claim.claim == WORST]
    assert worst.count(": not run. Not run:") == 2  # nothing is printed of these readings
    assert odd.pop(WORST) == "not decided"
    assert len(actual) == 21
    assert not odd


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("gerai", "GERAI ranks above all private baselines"),
        ("dpvae", "They have a lower NDCG@10 than VAE"),
        ("privsr-epinions", "At fixed ε protection of sensitive ratings falls with β"),
        ("dpcrosue", "Foursquare: friendships have a higher TMR than posts"),
    ],
)
def test_what_a_paper_leaves_open_decides_verdicts_on_committed_results(suite: str, said: str) -> None:
    """Candidates, unobserved cells, who attacks, and which precision: none is read in one way alone."""
    (claim,) = [claim for claim in read(suite)[2] if claim.claim.startswith(said)]
    assert claim.verdict == "depends on the reading"
