"""Figures: what Vega-Lite draws of panels, names that do not cover one another, titles and tables of what is drawn."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
import subprocess
import sys
from itertools import combinations, pairwise
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.reporting.core.chart import (
    COLOURS,
    LOW,
    MOST_POINTS,
    MUTED,
    SMALL,
    Chart,
    Estimate,
    Forest,
    Heat,
    Level,
    Panel,
    Point,
    Series,
    Square,
    sample_size,
    thin,
)
from tasks.reporting.core.drawing import SOFT, svg
from tasks.reporting.core.placing import LETTER, ROW, labels, separate
from tests.reporting.pictures import picture

HOSTILE = "</svg><script>alert(1)</script>\"' datum.x"
values = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


def curve(name: str, style: int, *ys: float, **options: bool) -> Series:
    points = [Point(float(x), y, f"{name} {x}: {y}", y_interval=(y - 0.01, y + 0.01)) for x, y in enumerate(ys, 1)]
    return Series(name, style, points, **options)


PANELS: dict[str, Panel | Forest | Heat] = {
    "curves": Panel("curves", "K", "NDCG", [curve("a", 0, 0.1, 0.2), curve("b", 8, 0.3, 0.1)], named=True),
    "log": Panel("log", "ε", "NDCG", [Series("a", 0, [Point(0.5, 0.1, "a"), Point(math.inf, 0.3, "b")])], log=True),
    "scatter": Panel("scatter", "ε", "y", [Series(HOSTILE, 0, [Point(1.0, 2.0, HOSTILE)], line=False)], named=True),
    "identity": Panel("identity", "printed", "ours", [curve("a", 0, 1.0, 2.0, line=False)], identity=True),
    "categories": Panel(
        "categories",
        "attacker",
        "F1",
        [Series(name, style, [Point(HOSTILE, 0.1, ""), Point("kNN", 0.2, "")], line=False) for style, name in
         enumerate("ab")],
        [Level("chance", 0.1, "dashed")],
    ),
    "forest": Forest("forest", "difference", [Estimate(HOSTILE, 0.1, 0.0, 0.2, HOSTILE, True)]),
    "heat": Heat("heat", "", "", [Square("a", HOSTILE, 0.2, HOSTILE, True), Square("b", HOSTILE, -0.1, "", False)]),
}  # fmt: skip


@pytest.mark.parametrize("kind", PANELS)
def test_every_kind_is_one_labelled_picture_that_loads_and_runs_nothing(kind: str) -> None:
    drawn = svg(PANELS[kind])
    tree = ElementTree.fromstring(drawn)
    assert tree.get("role") == "img"
    assert str(tree.get("aria-label")).startswith(f"{kind}: ")
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags <= {"svg", "g", "path", "line", "text", "rect", "tspan"}
    names = {name for element in tree.iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or name in {"id", "href"}}
    assert "url(" not in drawn


def test_drawing_gives_the_same_bytes_in_every_process_and_order() -> None:
    code = "from tests.reporting.test_chart import digest_of_drawings; print(digest_of_drawings(backwards=True))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest_of_drawings()


def digest_of_drawings(*, backwards: bool = False) -> str:
    order = list(reversed(PANELS)) if backwards else list(PANELS)
    drawn = {name: svg(PANELS[name]) for name in order}
    return hashlib.sha256("".join(drawn[name] for name in PANELS).encode()).hexdigest()


def test_larger_values_stand_further_up_and_right() -> None:
    drawn = svg(Panel("", "x", "y", [Series("a", 0, [Point(1.0, 1.0, "first"), Point(2.0, 3.0, "last")], line=False)]))
    places = {}
    for element in ElementTree.fromstring(drawn).iter():
        if element.get("data-text") in {"first", "last"}:
            x, y = re.findall(r"[-\d.]+", str(element.get("transform")))
            places[element.get("data-text")] = (float(x), float(y))
    assert places["last"][0] > places["first"][0]
    assert places["last"][1] < places["first"][1]  # SVG counts downwards


def test_what_has_no_bound_stands_at_the_right_end_as_infinity() -> None:
    texts = [element.text for element in ElementTree.fromstring(svg(PANELS["log"])).iter() if element.text]
    assert "∞" in texts
    assert "5" not in texts, "its place is no number"


@pytest.mark.parametrize("panel", [
    Panel("", "x", "y", [Series("a", 0, [Point(1.0, math.nan, "")])]),
    Panel("", "x", "y", [Series("a", 0, [Point(0.0, 1.0, "")])], log=True),
])  # fmt: skip
def test_values_that_have_no_place_are_refused(panel: Panel) -> None:
    with pytest.raises(ValueError, match="finite"):
        svg(panel)


def test_whole_numbers_get_whole_ticks() -> None:
    drawn = svg(Panel("", "epoch", "y", [Series("a", 0, [Point(x, x, "") for x in (1.0, 2.0, 3.0)])], size=SMALL))
    places = [element.text or "" for element in ElementTree.fromstring(drawn).iter() if element.tag.endswith("text")]
    across = places[: places.index("epoch")]
    assert "2" in across
    assert not any("." in text for text in across[: across.index("3") + 1])


def test_fourteen_systems_differ_in_colour_or_shape_and_have_the_known_colours() -> None:
    looks = {(series.colour, series.shape) for series in (Series("", style, []) for style in range(14))}
    assert len(looks) == 14
    assert {colour for colour, _ in looks} == {*COLOURS}
    assert Series("", 3, [], muted=True).colour == MUTED
    assert len({Series("", style, [], muted=True).shape for style in range(7, 14)}) == 7, "grey ones differ in shape"


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, 200)), min_size=1, max_size=21), st.lists(st.floats(0, 200)))
def test_names_at_points_cover_neither_one_another_nor_a_mark_nor_a_line_and_stay_in_the_frame(
    points: list[tuple[float, float]], lines: list[float]
) -> None:
    named = [(x, y, f"system {place}") for place, (x, y) in enumerate(points)]
    places = labels(named, 300.0, 200.0, lines[:2])
    if places is None:
        assert len(points) > 1
        return
    half = [LETTER * len(name) / 2 for _, _, name in named]
    boxes = [(x - wide, y - ROW / 2, x + wide, y + ROW / 2) for (x, y), wide in zip(places, half, strict=True)]
    assert all(box[0] >= -0.01 and box[2] <= 300.01 and box[1] >= -0.01 and box[3] <= 200.01 for box in boxes)
    marks = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    marks += [(-1e9, y, 1e9, y) for y in lines[:2]]
    for box, other in [*combinations(boxes, 2), *((label, mark) for label in boxes for mark in marks)]:
        assert (
            box[2] <= other[0] + 0.01
            or other[2] <= box[0] + 0.01
            or box[3] <= other[1] + 0.01
            or other[3] <= box[1] + 0.01
        )


@given(st.lists(values, min_size=1, max_size=13).map(sorted))
def test_names_at_ends_of_lines_keep_apart(wanted: list[float]) -> None:
    places = separate(wanted, 0.0, 230.0)
    assert all(second - first >= ROW - 1e-6 for first, second in pairwise(places))
    assert min(places) >= 0
    assert max(places) <= 230 + 1e-6
    assert separate([50.0], 0.0, 230.0) == [50.0]


def test_names_stand_at_their_marks_where_only_the_column_at_infinity_is_crowded() -> None:
    crowd = [Series(f"system {n}", n, [Point(math.inf, 0.3 + n / 1000, "")], line=False) for n in range(14)]
    sound = Series("sound", 14, [Point(1.0, 0.2, "")], line=False)
    panel = Panel("", "ε", "NDCG", [*crowd, sound], named=True, size=LOW, log=True)
    lefts = {text.text: min(x for x, _ in text.corners) for text in picture(svg(panel)).texts}
    assert lefts["sound"] + 100 < min(left for name, left in lefts.items() if name.startswith("system "))


def test_names_stand_at_marks_of_the_least_budget_too() -> None:
    """None is on the frame, so that names have place on both sides; the lines to other names look like no level."""
    budgets = [Series(f"dp-vae {n}", n, [Point(1.0, 0.2 + n / 50, "")], line=False) for n in range(4)]
    free = [Series(f"vae {n}", 5 + n, [Point(math.inf, 0.1 + n / 100, "")], line=False) for n in range(9)]
    drawn = svg(Panel("", "ε", "NDCG", [*budgets, *free], named=True, size=LOW, log=True))
    lefts = {text.text: min(x for x, _ in text.corners) for text in picture(drawn).texts}
    assert all(lefts[series.name] + 100 < min(lefts[other.name] for other in free) for series in budgets)
    lines = re.findall(r'<line [^>]*stroke-width="0.7"[^>]*>', drawn)
    assert lines
    assert all("stroke-dasharray" in line and f'stroke="{SOFT}"' in line for line in lines)


def test_grey_marks_are_seen_on_both_papers() -> None:
    assert all(contrast(MUTED, paper) >= 3 for paper in ("#ffffff", "#15181b"))


def contrast(colour: str, paper: str) -> float:
    """Ratio of their luminances, as WCAG 2 defines it."""
    shares = [[int(each[place : place + 2], 16) / 255 for place in (1, 3, 5)] for each in (colour, paper)]
    linear = [[x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in share] for share in shares]
    dark, light = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in linear)
    return (light + 0.05) / (dark + 0.05)


def test_a_legend_names_every_series_once_and_not_what_panels_name() -> None:
    panels = [Panel(title, "x", "y", [Series("b", 1, []), Series("a", 0, [])]) for title in ("one", "two")]
    assert [series.name for series in Chart("id", "", "", panels).legend] == ["a", "b"]
    assert not Chart("id", "", "", [Panel("", "x", "y", [Series("a", 0, [])], named=True)]).legend


def test_a_title_says_once_what_its_panels_show() -> None:
    chart = Chart("id", "Ranking", "", [PANELS["curves"]])
    assert chart.heading == "Ranking: NDCG at K = 2 highest for a (0.200), lowest for b (0.100)"
    single = Panel("", "ε", "Hit", [curve("Hit", 0, 0.1, 0.2)])
    assert Chart("id", "Hit by ε", "", [single]).heading == "Hit by ε: 0.100 at 1, 0.200 at 2"
    both = [Panel(name, "K", name, [curve("a", 0, 0.1, 0.2), curve("b", 1, 0.3, 0.3)]) for name in ("NDCG", "Hit")]
    assert Chart("id", "Ranking", "", both).heading == "Ranking: b is highest in all panels, a lowest in 2"
    mixed = [
        Panel(name, "K", name, [curve("a", 0, 0.1, a), curve("b", 1, 0.3, b), curve("c", 2, 0.3, c)])
        for name, a, b, c in (("age", 0.1, 0.2, 0.3), ("gender", 0.2, 0.9, 0.1), ("job", 0.3, 0.2, 0.2))
    ]
    title = Chart("id", "F1", "", mixed).heading
    assert title == "F1: gender differs most: highest for b (0.900), lowest for c (0.100)", "1 of 3 panels says nothing"
    same = Panel("", "ε", "MAE", [curve("a", 0, 0.1, 0.76312), curve("b", 1, 0.1, 0.76311)])
    assert same.finding == "0.763 for all"
    moving = [Panel(name, "d", name, [curve("a", 0, 0.1, last)]) for name, last in (("NDCG", 0.1), ("Hit", 0.3))]
    assert Chart("id", "Sweep", "", moving).heading == "Sweep: Hit moves most with d: 0.100 at 1, 0.300 at 2"
    sides = [Panel("", "", "F1", [Series("ours", 0, [Point("a", 0.1, ""), Point("b", 0.2, "")], line=False)])]
    assert Chart("id", "Table", "", sides).heading == "Table: F1 highest for b (0.200), lowest for a (0.100)"
    assert PANELS["forest"].finding == "1 above and 0 below, of 1"
    assert PANELS["heat"].finding.startswith("1 of 2 gain, most a, ")
    assert Chart("id", "Ranking", "", [], finding="said").heading == "Ranking: said"


def test_a_figure_says_how_many_systems_and_seeds_it_draws() -> None:
    ours = [Series(name, 0, [Point(1.0, 0.1, "", n=n)]) for name, n in (("a", 5), ("b", 5))]
    printed = Series("a, paper", 1, [Point(1.0, 0.2, "")])
    assert Chart("id", "", "", [Panel("", "", "", [*ours, printed])]).size == "n = 2 systems, 5 seeds each"
    assert Chart("id", "", "", [Panel("", "", "", ours[:1])], of="mode", run="fold").size == "n = 1 mode, 5 folds"
    assert sample_size(2, [1, 5], "fold") == "n = 2 systems, 1 to 5 folds each"


def test_a_long_line_is_thinned_to_its_ends_and_points_between() -> None:
    points = [Point(float(x), 0.0, "") for x in range(1000)]
    kept = [point.x for point in thin(points)]
    assert len(kept) == len({*kept}) == MOST_POINTS
    assert (kept[0], kept[-1]) == (0.0, 999.0)
    assert thin(points[:MOST_POINTS]) == points[:MOST_POINTS]


def test_a_figure_carries_its_data() -> None:
    chart = Chart("id", "", "", list(PANELS.values()))
    head, _, text = chart.csv_address.partition(",")
    assert head == "data:text/csv;charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(unquote(text))))
    assert {row["panel"] for row in rows} == set(PANELS)
    (point,) = [row for row in rows if row["panel"] == "log" and row["x"] == "∞"]
    assert point["y"] == "0.3"
    (level,) = [row for row in rows if row["series"] == "chance"]
    assert level["y"] == "0.1"
    assert any(row["series"] == HOSTILE for row in rows)
