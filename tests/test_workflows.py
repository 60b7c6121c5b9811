"""What the workflows do on GitHub that can be tried here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
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
