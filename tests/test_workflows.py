"""What the workflows do on GitHub that a test can try; `python -m tests.workflow_steps` runs all that can run here."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests import workflow_steps
from tests.command import git
from tests.parameters import ROOT

EMPTY = "| Path | Metric | HEAD~1 | workspace | Change |\n|------|--------|--------|-----------|--------|\n\n"
"""What `dvc metrics diff --md` writes where nothing differs."""
ROW = "| data/results/demo/summary.json | utility.popularity | 0.1 | 0.2 | 0.1 |\n"


@pytest.mark.parametrize(("table", "comments"), [(EMPTY, False), (EMPTY.rstrip() + "\n" + ROW, True)])
def test_a_pull_request_is_told_of_headline_numbers_that_differ_and_of_nothing_else(
    table: str, comments: bool, tmp_path: Path
) -> None:
    steps = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["headline"]["steps"]
    (tmp_path / "headline.md").write_text(table)
    (tmp_path / "gh").write_text('#!/bin/sh\necho "$@" > called\n')
    (tmp_path / "gh").chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "NUMBER": "7"}
    subprocess.run(["bash", "-e", "-c", steps[-1]["run"]], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "called").exists() == comments


def test_the_steps_of_a_workflow_run_in_a_fresh_clone_but_for_those_that_need_github(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    matrix = {"strategy": {"matrix": {"suite": ["demo", "gerai"]}}, "env": {"WHO": "${{ matrix.suite }}"}}
    wants = {"run": "echo never", "env": {"KEY": "${{ secrets.KEY }}"}}
    steps = [{"uses": "actions/checkout@v4"}, {"run": "touch made; echo $WHO"}, wants, {"run": "ls; false; echo never"}]
    (tmp_path / "w.yml").write_text(yaml.safe_dump({"jobs": {"one": matrix | {"steps": steps}}}))
    monkeypatch.chdir(tmp_path)
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        git(tmp_path, *command)
    assert workflow_steps.main(["w.yml"]) == 1
    left, _, demo, _, secret, _, made, file, failed = capfd.readouterr().out.splitlines()
    assert (left, demo) == ("one: left out: uses actions/checkout@v4", "demo")
    assert secret == "one: left out for want of ['secrets.KEY']: echo never"
    assert (made, file, failed[:22]) == ("made", "w.yml", "one: exit code 1 after")
    assert not (tmp_path / "made").exists()
    assert workflow_steps.main(["w.yml", "one", "--set", "secrets.KEY=k", "--set", "matrix.suite=gerai"]) == 1
    assert {"gerai", "never"} <= set(capfd.readouterr().out.splitlines())
