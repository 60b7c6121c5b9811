"""The section on membership: every attack beside its controls and what ε allows, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.attacks.shadows import COLUMNS
from tasks.errors import DataError
from tasks.reporting import files
from tasks.reporting.core import drawing
from tasks.reporting.core.chart import Chart, Panel
from tasks.reporting.core.results import Results
from tasks.reporting.sections import membership, verdicts
from tasks.stages.papers import describe
from tests.reporting import example_next
from tests.reporting.example import ROOT

REFERENCE = ROOT / "data/reference/paper_tables.csv"

BASE: dict[str, Any] = dict.fromkeys(COLUMNS) | {"auc": 0.7, "auc_low": 0.6, "auc_high": 0.8, "shadows": 8}
BASE |= {"tpr1": 0.2, "tpr1_low": 0.1, "tpr1_high": 0.3, "target": "user", "seen": "scores", "attack": "LiRA"}


@pytest.fixture(scope="module")
def results() -> Results:
    """A suite of two systems without this attack."""
    return replace(example_next.results(), edges=None)


def attacked(results: Results, *rows: dict[str, Any]) -> Results:
    system = results.systems[0].experiment
    return replace(results, membership=pl.DataFrame([BASE | {"system": system} | row for row in rows], schema=COLUMNS))


def test_a_row_for_every_attack_and_a_table_for_every_kind_of_target(results: Results) -> None:
    bounds = {"epsilon": 1.0, "delta": 0.0, "allowed": 0.027, "proved": 2.0, "provable": 2.5, "refuted": True}
    reported = attacked(
        results,
        {"seen": "nothing", "attack": "length of the history", "shadows": 0},
        {"attack": "RMIA"} | bounds,
        {"target": "interaction", "auc_low": 0.49},
    )
    tables, _ = membership.section(reported).blocks
    of_users, of_pairs = (table for table in tables if table is not None)
    attacks = [[cell.text for cell in row.cells] for row in of_users.rows]
    assert [row[0] for row in attacks] == ["RMIA", "length of the history"]  # controls last
    assert [row[6:] for row in attacks] == [["0.027", "1.000", "2.000"], ["–"] * 3]
    assert [row.cells[-1].lines for row in of_users.rows] == [("at most 2.500",), ()]
    assert [["found" in cell.kind for cell in row.cells] for row in of_users.rows] == [
        [False] * 3 + [True] + [False] * 4 + [True],
        [False] * 9,
    ]
    assert len(of_pairs.rows) == 1
    assert not any("found" in cell.kind for cell in of_pairs.rows[0].cells)


def test_without_the_attack_there_is_no_table_and_nothing_to_keep(results: Results) -> None:
    assert membership.section(results).blocks in ([], [[], []])
    with pytest.raises(DataError, match="membership was not attacked"):
        membership.frame(results)


def test_the_roc_of_every_system_is_drawn_on_logarithmic_axes(results: Results) -> None:
    curve = {"fpr": [0.0, 0.005, 1.0], "tpr": [0.1, 0.2, 1.0]}
    names = [system.experiment for system in results.systems]
    rows = [{"system": name, "seen": seen} | curve for name in names for seen in ("lists", "scores")]
    _, (chart,) = membership.section(attacked(results, *rows, {"attack": "RMIA"} | curve)).blocks
    assert isinstance(chart, Chart)
    assert [panel.title for panel in chart.panels] == ["lists", "scores of all items"]
    for panel in chart.panels:
        assert isinstance(panel, Panel)
        assert (panel.log, panel.identity, len(panel.series)) == (True, True, len(names))
        assert [(point.x, point.y) for point in panel.series[0].points] == [(0.005, 0.1), (0.005, 0.2), (1.0, 1.0)]
        assert "<svg" in drawing.svg(panel)


def test_systems_of_another_suite_are_refused(results: Results) -> None:
    with pytest.raises(DataError, match="strange is no experiment of suite"):
        membership.section(attacked(results, {"system": "strange"}))


def test_what_is_kept_is_sorted_and_reads_back(results: Results, tmp_path: Path) -> None:
    reported = attacked(results, {"attack": "RMIA"}, {"attack": "LiRA", "fpr": [0.0, 1.0]}, {"target": "interaction"})
    kept = membership.frame(reported)
    assert kept["attack"].to_list() == ["LiRA", "LiRA", "RMIA"]
    files.write(reported, tmp_path, kept)
    again = files.read(tmp_path, REFERENCE, describe)
    assert again.membership is not None
    assert again.membership.equals(kept)
    assert again.edges is None


def test_attacks_that_chance_explains_are_no_alarm_on_the_first_screen(results: Results) -> None:
    """Three of 48 intervals were one: of suites that leak nothing every seventh has so many, as attacks share coins."""
    null, lucky = {"auc": 0.5, "auc_low": 0.45}, {"auc": 0.56, "auc_low": 0.505}
    for won, sure, alarm in ((3, 0, False), (3, 1, True)):
        rows = [lucky] * (won - sure) + [{"auc": 0.6, "auc_low": 0.56}] * sure + [null] * (48 - won)
        text, alarmed = membership.verdict(attacked(results, *rows), "user") or ("", None)
        assert text.startswith("3 of 48 attacks tell whether one user was trained on; chance gives about 1. ")
        assert alarmed is alarm


def test_the_first_screen_says_how_many_attacks_succeed_and_which_most(results: Results) -> None:
    lost = {"auc_low": 0.49, "tpr1": 0.9}
    reported = attacked(
        results, *[{}, {"tpr1": 0.25, "auc": 0.8}, lost, {"seen": "nothing"}], {"target": "interaction"} | lost
    )
    lines = {line.text: line.alarm for line in verdicts.verdicts(reported, [], 10) if line.topic == "Membership"}
    label = results.systems[0].label
    assert lines == {
        "2 of 3 attacks tell whether one user was trained on; chance gives about 0. "
        f"Most: {label} (AUC 0.80, true positives 0.25 at 1 % false ones).": True,
        "0 of 1 attacks tell whether one interaction was trained on; chance gives about 0.": False,
    }
    assert all(line.topic != "Membership" for line in verdicts.verdicts(results, [], 10))
