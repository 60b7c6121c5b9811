"""Printed numbers with ours: `comparison.csv`, and the settings that a row of it is of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.results.load import Results
from tasks.results.printed import Against, ratio
from tasks.results.settings import along, find_setting
from tasks.results.tables import Spent
from tasks.stages import report
from tests.results import made
from tests.results.made import HIT, SEEDS, levels, system

OURS = {"bpr": 0.52, "gcn": 0.55, "popularity": 0.4, "dp-popularity": 0.39}
AGE = "attribute/age/{}/f1"
STEPS = (
    {"step": "published", "users": 6040, "items": 3706, "interactions": 1_000_209},
    {"step": "in-ranges", "users": 6038, "items": 3533, "interactions": 575_281},
    {"step": "core", "users": 5949, "items": 2810, "interactions": 571_531},
    {"step": "last", "users": 5949, "items": 2810, "interactions": 365_535},
    {"step": "of-trained-items", "users": 5949, "items": 2810, "interactions": 365_500},
)
"""Counts of ML-1M as docs/methods.md §10 has them; the second and the last line are made up."""


def results(folder: Path, seeds: int = 3, **facts: Any) -> Results:
    at_base = {(label, "base", k): level + k / 100 for label, level in OURS.items() for k in (5, 10)}
    rows = levels(at_base) + levels(at_base, metric="full/hit")
    rows += levels(at_base, metric=AGE.format("neural")) + levels(at_base, metric=AGE.format("default_knn"))
    return made.of_rows(folder, [row for row in rows if row[4] < seeds], facts=facts)


def compared(of: Results, **where: Any) -> pl.DataFrame:
    """Rows of comparison.csv, nulls as empty texts."""
    return report.judged(of)["comparison"].with_columns(pl.col(pl.String).fill_null("")).filter(**where)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return results(tmp_path_factory.mktemp("real"))


@pytest.mark.parametrize(
    ("where", "metric", "k", "printed"),
    [
        ({"artefact": "table3", "metric": "hit@10", "protocol": "sampled-100", "setting": ""}, HIT, 10, 0.507),
        (
            {"artefact": "table5", "metric": "f1_age@5", "setting": "attacker=knn", "protocol": "attribute-inference"},
            AGE.format("default_knn"),
            5,
            None,
        ),
    ],
)
def test_each_printed_number_has_the_mean_and_deviation_of_ours(
    real: Results, where: Mapping[str, Any], metric: str, k: int, printed: float | None
) -> None:
    (row,) = compared(real, method="BPR", **where).to_dicts()
    values = np.array([*real.values("gerai-bpr", metric, k).values()])
    expected = made.against(real).printed()[where["artefact"], "BPR", where["setting"], where["metric"]]
    assert row["published"] == (printed or expected) == expected
    assert (row["ours_mean"], row["ours_std"]) == (round(values.mean(), 6), round(values.std(ddof=1), 6))
    assert (row["seeds"], row["data"]) == (3, "real")


def test_every_printed_number_has_its_row_and_what_was_not_run_has_no_number_of_ours(real: Results) -> None:
    frame = compared(real)
    assert frame["published"].count() == real.published.filter(paper="gerai", dataset="ml-100k").height
    not_run = frame.filter(pl.col("method").is_in(["Blurm", "DPAE", "DPNE", "DPMF", "RAP", "GERAI-NL"]))
    assert not_run.height > 0
    assert not_run["ours_mean"].count() == not_run["ours_std"].count() == not_run["seeds"].sum() == 0


def test_what_the_paper_does_not_print_is_compared_with_nothing_printed(real: Results) -> None:
    full = compared(real, protocol="full")
    assert full.height > 0
    assert full["published"].count() == 0


def test_baselines_are_in_every_table(real: Results) -> None:
    for artefact in ("table2", "table3", "table5"):
        assert {"popularity", "dp-popularity"} <= set(compared(real, artefact=artefact)["method"])


@pytest.mark.parametrize("facts", [{"synthetic": True}, {"publication": "ml-1m"}, {"paper": None}])
def test_other_data_and_suites_of_no_paper_are_compared_with_nothing(tmp_path: Path, facts: Mapping[str, Any]) -> None:
    of = results(tmp_path, **facts)
    frame = compared(of)
    assert frame["published"].count() == 0
    assert frame["ours_mean"].count() > 0
    assert set(frame["paper"]) == {"gerai" if "publication" in facts else ""}
    assert set(frame["data"]) == {of.suite.kind}
    assert "paper" not in facts or "table4" not in set(frame["artefact"]), "versions of the paper's method"


def test_one_seed_has_no_standard_deviation(tmp_path: Path) -> None:
    frame = compared(results(tmp_path, seeds=1)).filter(pl.col("seeds") > 0)
    assert set(frame["seeds"]) == {1}
    assert frame["ours_std"].count() == 0


def test_a_ratio_is_of_each_run_and_none_to_nothing(tmp_path: Path) -> None:
    """Of DP-CroSUE: utility over what attacks find."""
    rows = [("bpr", "base", metric, 0, seed, value * (seed + 1.0))
            for metric, value in (("up", 6.0), ("a", 1.0), ("b", 2.0), ("none", 0.0)) for seed in SEEDS]  # fmt: skip
    of = made.of_rows(tmp_path, [*rows, ("bpr", "base", "late", 0, 1, 5.0)])

    def value(metric: str, *others: str) -> dict[int, float]:
        return ratio(of, "gerai-bpr", metric, others, 0, "base")

    assert value("up", "a", "b") == {0: 2.0, 1: 2.0, 2: 2.0}
    assert value("up", "none") == {}
    assert value("up", "late") == {1: pytest.approx(12 / 5)}


def half(folder: Path, counted: str = "ml-1m", features: int = 3) -> Results:
    """Half of ML-1M, with the counts of all of it."""
    names = ("users", "items", "interactions")
    part = [step | {name: step[name] // 2 for name in names} for step in STEPS]  # type: ignore[operator]
    rows = [{"dataset": "ml-1m", "counted": False} | step for step in part]
    rows += [{"dataset": "ml-1m", "counted": True} | step for step in STEPS if counted]
    facts = {"suite": "dipsgnn-ml-1m", "paper": "dipsgnn", "dataset": "ml-1m-part", "publication": "ml-1m"}
    facts |= {"stands_for": "ml-1m", "counted": counted}
    facts |= {"n_features": 3, "n_counted_features": features}  # type: ignore[dict-item]
    return made.write(folder, made.suite([system("dipsgnn", suite="dipsgnn-ml-1m")], **facts), counts=rows)


def test_counts_of_all_data_are_real_and_those_of_a_part_are_not(tmp_path: Path) -> None:
    rows = compared(half(tmp_path / "with"))
    without = compared(half(tmp_path / "without", counted=""))
    assert rows.filter(dataset="ml-1m-part").equals(without)
    assert set(without["data"]) == {"part"}
    counted = rows.filter(data="real")
    assert set(counted["protocol"]) == {"counted"}
    ours = dict(counted.select("metric", "ours_mean").iter_rows())
    expected = {"users": 5949, "items": 2810, "interactions": 365535, "avg_length": 96.0718, "user_features": 3}
    assert ours == pytest.approx(expected, abs=1e-4)
    printed = {"users": 5945, "items": 2810, "interactions": 365535, "avg_length": 96.07, "user_features": 3}
    assert dict(counted.select("metric", "published").iter_rows()) == printed


def test_networks_of_others_under_the_same_names_are_compared_with_nothing() -> None:
    of = made.committed("dpcrosue")
    names = [network.name for network in of.suite.networks]
    described = made.paper("dpcrosue")
    own, other = (Against(of, described, counted=counted) for counted in (False, True))
    assert all(own.printed(name) for name in names)
    assert other.origin == ""
    assert not any(other.printed(name) for name in names)


SWEPT = system("a", "epsilon=0.1", "epsilon=1.0", "epsilon=0.1,d=2", "clip=none", epsilon=0.4, d=8)


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Results:
    rows = levels({("a", setting, 5): 0.1 for setting in SWEPT.settings()})
    return made.of_rows(tmp_path_factory.mktemp("varied"), rows, SWEPT)


@pytest.mark.parametrize(
    ("wanted", "setting"),
    [
        ({}, "base"),
        ({"epsilon": 0.4}, "base"),
        ({"epsilon": 1}, "epsilon=1.0"),
        ({"d": 2, "epsilon": "0.1"}, "epsilon=0.1,d=2"),
        ({"clip": "none"}, "clip=none"),
        ({"d": 2}, None),
    ],
)
def test_a_setting_is_found_by_all_values_in_which_it_differs(
    varied: Results, wanted: Mapping[str, Any], setting: str | None
) -> None:
    assert find_setting(varied, SWEPT, wanted) == setting


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ({}, {0.1: "epsilon=0.1", 0.4: "base", 1.0: "epsilon=1.0"}),
        ({"d": 2.0}, {0.1: "epsilon=0.1,d=2"}),
        ({"unknown": 3.0}, {0.1: "epsilon=0.1", 0.4: "base", 1.0: "epsilon=1.0"}),  # of a key that it does not have
    ],
)
def test_along_a_key_all_others_are_held(
    varied: Results, at: Mapping[str, float], expected: Mapping[float, str]
) -> None:
    assert along(varied, SWEPT, "epsilon", at) == expected


def test_a_budget_of_perturbed_data_at_base_is_the_one_that_the_ledger_claims(tmp_path: Path) -> None:
    of = system("a", "features_epsilon=5.0")
    rows = levels({("a", setting, 5): 0.1 for setting in of.settings()})
    spent = Spent("gerai-a", "base", 0, made.entry(20.0, "features", protects="feature"))
    results = made.of_rows(tmp_path, rows, of, spent=[spent])
    assert along(results, of, "features_epsilon") == {5.0: "features_epsilon=5.0", 20.0: "base"}
