"""`make clean` keeps what is dear; `make distclean` says what it costs, and asks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK = """schema: '2.0'
stages:
  train@demo-bpr:
    cmd: python -m tasks.stages.train demo-bpr
    deps:
    - path: data/processed/demo
      hash: md5
      md5: 00000000000000000000000000000000.dir
    outs:
    - path: data/runs/demo/demo-bpr/train
      hash: md5
      md5: aa111111111111111111111111111111.dir
  train@demo-gcn:
    cmd: python -m tasks.stages.train demo-gcn
    outs:
    - path: data/runs/demo/demo-gcn/train
      hash: md5
      md5: bb222222222222222222222222222222.dir
  train@demo-ease:
    cmd: python -m tasks.stages.train demo-ease
    outs:
    - path: data/runs/demo/demo-ease/train
      hash: md5
      md5: cc333333333333333333333333333333.dir
  collect@demo:
    cmd: python -m tasks.stages.collect demo
    outs:
    - path: data/results/demo/results.json
      hash: md5
      md5: dd444444444444444444444444444444
"""
CHEAP = (
    "data/reports/demo/index.html",
    "data/quality/raw/demo/index.html",
    ".mypy_cache/x",
    ".venv-library/x",
    "dprec/__pycache__/x.pyc",
    "tasks/__pycache__/x.pyc",
)
DEAR = (
    ".axe/node_modules/axe-core/axe.min.js",
    ".dvc/cache/files/md5/bb/222222222222222222222222222222.dir",
    "data/raw/ml-100k/u.data",
    "data/embeddings/x",
    "data/aligned/x",
    "data/runs/demo/demo-bpr/train/metrics.parquet",
    "data/checkpoints/x",
    "data/provenance/train/demo-gcn.json",
)
KEPT = ("data/placed/tmall.zip", "data/results/demo/results.json", "data/results/demo/provenance.json", ".venv/x")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (*CHEAP, *DEAR, *KEPT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    for name in ("Makefile", "flows/__init__.py", "flows/cost.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "suites/demo").mkdir(parents=True)
    (tmp_path / "suites/demo/dvc.lock").write_text(LOCK)
    (tmp_path / "tests").mkdir()
    committed = {"runs": [{"stage": "train", "name": "demo-bpr", "seconds": 7200.0}], "machines": []}
    (tmp_path / "data/results/demo/provenance.json").write_text(json.dumps(committed))
    own = {"stage": "train", "name": "demo-gcn", "seconds": 720.0}
    (tmp_path / "data/provenance/train/demo-gcn.json").write_text(json.dumps(own))
    return tmp_path


def make(project: Path, *arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", f"PYTHON={sys.executable}", *arguments]
    by_hand = {name: value for name, value in os.environ.items() if name != "DVC_SITE_CACHE_DIR"}
    return subprocess.run(command, cwd=project, input=answer, capture_output=True, text=True, check=False, env=by_hand)


def left(project: Path) -> set[str]:
    return {name for name in (*CHEAP, *DEAR, *KEPT) if (project / name).exists()}


def test_clean_removes_what_is_cheap_and_keeps_what_is_dear(project: Path) -> None:
    assert make(project, "clean").returncode == 0
    assert left(project) == {*DEAR, *KEPT}


@pytest.mark.parametrize("answer", ["", "no\n", "y\n"])
def test_distclean_removes_nothing_unless_told_so(project: Path, answer: str) -> None:
    made = make(project, "distclean", answer=answer)
    assert made.returncode != 0
    assert "nothing was removed" in made.stderr
    assert left(project) >= {*DEAR, *KEPT}


@pytest.mark.parametrize(("arguments", "answer"), [(["YES=1"], ""), ([], "yes\n")])
def test_distclean_says_what_it_costs_and_keeps_what_was_placed(
    project: Path, arguments: list[str], answer: str
) -> None:
    """One experiment is in its place, one in DVC's cache, one nowhere; the results of collect are in git."""
    made = make(project, "distclean", *arguments, answer=answer)
    assert made.returncode == 0, made.stderr
    assert "  demo: 2 experiments; at least 2.2 hours\n" in made.stdout
    assert " MB  .dvc/cache\n" in made.stdout
    assert left(project) == set(KEPT)


def test_checks_count_by_their_records_which_lie_deeper(project: Path) -> None:
    check = """  check-recommendations@demo-bpr:
    cmd: python -m tasks.stages.check recommendations/demo-bpr
    outs:
    - path: data/quality/recommendations/demo-bpr.json
      hash: md5
      md5: ee555555555555555555555555555555
"""
    (project / "suites/demo/dvc.lock").write_text(LOCK + check)
    for folder, content in (
        ("quality", {}),
        ("provenance/check", {"stage": "check", "name": "recommendations/demo-bpr", "seconds": 1800.0}),
    ):
        place = project / "data" / folder / "recommendations/demo-bpr.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(content))
    assert "  demo: 2 experiments, 1 other stage; at least 2.7 hours\n" in make(project, "distclean").stdout


def test_what_is_not_on_record_is_said_to_be_unknown(project: Path) -> None:
    (project / "data/results/demo/provenance.json").unlink()
    assert "at least 0.2 hours for the 1 of them whose time is on record" in make(project, "distclean").stdout
    shutil.rmtree(project / "data/provenance")
    assert "how long they took is not on record" in make(project, "distclean").stdout


def test_where_nothing_is_there_nothing_is_said_to_be_lost(project: Path) -> None:
    make(project, "distclean", "YES=1")
    assert make(project, "distclean", "YES=1").stdout.startswith("nothing is there to remove")


def test_regenerating_a_suite_removes_nothing_that_other_suites_have() -> None:
    recipe = subprocess.run(["make", "-n", "regenerate", "SUITE=demo"], cwd=ROOT, capture_output=True, text=True)
    [removal] = [line for line in recipe.stdout.splitlines() if line.startswith("rm ")]
    assert removal.partition("#")[0].split()[2:] == ["data/runs/demo", "data/checkpoints/demo"]
