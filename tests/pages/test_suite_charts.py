"""Charts: where ε stands, what has a mark, and what a picture may not have."""

import csv
import io
import math
import re
from typing import Any
from urllib.parse import unquote

import pytest

from tasks.pages import charts
from tasks.results.settings import sweeps
from tasks.results.standings import entries, measure
from tests.pages.committed import paper, results


def point(
    name: str, claimed: float | None, accounted: float, audited: float | None, utility: float = 0.5
) -> dict[str, Any]:
    return {"name": name, "utility": utility, "claimed": claimed, "accounted": accounted, "audited": audited}


def by_epsilon(*points: dict[str, Any]) -> str:
    across = [{"name": "best", "utility": 0.9}]
    return charts.by_epsilon("t", points, across, x="user-level ε", y="NDCG").markup


def places(svg: str) -> dict[str, float]:
    """What a mark says -> its place across, in pixels."""
    marks = re.findall(r'translate\(([\d.]+),[^>]*data-text="([^"]*)"', svg)
    return {text: float(x) for x, text in marks}


def test_epsilon_grows_to_the_right_and_infinity_is_last() -> None:
    known = places(by_epsilon(point("a", 1.0, math.inf, 0.3), point("b", 5.0, 5.0, 2.0)))
    order = [
        "a: audited 0.3, 0.5",
        "a: claimed 1, 0.5",
        "b: audited 2, 0.5",
        "b: claimed 5, 0.5",
        "a: accounted ∞, 0.5",
    ]
    assert sorted(known, key=known.__getitem__)[-1] == order[-1]
    assert [known[text] for text in order] == sorted(known[text] for text in order)
    assert known["b: claimed 5, 0.5"] == known["b: accounted 5, 0.5"]


def test_a_bound_of_nothing_has_no_mark_and_an_epsilon_of_zero_has_one_at_the_left_edge() -> None:
    known = places(by_epsilon(point("a", 1.0, 1.0, 0.0), point("b", None, 0.0, None)))
    assert "a: audited 0, 0.5" not in known
    assert known["b: accounted 0, 0.5"] == min(known.values())


def test_each_system_is_named_and_names_are_escaped() -> None:
    svg = by_epsilon(point("<b>", 1.0, 1.0, None, 0.2), point("other", 3.0, 3.0, None, 0.7))
    assert "<b>" not in svg
    assert ">&lt;b&gt;</text>" in svg
    assert ">other</text>" in svg


def test_pictures_fetch_nothing_and_are_the_same_each_time() -> None:
    (svg,) = {by_epsilon(point("a", 1.0, math.inf, None)) for _ in range(2)}
    assert not re.search(r'(href|src|url\()="?https?:', svg)
    assert "<script" not in svg
    assert svg.count("aria-label") == 1


def test_every_bin_of_a_histogram_is_a_bar_whose_area_is_its_share() -> None:
    bins = [{"name": "a", "low": 0.0, "high": 0.1, "users": 30}, {"name": "a", "low": 0.1, "high": 0.4, "users": 30}]
    svg = charts.histogram("t", bins, x="NDCG", y="users").markup
    bars = re.findall(r'width="([\d.]+)" height="([\d.]+)" fill="var', svg)
    (thin, tall), (wide, low) = [(float(width), float(height)) for width, height in bars]
    assert thin * tall == pytest.approx(wide * low, rel=0.05)
    assert wide == pytest.approx(3 * thin, rel=0.02)


def test_nothing_of_a_roc_curve_lies_outside_its_frame_and_a_rate_of_0_stands_left() -> None:
    svg = charts.roc("t", {"a": [(0.0, 0.2), (0.1, 1.0), (1.0, 1.0)], "b": [(0.0, 0.0), (1.0, 1.0)]}).markup
    frame, left, top = re.search(r'<rect width="(\d+)" height="(\d+)"', svg), re.compile(r"([\d.-]+),([\d.-]+)"), []
    for path in re.findall(r'<path d="M([^"]*)" fill="none" stroke="var\(--c\d\)"', svg):
        top += [(float(x), float(y)) for x, y in left.findall(path)]
    assert all(0 < x < int(frame[1]) and 0 < y < int(frame[2]) for x, y in top)
    assert len(top) == 4  # a true positive rate of 0 has no place


def test_an_axis_has_round_ticks_within_its_values() -> None:
    for low, high in ((0.0, 1.0), (-3.2, 14.7), (0.279, 0.294), (1e-4, 900.0), (5.0, 5.0)):
        for log in (False, low > 0):
            ticks = charts.axis("", [low, high], 100, log=log).ticks
            assert ticks
            assert all(low <= tick <= high for tick in ticks)
            assert all(float(text) == pytest.approx(tick) for tick, text in ticks.items())


def test_rows_come_back_from_their_link() -> None:
    rows = [{"name": 'a "b", c', "value": 1.5}, {"name": "ü", "value": -2.0}]
    head, _, body = charts.csv_link(rows).partition(",")
    assert head == "data:text/csv;charset=utf-8"
    read = list(csv.DictReader(io.StringIO(unquote(body))))
    assert [(row["name"], float(row["value"])) for row in read] == [(row["name"], row["value"]) for row in rows]
    assert charts.csv_link([]).endswith(",")


@pytest.mark.parametrize("suite", ["gerai", "privsr", "dpvae", "dipsgnn", "dpcrosue"])
def test_points_of_sweeps_are_means_over_the_split_that_they_have(suite: str) -> None:
    of, by = results(suite), measure(results(suite), paper(suite))
    table = sweeps(of, by, entries(of, by))
    assert table.height
    for row in table.to_dicts():
        values = of.metrics.filter(experiment=row["experiment"], setting=row["setting"], metric=by.metric, k=by.k)
        first = values.filter(values["seed"] < 1_000_000)["value"]
        assert row["utility"] == pytest.approx(first.mean())
        assert row["n"] == first.len()
        varied = of.systems[row["experiment"]].settings()[row["setting"]]
        assert row["key"] not in varied or varied[row["key"]] == row["value"]


def test_an_epsilon_across_is_of_the_level_that_claims_it() -> None:
    by = measure(results("gerai"), paper("gerai"))
    table = sweeps(results("gerai"), by, entries(results("gerai"), by))
    levels = {(row["label"], row["key"]): row["level"] for row in table.to_dicts()}
    assert levels["dpae", "epsilon"] == "user"
    assert levels["gerai", "epsilon"] == "interaction"
    assert levels["gerai", "features_epsilon"] == "feature"
    assert levels["gerai", "dimension"] == ""
    base = table.filter(label="gerai", key="features_epsilon", setting="base")
    assert base["value"].to_list() == [20.0]
