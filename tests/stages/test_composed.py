"""All suites on a data set together: committed results of two suites of one download, and of one of another."""

import shutil
from pathlib import Path

import pytest

from tasks.reporting.core import units
from tasks.stages.common import RESULTS
from tasks.stages.composed import compose

ROOT = Path(__file__).parents[2]


def test_suites_of_one_download_are_composed_and_others_stand_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RESULTS).mkdir(parents=True)
    for name in ("demo", "dipsgnn-yelp-twin"):
        (tmp_path / RESULTS / name).symlink_to(ROOT / RESULTS / name)
    shutil.copytree(ROOT / RESULTS / "demo", tmp_path / RESULTS / "demo-again")
    header, trial = "experiment,config", "demo-bpr,{}\n"
    (tmp_path / RESULTS / "demo-again" / "tuning.csv").write_text(f"{header}\n{7 * trial}not-there,{{}}\n")
    for name in ("params.yaml", "suites", "data/reference"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    composed, notes = compose()
    assert {row[:2] for row in composed} == {("demo", "demo, demo-again"), ("yelp-twin", "dipsgnn-yelp-twin")}
    counts = next(row for row in composed if row[0] == "demo" and row[3] == units.USER)
    given = "given the configuration and the epoch and the bounds of numeric features"
    # Three seeds of dp-popularity and of dpae, whose fits both suites name alike: one relation in other words. Three
    # releases of counts of a user's ratings, with ε = 20 each.
    # In brackets: those of one interaction (dpmf-rigorous) and those that claim an ε and have ∞ (dpmf, dpne, and the
    # loss of gerai and gerai-nl), three seeds of each.
    names = "demo-dpmf-rigorous, demo-dpne, demo-dpmf, demo-gerai and demo-gerai-nl"
    assert counts[4:] == ("9 (+ 15)", "1", f"63.73, δ = 0.003, {given}, of 9 of 24 releases; left out: {names}")
    (clear,) = (note for note in notes if note.startswith("demo: "))
    assert "demo-bpr" in clear
    assert "demo-dp-popularity" not in clear
    assert "7 tuning trials of demo-again" in clear
