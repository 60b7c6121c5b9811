"""Units of a running stage on cores that are idle: who works on what, and what becomes of failures."""

import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows import units, warm
from flows.execution import StageFailed
from tasks.stages.units import WORK
from tests.flows.conftest import ROOT, Project, wait_until
from tests.flows.shared import ALL, go_when, result, shared_template, worked
from tests.flows.test_pipeline import regenerate, task_runs

pytestmark = pytest.mark.slow

__all__ = ["regenerate", "shared_template"]


@pytest.fixture
def sharing(shared_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """That project, with the test in its folder; processes start cold, and every unit is worth one."""
    monkeypatch.chdir(shutil.copytree(shared_template, tmp_path / "project"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(units, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(warm, "has_ended", lambda: True)
    monkeypatch.setattr(warm, "prepare", lambda: None)
    return Project(Path.cwd())


def test_idle_cores_work_on_the_last_units_of_a_running_stage(
    sharing: Project, regenerate: Callable[..., Any], address: str
) -> None:
    go_when(sharing, 3)
    regenerate("demo", jobs=3)
    done = list(worked(sharing))
    assert done[0][0] == "s"
    assert {label for label, *_ in done[1:3]} == {"w", "x"}
    assert sorted(label for label, *_ in done) == list("svwx"), "each once"
    assert result(sharing) == ALL
    runs = task_runs(address)
    assert {"train@a w", "train@a x"} <= runs.keys()
    assert {run["state_name"] for run in runs.values()} == {"Completed", "Cached"}
    for name in ("units.log", "go"):
        (sharing.root / name).unlink()
    go_when(sharing, 2)
    regenerate("demo", jobs=2, force=True)
    assert sorted(label for label, *_ in worked(sharing)) == list("svwx"), "each once again"
    assert len({process for _, process, _ in worked(sharing)}) > 1


def test_with_one_job_a_stage_works_alone(sharing: Project, regenerate: Callable[..., Any], address: str) -> None:
    go_when(sharing, 1)
    regenerate("demo", jobs=1)
    assert [label for label, *_ in worked(sharing)] == list("svwx")
    assert len({process for _, process, _ in worked(sharing)}) == 1
    assert not [name for name in task_runs(address) if " " in name]


def test_a_unit_that_fails_fails_its_stage_with_its_reason(sharing: Project, regenerate: Callable[..., Any]) -> None:
    sharing.write("fail.x", "")
    go_when(sharing, 2)
    with pytest.raises(StageFailed, match=r"^train@a failed: u\.data:7: rating 6 is not in 1\.\.5$"):
        regenerate("demo", jobs=2)


def test_a_unit_that_is_killed_is_left_to_its_stage(sharing: Project, regenerate: Callable[..., Any]) -> None:
    sharing.write("killed.x", "")
    go_when(sharing, 2)
    regenerate("demo", jobs=2)
    assert [label for label, *_ in worked(sharing)].count("x") == 2
    assert result(sharing) == ALL


def test_ctrl_c_ends_units_of_other_processes_too(sharing: Project, regenerate: Callable[..., Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def press() -> None:
        wait_until(lambda: len(list(worked(sharing))) >= 2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        regenerate("demo", jobs=2)
    for _, process, _ in worked(sharing):
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_every_stage_with_units_is_listed() -> None:
    with_units = {path.stem for path in (ROOT / "tasks/stages").glob("*.py") if "\nwork, main = " in path.read_text()}
    assert with_units == WORK.keys()
    assert set(WORK.values()) == {f"tasks.stages.{name}:work" for name in with_units}


def test_only_commands_of_stages_with_units_have_some() -> None:
    assert units.units_of("python -m tasks.stages.train gerai-bpr") == ("train", "gerai-bpr")
    for command in ("python -m tasks.stages.check raw/demo", "python -m train a", "python stage.py train@a out", ""):
        assert units.units_of(command) is None
