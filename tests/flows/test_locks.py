"""DVC's locks: owners that are gone hold nothing, those that run are waited for or named."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil
import pytest

from flows import locks
from flows.locks import Busy
from flows.project import Project as Opened
from flows.project import open_project
from tests.flows.conftest import Project
from tests.flows.test_execution import wait_for

pytestmark = pytest.mark.slow

TRAIN = "suites/demo/dvc.yaml:train@a"


def lock(project: Project, pid: int, command: str = "dvc repro") -> Path:
    """A file of locks in which somebody else writes what train@a writes, and reads its inputs."""
    path = project.root / ".dvc/tmp/rwlock"
    info = {"pid": pid, "cmd": command}
    written = {str(project.root / "data/runs/demo/a"): info}
    path.write_text(json.dumps({"write": written, "read": {str(project.root / "data/raw/demo"): [info]}}))
    return path


def run(opened_project: Opened) -> list[str]:
    """What runs when train@a is brought up to date."""
    ran: list[str] = []

    def command(line: str) -> None:
        ran.append(line)
        subprocess.run(line, shell=True, check=True)

    opened_project.reproduce(TRAIN, command)
    return ran


def holding(project: Opened) -> AbstractContextManager[None]:
    """What train@a reads and writes, held as while it runs."""
    stage = project.stages[TRAIN]
    return project._hold(TRAIN, stage.deps, stage.outs)


@pytest.fixture
def changed(finished: Project) -> Project:
    """The finished project, in which train@a must run."""
    finished.write("code/a.py", "# changed\n")
    return finished


@contextmanager
def zombie() -> Iterator[int]:
    """A process that ended and that nobody has asked how."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    yield process.pid
    process.wait()


def test_a_dead_owner_holds_nothing(changed: Project) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    lock(changed, process.pid)
    with open_project(patient=False) as project:
        assert run(project)


def test_a_zombie_holds_nothing(changed: Project) -> None:
    with zombie() as pid:
        lock(changed, pid)
        with open_project(patient=False) as project:
            assert run(project)


def test_an_id_that_a_later_process_has_holds_nothing(changed: Project) -> None:
    path = lock(changed, os.getppid())
    os.utime(path, (0, 0))  # written before this process started
    with open_project(patient=False) as project:
        assert run(project)


def test_an_id_that_another_program_has_holds_nothing(changed: Project) -> None:
    with sleeping("dvd") as process:  # started before the file was last written
        lock(changed, process.pid, f"{sys.executable} repro")
        with open_project(patient=False) as project, pytest.raises(Busy):
            run(project)  # of other programs nothing is known
        lock(changed, process.pid, "/somewhere/bin/dvc repro")
        with open_project(patient=False) as project:
            assert run(project)


def test_an_owner_of_ours_is_known_by_its_start(changed: Project) -> None:
    command = "dprec run demo"
    with sleeping("dprec") as process:
        start = psutil.Process(process.pid).create_time() - psutil.boot_time()
        for recorded, holds in ((start, True), (start - 60, False)):
            path = lock(changed, process.pid, command)
            path.with_name(locks.STARTS).write_text(json.dumps({f"{process.pid} {command}": recorded}))
            with open_project(patient=False) as project:
                if holds:
                    with pytest.raises(Busy, match=rf"^train@a: held by process {process.pid} \({command}\)"):
                        run(project)
                else:
                    assert run(project)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((locks.FILES, content) for content in ("", "[]", "\0\xff", '{"read": {"/x": {"pid": 1}}}')),
        *((locks.STARTS, content) for content in ("", '{"1 dvc": "x"}')),
    ],
)
def test_a_damaged_file_of_locks_is_nobodys(changed: Project, name: str, content: str) -> None:
    (changed.root / ".dvc/tmp" / name).write_text(content, "latin-1")
    with open_project(patient=False) as project:
        assert run(project)


def test_a_file_of_locks_that_is_damaged_while_a_stage_runs_does_not_fail_it(changed: Project) -> None:
    with open_project(patient=False) as project, holding(project):
        (changed.root / ".dvc/tmp/rwlock").write_text("{")
    with open_project(patient=False) as project:
        assert run(project)


