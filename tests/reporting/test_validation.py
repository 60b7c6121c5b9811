"""Validation by epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tasks.models.user_networks.crosue import CroGCNConfig
from tasks.models.user_networks.rgcn import RGCNConfig
from tasks.reporting.core import figures, plots
from tasks.reporting.core.results import BASE, Results
from tasks.reporting.sections import validation
from tasks.stages.collect import cut_off
from tests.reporting import example_next


def test_a_curve_is_the_mean_over_seeds_as_far_as_all_went() -> None:
    results = example_next.results(full=False)
    system = results.find("sasrec")
    assert system is not None
    history = {BASE: {"0": _epochs(0.1, 0.3, 0.5), "1": _epochs(0.3, 0.5)}}
    changed = replace(system, history=history)
    results = replace(results, systems=tuple(changed if other is system else other for other in results.systems))
    first, second = validation.chart(results).panels
    line = next(series for series in first.series if series.name == "sasrec")
    assert [(point.x, point.y) for point in line.points] == [(1, pytest.approx(0.2)), (2, pytest.approx(0.4))]
    assert {series.name for series in second.series} == {"bprmf", "lightgcn", "dpmf-implicit", "dpmf-explicit"}
    table = validation.seconds(results)
    assert table is not None
    row = next(row for row in table.rows if row.name == "sasrec")
    assert [cell.text for cell in row.cells] == ["2 to 3", "2.00", "20"]  # the provenance has the seconds


def test_systems_without_epochs_have_no_curve(every: Results) -> None:
    (panel,) = validation.chart(every).panels
    names = {series.name for series in panel.series}
    assert "gerai" in names
    assert not {"popularity", "dp-popularity"} & names
    assert panel.title == "validation NDCG"
    assert validation.chart(replace(every, validation="NDCG@10")).panels[0].title == "validation NDCG@10"


def test_nothing_trained_by_epochs_is_nothing_told(every: Results) -> None:
    bare = replace(every, systems=tuple(replace(system, history={}) for system in every.systems))
    assert not validation.chart(bare).panels
    assert validation.seconds(bare) is None


def test_collect_reads_which_runs_were_cut_off() -> None:
    short, done = [{"epoch": 1, "cut_off": True}], [{"epoch": 1}, {"epoch": 2, "cut_off": False}]
    history = {BASE: {"0": short, "1": done}, "epsilon=0.1": {"0": done}, "k=5": {"0": []}}
    assert cut_off(history) == {BASE: (0,)}


def test_runs_that_their_cap_ended_are_named(every: Results) -> None:
    assert not any(system.cut_off for system in every.systems)
    assert "Validation ended every training run" in str(validation.ended(every))
    cut = tuple(replace(s, cut_off={BASE: (0,)}) if s.name == "gerai" else s for s in every.systems)
    text = str(validation.ended(replace(every, systems=cut)))
    assert "not by validation: gerai (base: 1 of " in text
    assert text in str(validation.section(replace(every, systems=cut), 10).blocks)
    gerai = next(system for system in every.systems if system.name == "gerai")
    few = replace(gerai, cut_off={"epsilon=0.1": (0,)}, parameters=gerai.parameters | {"sweep_seeds": 1})
    assert "gerai (epsilon=0.1: 1 of 1 seeds)" in str(validation.ended(replace(every, systems=(few,))))


def test_runs_that_end_no_better_than_zero_vectors_are_named(every: Results) -> None:
    """Each network counts by its last epoch, two that are embedded together twice; other models have other losses."""
    assert RGCNConfig.model_fields["negatives"].default == validation.NEGATIVES
    assert CroGCNConfig.model_fields["negatives"].default == validation.NEGATIVES
    begun, learnt = ({"epoch": n, "loss": loss, "network": "a"} for n, loss in ((1, 5.0), (2, 1.2)))
    nothing, joint = ({"epoch": 2, "loss": loss, "network": network} for loss, network in ((1.4, "b"), (2.7, "both")))
    history = {BASE: {"0": [begun, learnt, nothing], "1": [begun, learnt], "2": [joint]}}
    system = replace(every.systems[0], history=history, seeds=(0, 1, 2))

    def text(**parameters: object) -> str:
        about = system.parameters | {"config": {}} | parameters
        return str(validation.unlearnt(replace(every, systems=(replace(system, parameters=about),))))

    alone = {"config": {}}
    assert validation.unlearnt(every) is None
    assert text() == "None"
    assert "that of zero vectors: popularity (base: 1 of 3 seeds)" in text(embeddings=alone)
    assert "(base: 1 of 3 seeds)" in text(embeddings=alone, aligned={}, config={"negatives": 1})
    assert text(embeddings=alone, aligned={}, config={"negatives": 5}) == "None"
    joint |= {"loss": 9.0, "friendships": 2.7}  # the rest is of anchors
    assert "(base: 1 of 3 seeds)" in text(embeddings=alone, aligned={})


def test_networks_that_are_embedded_one_by_one_have_curves_and_epochs_of_their_own(every: Results) -> None:
    records = [{"epoch": n, "loss": 1.0 / n, "network": network} for network in ("a", "b") for n in (1, 2)]
    system = replace(every.systems[0], history={BASE: {"0": records}}, seeds=(0,))
    results = replace(every, systems=(system,))
    assert plots.curves(results).select("system", "step").rows() == [
        (f"popularity, {network}", step) for network in ("a", "b") for step in (1, 2)
    ]
    assert "at most 2 epochs" in str(figures.training(results))
    table = validation.seconds(results)
    assert table is not None
    assert table.rows[0].cells[0].text == "2"


def _epochs(*values: float) -> list[dict]:
    return [{"epoch": n, "loss": 1.0, "valid": value} for n, value in enumerate(values, 1)]
