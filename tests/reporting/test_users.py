"""How users fare: the section of it, and what results that lack it say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tasks.reporting.core.chart import Panel
from tasks.reporting.core.results import Results
from tasks.reporting.sections import users

LOW, HIGH = [[0.0, 0.1, 30], [0.1, 0.2, 10]], [[0.0, 0.1, 10], [0.3, 0.4, 20], [0.4, 0.6, 10]]


def with_distributions(results: Results) -> Results:
    first, other = (system.experiment for system in results.compared[:2])
    records = [
        {"experiment": name, "metric": metric, "k": 10, "bins": bins}
        for name, bins in ((first, LOW), (other, HIGH), ("unknown", HIGH))
        for metric in ("ndcg", "exposure")
    ]
    return replace(results, spreads=tuple(records))


def test_curves_are_shares_of_users_up_to_each_edge(real: Results) -> None:
    chart = users.chart(with_distributions(real))
    ndcg, exposure = chart.panels
    assert isinstance(ndcg, Panel)
    assert isinstance(exposure, Panel)
    first, other = (system.label for system in real.compared[:2])
    assert [(series.name, [(point.x, point.y) for point in series.points]) for series in ndcg.series] == [
        (first, [(0.0, 0.0), (0.1, pytest.approx(0.75)), (0.2, 1.0)]),
        (other, [(0.0, 0.0), (0.1, 0.25), (0.3, 0.25), (0.4, pytest.approx(0.75)), (0.6, 1.0)]),
    ]
    assert (ndcg.x_label, exposure.x_label) == ("NDCG@10", "exposure@10")
    assert chart.finding == f"half have NDCG of at most 0.4 with {other}, 0.1 with {first}"


def test_no_two_systems_look_alike(every: Results) -> None:
    records = [{"experiment": system.experiment, "metric": "ndcg", "k": 10, "bins": LOW} for system in every.compared]
    (panel,) = users.chart(replace(every, spreads=tuple(records))).panels
    assert isinstance(panel, Panel)
    looks = {(series.colour, series.sign) for series in panel.series}
    assert len(looks) == len(panel.series) == len(every.compared) > 7


def test_results_that_lack_it_have_no_such_section(real: Results) -> None:
    assert not any(users.section(replace(real, spreads=())).blocks)
