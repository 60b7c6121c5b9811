"""The plan says what DVC would do, and why."""

import shutil

import pytest

from flows import plan
from flows.dvc import open_project
from flows.plan import Plan
from tasks.core.errors import ConfigurationError
from tests.flows.conftest import Project


def read(target: str = "report@demo") -> Plan:
    with open_project() as project:
        return plan.read(target, project)


@pytest.mark.usefixtures("inside")
def test_every_step_comes_after_what_it_needs_and_nothing_else_is_planned() -> None:
    todo = read("suites/demo/dvc.yaml:train@a")
    assert [step.name for step in todo.steps] == ["download@demo", "train@a"]
    assert [step.address for step in todo.steps] == ["download@demo", "suites/demo/dvc.yaml:train@a"]
    todo = read()
    assert {step.why for step in todo.steps} == {"first run"}
    names = [step.name for step in todo.steps]
    assert sorted(names) == ["download@demo", "report@demo", "train@a", "train@b"]
    for step in todo.steps:
        assert all(names.index(other) < names.index(step.name) for other in step.needs)
    with open_project("demo") as project:
        assert plan.read("report@demo", project) == todo
    with open_project() as project:
        assert [of_all.target for of_all in plan.read_all(project)] == ["report@demo"]


def test_after_a_run_a_changed_module_or_a_missing_output_runs_a_stage_again_and_those_after_it(
    finished: Project,
) -> None:
    assert ([*read().pending], {step.why for step in read().steps}) == ([], {"up to date"})
    finished.write("code/a.py", "# changed\n")
    why = {step.name: step.why for step in read().pending}
    assert why == {"train@a": "code/a.py changed", "report@demo": "after train@a"}
    finished.write("code/a.py", "")
    shutil.rmtree(finished.root / "data/runs/demo/b")
    pending = read().pending
    assert [step.name for step in pending] == ["train@b", "report@demo"]
    assert pending[0].why == "outputs missing"


def test_unknown_stages_and_broken_graphs_are_one_line(inside: Project) -> None:
    with pytest.raises(ConfigurationError, match="report@nope"):
        read("report@nope")
    inside.write("dvc.yaml", "stages:\n  a:\n    deps: [${x}]\n")
    with pytest.raises(ConfigurationError, match=r"dvc\.yaml.* at line 3"):
        read()
