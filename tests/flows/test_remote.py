"""What one clone computed and pushed, another one pulls instead of computing it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.conftest import Project


@pytest.mark.slow
def test_a_second_clone_with_the_remote_runs_nothing_again(finished: Project, tmp_path: Path, address: str) -> None:
    def dvc(project: Project, *arguments: str) -> str:
        result = project.call(sys.executable, "-m", "dvc", *arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    dvc(finished, "remote", "add", "--default", "storage", str(tmp_path / "storage"))
    dvc(finished, "push", "--with-deps", "report@demo")
    for command in (["add", "-A"], ["commit", "-q", "-m", "results"], ["clone", "-q", ".", str(tmp_path / "clone")]):
        subprocess.run(["git", *command], cwd=finished.root, check=True, capture_output=True)

    clone = Project(tmp_path / "clone")
    assert not (clone.root / "data/reports").exists()
    dvc(clone, "pull", "--with-deps", "report@demo")
    assert (clone.root / "data/reports/demo/index.html").read_text() == "report@demo"
    assert "up to date" in dvc(clone, "repro")
    result = clone.run("demo", PREFECT_API_URL=address)
    assert result.returncode == 0
    assert all(line.endswith("cached") for line in result.stdout.splitlines()[:-1])
    assert clone.ran() == []
