"""From results to charts."""

from __future__ import annotations

import pytest

from tasks.reporting.core import figures
from tasks.reporting.core.results import Results
from tasks.stages.papers import describe
from tasks.stages.report import report_of
from tests.reporting.example import ALL, MAJORITY

GERAI = describe("gerai")
K = 10


def test_every_table_and_figure_of_the_paper_has_its_chart(every: Results, demo: Results) -> None:
    assert set(report_of(every.paper).charts(every, K)) == {
        "table2",
        "table3",
        "table3-full",
        "table4",
        "table5",
        "figure2",
    }
    assert "figure2" not in report_of(demo.paper).charts(demo, K)  # nothing was swept


def test_figure_2_varies_three_keys_in_four_panels_each(every: Results) -> None:
    panels = report_of(every.paper).charts(every, K)["figure2"].panels
    assert [panel.x_label for panel in panels[::4]] == ["ε", "ε of the features", "d"]
    assert len(panels) == 12
    first, second = panels[:2]
    assert [level.name for level in first.levels] == ["level of rap"]
    assert first.levels[0].y == pytest.approx(every.values(every.find_compared("rap"), "sampled-100/hit", K).mean())
    assert [level.name.partition(" (")[0] for level in second.levels] == ["majority guess", "ratings alone"]
    xs = [point.x for point in first.series[0].points]
    assert xs == first.x_ticks == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert first.log
    assert [point.x for point in panels[8].series[0].points] == [20, 40, 60, 80, 100]


def test_other_sweeps_are_drawn_apart_and_words_have_no_axis(every: Results) -> None:
    panels = figures.sweeps(every, K).panels
    assert {series.name for panel in panels for series in panel.series} == {"dpae"}


def test_seven_of_many_systems_have_a_colour_and_the_rest_are_grey(every: Results) -> None:
    (panel, *_) = report_of(every.paper).charts(every, K)["table2"].panels
    assert len(panel.series) == len(ALL)
    bold = [series for series in panel.series if not series.muted]
    assert {series.name for series in bold} == set(GERAI.emphasis)
    assert len({(series.colour, series.shape) for series in bold}) == 7
    assert len({series.shape for series in panel.series if series.muted}) == 6


def test_few_systems_all_have_a_colour(demo: Results) -> None:
    (panel, *_) = report_of(demo.paper).charts(demo, K)["table2"].panels
    assert not any(series.muted for series in panel.series)


def test_the_ablation_shows_the_papers_versions_alone(every: Results) -> None:
    panels = report_of(every.paper).charts(every, K)["table4"].panels
    assert [series.name for series in panels[0].series] == ["gcn", "gerai-nl", "gerai-nf", "gerai"]
    assert panels[2].levels[0].y == pytest.approx(MAJORITY["age"])


def test_gains_stand_with_their_interval_over_users(every: Results) -> None:
    panel = figures.tradeoff(every, K).panels[0]
    point = next(series.points[0] for series in panel.series if series.name == "gcn")
    assert point.x == pytest.approx(0.08)
    assert point.x_interval == pytest.approx((0.06, 0.10))
