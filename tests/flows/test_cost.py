"""`make clean` keeps what is dear; `make distclean` says what it costs, and asks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import ROOT

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
    (tmp_path / "tests").mkdir()
    for stage, name, seconds in (
        ("train", "demo-gcn", 720.0),
        ("train", "demo-bpr", 7200.0),
        ("check", "raw/x", 360.0),
    ):
        record = tmp_path / f"data/provenance/{stage}/{name}.json"
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({"stage": stage, "name": name, "seconds": seconds}))
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
    made = make(project, "distclean", *arguments, answer=answer)
    assert made.returncode == 0, made.stderr
    assert "      2.20 hours  train\n      0.10 hours  check\n" in made.stdout
    assert " MB  .dvc/cache\n" in made.stdout
    assert left(project) == set(KEPT)


def test_what_a_link_leads_to_is_kept_and_not_counted(project: Path) -> None:
    (project / "elsewhere").mkdir()
    (project / "elsewhere/x").write_bytes(bytes(10**6))
    (project / "data/reports/linked").symlink_to(project / "elsewhere")
    shutil.rmtree(project / "data/runs")
    (project / "data/runs").symlink_to(project / "elsewhere")
    assert "         0.0 MB  data/runs\n" in make(project, "distclean", "YES=1").stdout
    assert (project / "elsewhere/x").exists()


def test_regenerating_a_suite_removes_nothing_that_other_suites_have() -> None:
    recipe = subprocess.run(["make", "-n", "regenerate", "SUITE=demo"], cwd=ROOT, capture_output=True, text=True)
    [removal] = [line for line in recipe.stdout.splitlines() if line.startswith("rm ")]
    assert removal.partition("#")[0].split()[2:] == ["data/runs/demo", "data/checkpoints/demo"]


@pytest.mark.parametrize(("compared", "pushed"), [(0, True), (2, True), (1, False)])
def test_a_night_ends_with_a_push_unless_numbers_differ(project: Path, compared: int, pushed: bool) -> None:
    (project / ".venv/bin").mkdir(parents=True)
    for program in ("dprec", "dvc"):
        script = f'#!/bin/sh\necho {program} "$@" >> called\n[ "$1" != compare ] || exit {compared}\n'
        (project / ".venv/bin" / program).write_text(script)
        (project / ".venv/bin" / program).chmod(0o755)
    assert (make(project, "--old-file=env", "nightly", "DVC_REMOTE=remote").returncode == 0) == pushed
    assert ("dvc push" in (project / "called").read_text()) == pushed
