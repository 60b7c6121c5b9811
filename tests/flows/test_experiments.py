"""DVC's own experiments, as docs/running.md has them, on a small project."""

import csv
import io

import pytest

from tests.flows.conftest import Project


@pytest.mark.slow
def test_an_experiment_changes_a_parameter_runs_what_that_touches_and_can_be_taken_back(project: Project) -> None:
    assert project.dvc("repro", "-q", "report@demo") == 0
    for command in ("add -A", "commit -qm first"):
        assert project.call("git", *command.split()).returncode == 0
    project.ran()
    done = project.call("dvc", "exp", "run", "-n", "other", "-S", "suites/demo/params.yaml:title=Other", "report@demo")
    assert done.returncode == 0, done.stderr
    assert project.ran() == ["report@demo"]
    text = project.call("dvc", "exp", "show", "--csv", "--drop", "^(?!Experiment$|rev$|.*title)").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    titles = {row["Experiment"] or row["rev"]: row["title"] for row in rows}
    assert titles.pop("workspace") == titles.pop("other") == "Other"
    assert list(titles.values()) == ["Demo on synthetic data"]  # of the commit
    assert project.call("dvc", "exp", "remove", "other").returncode == 0
    assert project.call("git", "checkout", ".").returncode == 0
    assert project.dvc("status", "-q") == 0
