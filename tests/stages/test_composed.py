"""All suites on a data set together: committed results of two suites of one download, and of one of another."""

from pathlib import Path

import pytest

from tasks.reporting.core import units
from tasks.stages.common import RESULTS
from tasks.stages.composed import rows

ROOT = Path(__file__).parents[2]


def test_suites_of_one_download_are_composed_and_others_stand_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RESULTS).mkdir(parents=True)
    for name in ("demo", "dipsgnn-yelp-twin"):
        (tmp_path / RESULTS / name).symlink_to(ROOT / RESULTS / name)
    (tmp_path / RESULTS / "demo-again").symlink_to(ROOT / RESULTS / "demo")
    for name in ("params.yaml", "suites", "data/reference"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    composed = list(rows())
    assert {row[:2] for row in composed} == {("demo", "demo, demo-again"), ("yelp-twin", "dipsgnn-yelp-twin")}
    counts = next(row for row in composed if row[0] == "demo" and row[3] == units.USER)
    given = "given the configuration and the epoch"
    # Three seeds of dp-popularity and of dpae, whose fits both suites name alike: one relation in other words.
    # In brackets: those of one interaction (dpmf-rigorous) and those that claim an ε and have ∞ (dpmf, dpne, and the
    # loss of gerai and gerai-nl), three seeds of each.
    assert counts[4:] == ("6 (+ 15)", "1", f"4.467, δ = 0.003, {given}, of 6 of 21 releases")
