"""Known results give known verdicts on claims."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tasks.evaluation.run_numbers import APART
from tasks.results.claims import Measure, Order, Pair, Side, Spec, Trend, merged
from tasks.results.load import Results
from tasks.stages import report
from tests.results import made
from tests.results.made import HIT, SEEDS, Judged, Row, committed, judged_claims, levels, paper, system

HIT5 = Measure("Hit@5", HIT, (5,))
Level = Mapping[tuple[str, str, int], float]


@pytest.fixture
def verdicts(tmp_path: Path) -> Any:
    """Judge claims by made-up levels or rows; GERAI has ε = 0.4 at setting `base`."""
    count = iter(range(100))

    def evaluate(rows: Level | Sequence[Row], *specs: Spec, deviation: float = 1e-3, **changes: Any) -> list[Judged]:
        given = levels(rows, deviation) if isinstance(rows, Mapping) else rows
        swept = {label: dict.fromkeys(of for name, of, *_ in given if name == label) for label, *_ in given}
        systems = [system(label, *of, epsilon=0.4 if label == "gerai" else 9.0) for label, of in swept.items()]
        results = made.of_rows(tmp_path / str(next(count)), given, *systems)
        return made.judged(results, *specs, **changes)

    return evaluate


@pytest.fixture
def verdict(verdicts: Any) -> Any:
    return lambda *given, **more: verdicts(*given, **more)[0].verdict


def at(**values: float) -> dict[tuple[str, str, int], float]:
    """Levels at K = 5 and setting `base`."""
    return {(label, "base", 5): level for label, level in values.items()}


def above(*others: str, measure: Measure = HIT5, **more: Any) -> Order:
    return Order(
        "table3", "GERAI is best", tuple(Pair(Side("GERAI"), Side(other)) for other in others), (measure,), **more
    )


@pytest.mark.parametrize(
    ("gerai", "deviation", "expected"),
    [
        (0.5, 0.001, "supported"),  # above both
        (0.3, 0.001, "contradicted"),  # above one, significantly below the other
        (0.4, 0.5, "not-decided"),  # far less apart than the noise
    ],
)
def test_best_of_a_set_of_methods(verdict: Any, gerai: float, deviation: float, expected: str) -> None:
    assert verdict(at(gerai=gerai, bpr=0.4, gcn=0.2), above("BPR", "GCN"), deviation=deviation) == expected


def test_lower_is_better_where_the_measure_says_so(verdict: Any) -> None:
    of = at(gerai=0.2, bpr=0.4)
    assert verdict(of, above("BPR", measure=replace(HIT5, better="lower"))) == "supported"
    assert verdict(of, above("BPR")) == "contradicted"


def test_evidence_has_the_paired_test_over_seeds(verdicts: Any) -> None:
    rows = levels(at(gerai=0.2, bpr=0.4), 0.01)
    (judged,) = verdicts(rows, above("BPR"))
    (row,) = judged.evidence
    left, right = (np.array([value for name, *_, value in rows if name == label]) for label in ("gerai", "bpr"))
    interval = stats.ttest_rel(left, right).confidence_interval(0.95)
    assert (row["left"], row["right"], row["runs"]) == ("GERAI", "BPR", len(SEEDS))
    assert (row["left_mean"], row["right_mean"]) == (pytest.approx(left.mean()), pytest.approx(right.mean()))
    assert [row[name] for name in ("difference", "low", "high")] == pytest.approx(
        [(left - right).mean(), interval.low, interval.high]
    )


def test_cut_offs_are_averaged(verdict: Any) -> None:
    both = above("BPR", measure=replace(HIT5, ks=(5, 10)))
    of = at(gerai=0.5, bpr=0.3) | {("gerai", "base", 10): 0.2, ("bpr", "base", 10): 0.3}
    assert verdict(of, both) == "supported"
    assert verdict({key: level for key, level in of.items() if key != ("gerai", "base", 10)}, both) == "not-run"


def test_a_margin_scales_the_other_side(verdict: Any) -> None:
    of = at(gerai=0.38, gcn=0.4)
    for factor, expected in ((0.9, "supported"), (1.0, "contradicted"), (0.97, "contradicted")):
        assert verdict(of, above("GCN", measure=replace(HIT5, factor=factor)), deviation=1e-5) == expected


@pytest.mark.parametrize(("bpr", "expected"), [(0.1, "supported"), (0.3, "not-decided"), (0.5, "contradicted")])
def test_a_stricter_factor_contradicts_nothing_that_holds_without_it(verdict: Any, bpr: float, expected: str) -> None:
    """Much better, as at least twice as good: what is better by less stays undecided."""
    strict = replace(HIT5, factor=2.0, against=1.0)
    assert verdict(at(gerai=0.4, bpr=bpr), above("BPR", measure=strict), deviation=1e-5) == expected


@pytest.mark.parametrize(("gerai", "expected"), [(0.42, "supported"), (0.6, "contradicted"), (0.3, "contradicted")])
def test_slightly_better_is_neither_worse_nor_much_better(verdict: Any, gerai: float, expected: str) -> None:
    assert verdict(at(gerai=gerai, bpr=0.4), above("BPR", at_most=0.1), deviation=1e-5) == expected


def test_what_was_not_run_is_named_and_leaves_nothing_supported(verdicts: Any) -> None:
    better, worse = at(gerai=0.5, bpr=0.4), at(gerai=0.3, bpr=0.4)
    for of, spec, expected, absent in (
        (better, above("BPR", "RAP"), "not-decided", ["RAP"]),
        (better, above("RAP"), "not-run", ["RAP"]),
        (worse, above("BPR", "RAP"), "contradicted", ["RAP"]),
    ):
        (judged,) = verdicts(of, spec)
        assert (judged.verdict, judged.absent) == (expected, [{"method": name, "setting": {}} for name in absent])


def test_a_single_seed_and_systems_without_randomness_decide_nothing(verdict: Any) -> None:
    of = at(gerai=0.5, bpr=0.4)
    assert verdict([row for row in levels(of) if row[4] == 0], above("BPR")) == "not-decided"
    assert verdict(of, above("BPR"), deviation=0.0) == "not-decided"
    assert verdict(of, above("BPR"), deviation=0.0, overlap=0.2) == "not-decided"


@pytest.mark.parametrize(
    ("better", "expected"), [(3, "supported"), (2, "supported"), (1, "contradicted"), (0, "contradicted")]
)
def test_most_cases_are_more_than_half(verdict: Any, better: int, expected: str) -> None:
    cases = tuple(replace(HIT5, name=f"at {k}", ks=(k,)) for k in (5, 10, 15))
    of = {("gerai", "base", k): 0.5 if place < better else 0.3 for place, k in enumerate((5, 10, 15))}
    of |= {("bpr", "base", k): 0.4 for k in (5, 10, 15)}
    spec = replace(above("BPR", most=True), measures=cases)
    assert verdict(of, spec, deviation=1e-5) == expected
    more = tuple(replace(HIT5, name=f"at {k}", ks=(k,)) for k in (20, 25, 30, 35))
    assert verdict(of, replace(spec, measures=(*cases, *more)), deviation=1e-5) == "not-decided"
    if better == 3:  # most of four, whatever the one that was not run says
        assert verdict(of, replace(spec, measures=(*cases, more[0])), deviation=1e-5) == "supported"


@pytest.mark.parametrize(
    ("gerai", "rap", "expected"),
    [(0.45, 0.60, "supported"), (0.35, 0.60, "supported"), (0.60, 0.45, "contradicted")],  # GCN has 0.4
)
def test_closer_is_by_distance_on_either_side(verdict: Any, gerai: float, rap: float, expected: str) -> None:
    assert verdict(at(gerai=gerai, rap=rap, gcn=0.4), above("RAP", near="GCN"), deviation=1e-5) == expected


def test_a_claim_is_compared_with_its_trivial_baseline_too(verdicts: Any) -> None:
    """A system above all others of a claim may still be below popularity."""
    of = at(gerai=0.5, bpr=0.4, popularity=0.6)
    (judged,) = verdicts(of, above("BPR", floor="popularity"))
    assert judged.verdict == "supported"
    _, row = judged.evidence
    assert (row["floor"], row["left"], round(row["gap"], 2)) == ("popularity", "GERAI", -0.1)


def test_all_readings_of_a_sentence_are_one_claim() -> None:
    for readings, expected in (
        (("supported", "contradicted"), "depends-on-the-reading"),
        (("supported", "supported"), "supported"),
        (("supported", "supported", "not-run"), "not-decided"),
        (("contradicted", "not-run"), "not-decided"),
        (("not-run",), "not-run"),
    ):
        assert merged(readings) == expected  # type: ignore[arg-type]


def swept(of: dict[float, float], key: str = "epsilon", base: float = 0.4) -> dict[tuple[str, str, int], float]:
    return {("gerai", "base" if x == base else f"{key}={x:g}", 5): level for x, level in of.items()}


def trend(key: str = "epsilon", measure: Measure = HIT5, *, rises: bool = True, **more: Any) -> Trend:
    return Trend("figure2", "", key=key, methods=("GERAI",), measures=(measure,), rises=rises, **more)


def test_a_trend_follows_the_swept_key(verdict: Any, verdicts: Any) -> None:
    rising = swept({0.1: 0.2, 0.2: 0.25, 0.4: 0.3, 0.8: 0.35})
    (judged,) = verdicts(rising, trend())
    (row,) = judged.evidence
    assert (judged.verdict, row["first"], row["last"]) == ("supported", 0.1, 0.8)
    assert verdict(rising, trend(rises=False)) == "contradicted"
    assert verdict(swept(dict.fromkeys((0.1, 0.2, 0.4, 0.8), 0.3)), trend(), deviation=0.05) == "not-decided"
    assert verdict(swept({0.1: 0.2, 0.4: 0.3}), trend()) == "not-run", "two points are no trend"


def test_curves_of_two_methods_are_compared_where_both_were_run_at_three_values_or_more(
    verdict: Any, verdicts: Any
) -> None:
    below = trend(rises=False, below="DPMF")
    other = {("dpmf", f"epsilon={x:g}", 5): 0.4 for x in (0.1, 0.2, 0.3, 0.8)}
    (judged,) = verdicts(swept({0.1: 0.2, 0.2: 0.25, 0.4: 0.3, 0.8: 0.35}) | other, below)
    (row,) = judged.evidence
    assert (judged.verdict, row["first"], row["last"]) == ("supported", 0.1, 0.8)
    assert (row["left_mean"], row["right_mean"]) == (pytest.approx(0.2, abs=2e-3), pytest.approx(0.05, abs=2e-3))
    apart = {("dpmf", f"epsilon={x:g}", 5): 0.4 for x in (0.1, 0.3, 0.5)}
    assert verdict(swept({0.1: 0.2, 0.2: 0.25, 0.4: 0.3}) | apart, below) == "not-run"


def test_a_value_that_setting_base_alone_has_was_run(verdict: Any) -> None:
    of = at(gerai=0.5, bpr=0.4)
    for value, expected in ((0.4, "supported"), (0.3, "not-run")):
        side = Side("GERAI", "epsilon", value)
        assert verdict(of, Order("figure2", "", (Pair(side, Side("BPR")),), (HIT5,))) == expected


def test_a_trend_over_the_cut_off_and_of_a_gap(verdict: Any) -> None:
    measure = replace(HIT5, ks=(5, 10, 15))
    of = {("gerai", "base", k): 0.3 + k / 100 for k in measure.ks} | {("gcn", "base", k): 0.6 for k in measure.ks}
    assert verdict(of, trend("K", measure)) == "supported"
    assert verdict(of, trend("K", measure, rises=False, below="GCN")) == "supported"
    assert verdict(of, trend("K", measure, below="GCN")) == "contradicted"


def test_a_gap_is_a_distance_on_either_side(verdict: Any) -> None:
    """GERAI is above GCN, and comes closer to it."""
    measure = replace(HIT5, ks=(5, 10, 15))
    of = {("gcn", "base", k): 0.4 for k in measure.ks}
    of |= {("gerai", "base", k): level for k, level in zip(measure.ks, (0.5, 0.45, 0.42), strict=True)}
    assert verdict(of, trend("K", measure, rises=False, near="GCN"), deviation=1e-5) == "supported"
    below = trend("K", measure, rises=False, below="GCN")
    assert verdict(of, below, deviation=1e-5) == "contradicted", "by how much it is below"


def test_a_third_system_and_its_claims_move_no_verdict(verdicts: Any) -> None:
    """One of two that are 7 deviations apart, three seeds each: no correction takes it away."""
    gaps = {"gerai": 0.0, "bpr": -0.1, "dpmf": 0.1, "gcn": 0.0}
    rows = [
        (label, "base", HIT, 5, seed, gap + (label == "gerai") * 0.01 * (seed - 1))
        for label, gap in gaps.items()
        for seed in SEEDS
    ]
    claims = [above("BPR"), above("DPMF"), above("BPR", most=True)]
    two = verdicts(rows[:9], *claims)
    three = verdicts(rows, *claims, *[above("GCN")] * 40, above("BPR", "DPMF", "GCN"))
    assert [judged.verdict for judged in two] == ["supported", "contradicted", "supported"]
    assert three[:3] == two
    assert three[3].verdict == "not-decided"


def split(folder: Path) -> tuple[Results, list[float]]:
    """Two systems on three splits, and by how much they differ in each run."""
    runs = [part * APART + seed for part in range(3) for seed in SEEDS]
    rng = np.random.default_rng(5)
    gaps = [0.1 + 0.01 * (run // APART) + 0.01 * rng.normal() for run in runs]
    rows = [("bpr", "base", HIT, 5, run, 0.2) for run in runs]
    rows += [("gerai", "base", HIT, 5, run, 0.2 + gap) for run, gap in zip(runs, gaps, strict=True)]
    systems = [system(label, seeds=runs) for label in ("bpr", "gerai")]
    return made.of_rows(folder, rows, *systems), gaps


def test_of_runs_on_several_splits_the_splits_are_independent(tmp_path: Path) -> None:
    results, gaps = split(tmp_path)
    (judged,) = made.judged(results, above("BPR"))
    means = np.array(gaps).reshape(3, -1).mean(axis=1)
    interval = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    (row,) = judged.evidence
    assert row["runs"] == 3
    assert [row[name] for name in ("difference", "low", "high")] == pytest.approx(
        [means.mean(), interval.low, interval.high]
    )


def test_the_papers_own_numbers_support_what_it_says_of_its_tables(tmp_path: Path) -> None:
    """The interpretations of claims are faithful: of the printed numbers one claim alone is contradicted.

    What a held-out item is ranked against is not printed, nor are attackers' settings: the numbers stand for either. On
    age DPMF's printed mean over K is above BPR's by 0.0007. Margins that are read off a table leave half of it.
    """
    rng, gerai = np.random.default_rng(11), paper("gerai")
    printed = made.against(committed("gerai")).printed()
    rows = {
        (gerai.methods[method], metric, column.k, seed): printed[table.key, method, column.setting, column.published]
        for table in reversed(gerai.tables)
        for part in table.parts
        for column in part.columns
        if table.comparable
        for method in table.methods
        for metric in dict.fromkeys(
            column.metric.replace(*other) for other in (("", ""), ("sampled-100/", "full/"), ("/default_", "/"))
        )
        for seed in range(5)
    }
    made_up = [
        (of, "base", metric, k, seed, value + 1e-5 * rng.normal()) for (of, metric, k, seed), value in rows.items()
    ]
    claims = judged_claims(made.of_rows(tmp_path, made_up)).filter(pl.col("artefact") != "figure2")
    odd = dict(claims.filter(pl.col("verdict") != "supported").select("claim", "verdict").iter_rows())
    assert len(claims) == 21
    assert odd == {
        "Methods with differential privacy have a lower F1 than BPR and GCN": "contradicted",
        "Blurm ranks worst of all methods": "not-decided",  # nothing is printed of two of its interpretations
    }


def test_claims_are_judged_on_the_papers_data_alone(tmp_path: Path) -> None:
    rows = levels(at(gerai=0.5, bpr=0.4))
    for place, changes in enumerate(({"synthetic": True}, {"publication": "ml-1m"}, {"paper": None})):
        actual = report.judged(made.of_rows(tmp_path / f"{place}", rows, facts=changes))
        assert actual["claims"].is_empty()
        assert actual["evidence"].is_empty()
    claims = judged_claims(made.of_rows(tmp_path / "own", levels(at(popularity=0.3))))
    arithmetic = claims["claim"].str.contains("noise parameters")
    assert set(claims.filter(~arithmetic)["verdict"]) == {"not-run"}
    assert claims.filter(arithmetic)["verdict"].to_list() == ["supported"]
