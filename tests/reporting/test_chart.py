"""Geometry of figures."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.reporting.core.chart import LETTER, LINE, Chart, Drawing, Level, Panel, Point, Series, draw, ticks

values = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


def drawing(points: list[Point], levels: tuple[Level, ...] = ()) -> Drawing:
    return draw(Panel("title", "x", "y", [Series("one", 0, points)], levels))


@given(values, values)
def test_ticks_lie_within_the_axis_evenly_spaced(first: float, other: float) -> None:
    low, high = sorted((first, other))
    actual = ticks(low, high)
    margin = 1e-6 * max(1.0, abs(low), abs(high))
    assert all(low - margin <= tick <= high + margin for tick in actual)
    if high > low:
        assert 2 <= len(actual) <= 13
        steps = [second - first for first, second in pairwise(actual)]
        assert max(steps) - min(steps) <= margin


@pytest.mark.parametrize(("low", "high"), [(0.0, math.inf), (math.nan, 1.0), (1.0, 0.0)])
def test_an_axis_without_finite_ordered_bounds_is_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="finite bounds"):
        ticks(low, high)


@given(st.lists(st.tuples(values, values, st.floats(0, 100)), min_size=1, max_size=8), values)
def test_everything_is_drawn_within_the_frame(points: list[tuple[float, float, float]], level: float) -> None:
    actual = drawing(
        [Point(x, y, "", (x - bar, x + bar), (y - bar, y + bar)) for x, y, bar in points],
        (Level("level", level, "dashed"),),
    )
    for mark in actual.strokes[0].marks:
        assert actual.left <= mark.x <= actual.right
        assert actual.top <= mark.y <= actual.bottom
    assert all(actual.top <= y <= actual.bottom for _, y in actual.levels)


def test_larger_values_stand_further_up_and_right() -> None:
    first, second = drawing([Point(1, 1, ""), Point(2, 3, "")]).strokes[0].marks
    assert second.x > first.x
    assert second.y < first.y  # SVG counts downwards


def test_equal_values_still_have_an_axis() -> None:
    actual = drawing([Point(5, 0.7, ""), Point(10, 0.7, "")])
    assert actual.y_ticks


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        drawing([Point(1, math.nan, "")])


def test_whole_numbers_get_whole_ticks() -> None:
    assert all("." not in label for _, label in drawing([Point(x, x, "") for x in (1, 2, 3)]).x_ticks)


def test_fourteen_systems_differ_in_colour_or_marker() -> None:
    looks = {(series.colour, series.marker) for series in (Series("", style, []) for style in range(14))}
    assert len(looks) == 14


@given(st.lists(st.tuples(values, values), min_size=1, max_size=13), st.booleans())
def test_names_of_series_do_not_cover_one_another(ends: list[tuple[float, float]], line: bool) -> None:
    series = [Series(f"system {place}", place, [Point(*end, "")], line=line) for place, end in enumerate(ends)]
    actual = draw(Panel("title", "x", "y", series, named=True))
    assert len(actual.names) == len(ends)
    for combination, other in combinations(actual.names, 2):
        if line:
            assert abs(combination.y - other.y) >= LINE - 0.05
            assert actual.top - 6 <= combination.y - 4 <= actual.bottom + 6
        else:
            here, there = (
                (name.x, name.x + width) if name.anchor == "start" else (name.x - width, name.x)
                for name in (combination, other)
                for width in (LETTER * len(name.series.name),)
            )
            apart = here[1] <= there[0] + 0.05 or there[1] <= here[0] + 0.05
            assert apart or abs(combination.y - other.y) >= LINE - 0.05


def test_a_single_name_stands_at_the_end_of_its_line() -> None:
    actual = draw(Panel("", "x", "y", [Series("one", 0, [Point(0, 0, ""), Point(1, 1, "")])], named=True))
    assert actual.names[0].y - 4 == pytest.approx(actual.strokes[0].marks[-1].y)
    assert actual.names[0].x > actual.right


def test_grey_series_lie_below() -> None:
    series = [Series("front", 0, [Point(0, 0, "")]), Series("back", 1, [Point(0, 0, "")], muted=True)]
    assert [stroke.series.name for stroke in draw(Panel("", "x", "y", series)).strokes] == ["back", "front"]
    assert series[1].colour == "muted"


def test_a_legend_names_every_series_once() -> None:
    panels = [Panel(title, "x", "y", [Series("b", 1, []), Series("a", 0, [])]) for title in ("one", "two")]
    assert [series.name for series in Chart("id", "", "", panels).legend] == ["a", "b"]
