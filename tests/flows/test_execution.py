"""One stage at a time: what is seen of it, how it fails, how it is stopped, and that a project is held by one run."""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from flows import execution
from flows.dvc import open_project
from flows.execution import Busy, Processes, StageFailed, hold_project
from tasks.core.errors import ConfigurationError
from tests.flows.conftest import HOLDS_PROJECT, Project, holding, wait_for


@pytest.fixture(autouse=True)
def code_under_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")


DOWNLOAD = "python stage.py download@demo data/raw/demo"


def reproduce(address: str, *, force: bool = False) -> bool:
    with open_project() as project:
        return project.reproduce(address, lambda command: Processes().run(command, print), force=force)


@pytest.mark.parametrize("force", [False, True])
def test_a_forced_run_tells_its_stages_to_work_on_finished_units_again(inside: Project, force: bool) -> None:
    (inside.root / "stage.py").write_text("import os\nprint(os.environ.get('DPREC_FORCE'))\n")
    lines: list[str] = []
    Processes().run(DOWNLOAD, lines.append, force=force)
    assert lines == ["1" if force else "None"]


def test_a_stage_that_is_up_to_date_does_not_run_unless_forced(inside: Project) -> None:
    assert reproduce("download@demo")
    assert inside.ran() == ["download@demo"]
    assert not reproduce("download@demo")
    assert inside.ran() == []
    assert reproduce("download@demo", force=True)
    assert inside.ran() == ["download@demo"]


def test_what_ran_here_is_up_to_date_for_dvc_and_nothing_in_git_is_touched(inside: Project) -> None:
    for address in ("download@demo", "suites/demo/dvc.yaml:train@a", "suites/demo/dvc.yaml:train@b", "report@demo"):
        assert reproduce(address)
    assert inside.call("dvc", "status").stdout == "Data and pipelines are up to date.\n"
    status = inside.call("git", "status", "--porcelain").stdout.split()
    assert status == ["??", "dvc.lock", "??", "suites/demo/dvc.lock"]


def test_outputs_for_the_same_inputs_come_from_dvcs_cache(inside: Project) -> None:
    assert reproduce("download@demo")
    stage = (inside.root / "stage.py").read_text()
    inside.write("stage.py", stage + "# changed\n")
    assert reproduce("download@demo")
    inside.write("stage.py", stage)
    assert not reproduce("download@demo")
    assert inside.ran() == ["download@demo"] * 2
    assert inside.call("dvc", "status", "download@demo").stdout == "Data and pipelines are up to date.\n"


def test_what_changes_while_a_stage_runs_is_not_taken_for_what_it_read(inside: Project) -> None:
    def edited(command: str) -> None:
        Processes().run(command, print)
        inside.write("stage.py", (inside.root / "stage.py").read_text() + "# changed\n")

    with open_project() as project, pytest.raises(ConfigurationError, match=r"stage\.py: changed while the stage ran"):
        project.reproduce("download@demo", edited)
    assert "download@demo" in inside.call("dvc", "status").stdout
    assert reproduce("download@demo")


def test_other_dvc_commands_keep_off_what_a_running_stage_writes(inside: Project) -> None:
    inside.write("slow.download@demo", "60")
    processes = Processes()

    def run() -> None:
        with open_project() as project, pytest.raises(StageFailed):
            project.reproduce("download@demo", lambda command: processes.run(command, print))

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(inside.root / "started.download@demo")
    try:
        busy = inside.call("dvc", "repro", "download@demo")
        assert busy.returncode != 0
        assert "busy" in busy.stderr
    finally:
        processes.stop()
        thread.join(timeout=120)


@pytest.mark.usefixtures("inside")
def test_without_its_input_a_stage_fails_with_what_dvc_says() -> None:
    with pytest.raises(ConfigurationError, match="data/raw/demo"):
        reproduce("suites/demo/dvc.yaml:train@a")


def test_stages_run_with_this_interpreter_whatever_the_path_says(
    inside: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (inside.root / "stage.py").write_text("import sys\nprint(sys.prefix)\n")
    lines: list[str] = []
    Processes().run(DOWNLOAD, lines.append)
    assert lines == [sys.prefix]


def test_stopping_ends_the_stage_and_everything_it_started(inside: Project) -> None:
    inside.write("slow.download@demo", "60")
    processes = Processes()
    failures: list[str] = []

    def run() -> None:
        try:
            processes.run(DOWNLOAD, print)
        except StageFailed as error:
            failures.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(inside.root / "started.download@demo")
    (group,) = {process.pid for process in processes._running}
    start = time.monotonic()
    processes.stop()
    thread.join(timeout=120)
    assert time.monotonic() - start < execution.GRACE_SECONDS
    assert failures
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)
    with pytest.raises(StageFailed, match="stopped"):
        processes.run(DOWNLOAD, print)


def test_a_stage_whose_lines_nobody_takes_is_ended(inside: Project) -> None:
    inside.write("slow.download@demo", "300")
    stages: list[int] = []
    processes = Processes()

    def refuse(_: str) -> None:
        stages.extend(process.pid for process in processes._running)
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        processes.run(DOWNLOAD, refuse)
    assert stages
    assert not psutil.pid_exists(stages[0])


def test_a_closed_terminal_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    terminal = os.fdopen(writer, "w")
    monkeypatch.setattr(sys, "stdout", terminal)
    execution.say("train@a", "starts")
    with suppress(BrokenPipeError):
        terminal.close()


def test_progress_bars_leave_a_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "REFRESH_SECONDS", 3600.0)
    output = tmp_path / "output"
    output.write_bytes(b"first\r\n" + b"".join(b"%d%%\r" % i for i in range(100)) + b"\nlast \xff without an end")
    with output.open("rb") as stream:
        lines = [line for line in execution._lines(stream) if line]
    assert lines == ["first", "0%", "99%", "last \ufffd without an end"]


def test_a_second_run_is_refused_in_one_line_or_waits(inside: Project) -> None:
    waited: list[bool] = []

    def wait() -> None:
        with hold_project("suite demo", wait=True):
            waited.append(other.poll() is not None)

    with holding(HOLDS_PROJECT, inside.environment) as other:
        refused = pytest.raises(Busy, match=rf"suite gerai, process {other.pid}.*--wait")
        with refused, hold_project("suite demo"):
            pytest.fail("two runs hold the project")
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.5)
        assert not waited
        other.communicate("\n")
        thread.join(timeout=120)
    assert waited


def test_a_killed_run_does_not_hold_the_project(inside: Project) -> None:
    with holding(HOLDS_PROJECT, inside.environment) as other:
        other.send_signal(signal.SIGKILL)
    with hold_project("suite demo"), hold_project("suite demo, from within"):
        assert execution.LOCK.exists()