def test_the_end_of_a_live_owner_is_waited_for(changed: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with sleeping("dvc") as process:
        lock(changed, process.pid)
        threading.Timer(1.0, process.kill).start()
        with open_project() as project:
            assert run(project)
            assert process.poll() is not None
    waiting = [line for line in capsys.readouterr().out.splitlines() if "waits for" in line]
    assert len(waiting) == 1
    assert waiting[0].split() == ["train@a", "waits", "for", "process", str(process.pid), "(dvc", "repro)"]


def test_a_run_that_is_stopped_waits_for_nobody(changed: Project) -> None:
    with sleeping("dvc") as process:
        lock(changed, process.pid)
        with open_project() as project:
            threading.Timer(0.5, project.stopped.set).start()
            with pytest.raises(Busy, match="held by process"):
                run(project)


def test_dvcs_lock_of_the_project_is_waited_for_or_its_holder_named(finished: Project) -> None:
    hold = "from dvc.repo import Repo\nwith Repo().lock:\n print(1, flush=True)\n input()"
    process = subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=finished.environment, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    with open_project(patient=False) as project, pytest.raises(Busy, match=f"held by process {process.pid} "):
        project.changes(project.stages[TRAIN])
    threading.Timer(1.0, process.communicate, ["\n"]).start()
    with open_project() as project:
        assert not project.changes(project.stages[TRAIN])
    process.wait()


def test_a_check_beside_a_running_stage_ends_well(changed: Project) -> None:
    """Running stages hold what they read; a plan only looks."""
    with open_project() as project, holding(project):
        checked = changed.dprec("check", "demo")
    assert checked.returncode == 0, checked.stderr
    assert "code/a.py changed" in checked.stdout


def test_dvc_repro_and_a_run_beside_each_other_end_well(changed: Project, address: str) -> None:
    """The run waits for what the other command's stage holds, then takes its outputs over."""
    changed.write("slow.train@a", "300")
    repro = subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", "-q", TRAIN],
        cwd=changed.root,
        env=changed.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(changed.root / "started.train@a")
    waiting = changed.start("run", "demo", PREFECT_API_URL=address)
    assert waiting.stdout is not None
    lines: list[str] = []
    for line in waiting.stdout:
        lines.append(line)
        if f"train@a                                  waits for process {repro.pid} (" in line:
            (changed.root / "slow.train@a").unlink()
    _, errors = repro.communicate(timeout=300)
    assert (repro.returncode, errors) == (0, "")
    assert waiting.wait() == 0, "".join(lines)
    assert not (changed.root / "slow.train@a").exists(), lines  # it waited
    assert changed.ran() == ["train@a"]
    assert changed.call("dvc", "status").stdout == "Data and pipelines are up to date.\n"


@pytest.mark.parametrize("runner", ["dprec", "/bin/sh", "/bin/bash"])
def test_stages_end_with_the_command_that_started_them(changed: Project, address: str, runner: str) -> None:
    """Also where it is killed, which nothing can catch; and DVC with any shell, some of which wait for the stage."""
    program = "from tasks.stages.parent import end_with_parent\nend_with_parent()\n"
    changed.write("stage.py", program + (changed.root / "stage.py").read_text())
    changed.write("slow.download@demo", "300")
    if runner == "dprec":
        running = changed.start("run", "demo", PREFECT_API_URL=address)
    else:
        running = subprocess.Popen(
            [sys.executable, "-m", "dvc", "repro", "-q"],
            cwd=changed.root,
            env=changed.environment | {"SHELL": runner},
            text=True,
        )
    wait_for(changed.root / "started.download@demo")
    running.send_signal(signal.SIGKILL)
    running.wait()
    deadline = time.monotonic() + 60
    while (left := working(changed.root)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def working(root: Path) -> list[str]:
    """Command lines of stages that run in a folder."""
    lines = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(root) and "stage.py" in process.cmdline():
                lines.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return lines


@contextmanager
def sleeping(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with this word on its command line."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])
    try:
        time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()
