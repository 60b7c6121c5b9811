"""The door to DVC: owners that are gone hold nothing, others are waited for, and `dvc repro` gives the same."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
import yaml

from flows import dvc
from flows.dvc import Project as Opened
from flows.dvc import open_project
from flows.execution import Busy
from tests.flows import conftest
from tests.flows.conftest import Project, wait_for

pytestmark = pytest.mark.slow

TRAIN = "suites/demo/dvc.yaml:train@a"


def lock(project: Project, pid: int, command: str = "dvc repro") -> Path:
    """A file of locks in which another process writes what train@a writes, and reads its inputs."""
    path = project.root / ".dvc/tmp/rwlock"
    info = {"pid": pid, "cmd": command}
    written = {str(project.root / "data/runs/demo/a"): info}
    path.write_text(json.dumps({"write": written, "read": {str(project.root / "data/raw/demo"): [info]}}))
    return path


def reproduce(opened_project: Opened, address: str = TRAIN) -> list[str]:
    """What runs when a stage is brought up to date."""
    ran: list[str] = []

    def command(line: str) -> None:
        ran.append(line)
        subprocess.run(line, shell=True, check=True)

    opened_project.reproduce(address, command)
    return ran


def holding(project: Opened) -> AbstractContextManager[None]:
    """What train@a reads and writes, held as while it runs."""
    stage = project.stages[TRAIN]
    return project._hold(TRAIN, stage.deps, stage.outs)


@contextmanager
def process_called(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with this word on its command line."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])
    try:
        time.sleep(0.1)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def changed(finished: Project) -> Project:
    """The finished project, in which train@a must run."""
    finished.write("code/a.py", "# changed\n")
    return finished


def test_a_dead_owner_holds_nothing(changed: Project) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    for ended in (False, True):  # first it is a zombie
        if ended:
            process.wait()
        lock(changed, process.pid)
        with open_project(patient=False) as project, holding(project):
            pass


def test_an_id_that_a_later_process_has_holds_nothing(changed: Project) -> None:
    path = lock(changed, os.getppid())
    os.utime(path, (0, 0))  # written before this process started
    with open_project(patient=False) as project:
        assert reproduce(project)


def test_an_id_that_another_program_has_holds_nothing(changed: Project) -> None:
    with process_called("dvd") as process:  # started before the file was last written
        for owner in ("/somewhere/bin/dvc repro", "/somewhere/flows/__main__.py run demo"):
            lock(changed, process.pid, owner)
            with open_project(patient=False) as project, holding(project):
                pass
        lock(changed, process.pid, f"{sys.executable} repro")
        with open_project(patient=False) as project, pytest.raises(Busy):
            reproduce(project)


def test_the_end_of_a_live_owner_is_waited_for(changed: Project, capsys: pytest.CaptureFixture[str]) -> None:
    with process_called("dvc") as process:
        lock(changed, process.pid)
        with (
            open_project(patient=False) as project,
            pytest.raises(Busy, match=rf"^train@a: held by process {process.pid} \(dvc repro\)"),
        ):
            reproduce(project)
        threading.Timer(1.0, process.kill).start()
        with open_project() as project:
            assert reproduce(project)
            assert process.poll() is not None
    waiting = [line for line in capsys.readouterr().out.splitlines() if "waits for" in line]
    assert len(waiting) == 1
    assert waiting[0].split() == ["train@a", "waits", "for", "process", str(process.pid), "(dvc", "repro)"]


def test_a_run_that_is_stopped_waits_for_nobody(changed: Project) -> None:
    with process_called("dvc") as process:
        lock(changed, process.pid)
        with open_project() as project:
            threading.Timer(0.5, project.stopped.set).start()
            with pytest.raises(Busy, match="held by process"):
                reproduce(project)


def holding_dvcs_lock(project: Project) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process that holds DVC's lock of the project until it reads a line."""
    return conftest.holding("from dvc.repo import Repo\nwith Repo().lock:", project.environment)


def test_dvcs_lock_of_the_project_is_waited_for_or_its_holder_named(changed: Project) -> None:
    with holding_dvcs_lock(changed) as process:
        with open_project(patient=False) as project, pytest.raises(Busy, match=f"held by process {process.pid} "):
            reproduce(project)
        threading.Timer(1.0, process.kill).start()
        with open_project() as project:
            assert reproduce(project)


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


def test_dvc_repro_gives_what_calling_dvc_gives(
    inside: Project, finished_template: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way for versions of DVC that no one tried: it says so in a line."""
    asked = inside.start("run", "demo", "--dvc-repro", PREFECT_API_URL=address)
    output, _ = asked.communicate(timeout=600)
    assert asked.returncode == 0, output
    assert output.count("as asked for: stages run by `dvc repro`, which is slower") == 1
    assert sorted(inside.ran()) == ["download@demo", "report@demo", "train@a", "train@b"]
    for name in ("dvc.lock", "data/reports/demo/index.html", "data/runs/demo/a/index.html"):
        assert (inside.root / name).read_bytes() == (finished_template / name).read_bytes()
    lock = Path("suites/demo/dvc.lock")  # its stages stand in the order in which they ended
    assert yaml.safe_load((inside.root / lock).read_text()) == yaml.safe_load((finished_template / lock).read_text())
    inside.write("code/a.py", "# changed\n")
    monkeypatch.setitem(dvc.TRIED, "dvc", "0.1")
    with open_project("demo") as project:
        assert project.why_by_repro == f"dvc {version('dvc')} was not tried"
        ran = reproduce(project)
        assert ran == [f"dvc --wait-for-lock repro --single-item {TRAIN}"]
        assert inside.ran() == ["train@a"]
    with open_project("demo") as project:
        assert reproduce(project) == []
    without = "import dvc.stage.cache as cache; del cache._can_hash; from flows import dvc; dvc.TRIED['dvc'] = '0.1'\n"
    without += "with dvc.open_project('demo') as project:\n    print(project.why_by_repro, project.scrub())"
    assert inside.call(sys.executable, "-c", without).stdout == f"dvc {version('dvc')} was not tried []\n"
