"""A fork runs a module as `python -m` does: output, exit code, signals, environment, the code as it then is."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from flows import warm
from flows.execution import Processes, StageFailed, environment
from tests.flows.conftest import ROOT, wait_until

JOB = """
import os, sys, time
print("hello", sys.argv[1:], os.environ["WORD"], os.getcwd(), sys.argv[0].rpartition("/")[2], __name__, flush=True)
print("and", "json" in sys.modules, file=sys.stderr)
if "slow" in sys.argv:
    time.sleep(2)
raise SystemExit(int(sys.argv[1]))
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the current folder, and a fork server that is ready."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warm, "LOADED", ("json",))
    (tmp_path / "job.py").write_text(JOB)
    warm.prepare.cache_clear()
    warm.prepare()
    wait_until(warm.is_ready)
    yield tmp_path / "job.py"
    warm._ready.clear()


def test_lines_errors_and_the_exit_code_arrive(job: Path) -> None:
    fork = warm.Fork("job", ["3", "x"], environment() | {"WORD": "w"})
    said = fork.stdout.read().decode().splitlines()
    assert fork.wait() == 3
    assert said == [f"hello ['3', 'x'] w {job.parent} job.py __main__", "and True"]


def test_a_stage_is_a_fork_of_the_code_as_it_then_is(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "w")
    lines: list[str] = []
    Processes().run("python -m job 0", lines.append)
    job.write_text("print('changed')\n")
    Processes().run("python -m job 0", lines.append)
    assert [line.split()[0] for line in lines] == ["hello", "and", "changed"]
    job.write_text("raise ValueError('a crash')\n")
    with pytest.raises(StageFailed, match="ValueError: a crash"):
        Processes().run("python -m job 0", print)


@pytest.mark.usefixtures("job")
def test_it_has_a_session_of_its_own_and_dies_of_signals() -> None:
    fork = warm.Fork("job", ["0", "slow"], environment() | {"WORD": "w"})
    assert os.getsid(fork.pid) == fork.pid != os.getsid(0)
    os.killpg(fork.pid, signal.SIGKILL)
    assert fork.wait() == -signal.SIGKILL


@pytest.mark.usefixtures("job")
def test_a_fork_server_that_was_killed_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python then says 255 of the stage, which is no reason."""
    monkeypatch.setenv("WORD", "w")

    processes = Processes()

    def kill(line: str) -> None:
        if line.startswith("hello"):
            (stage,) = processes._running
            fork_server = psutil.Process(stage.pid).parent()
            fork_server.kill()

    with pytest.raises(StageFailed, match="killed by SIGKILL"):
        processes.run("python -m job 0 slow", kill)


LOADS = """
import os, signal, sys, time
import psutil
from flows import warm
if __name__ == "__main__":
    warm.LOADED = ("slow",)
    warm.prepare()
    while not os.path.exists("begun"):
        time.sleep(0.01)
    for child in psutil.Process().children():
        if "forkserver" in " ".join(child.cmdline()):
            child.send_signal(getattr(signal, sys.argv[1]))
    while not warm.has_ended():
        time.sleep(0.01)
    print(warm.is_ready())
"""


@pytest.mark.parametrize(("number", "ready"), [("SIGINT", "True"), ("SIGKILL", "False")])
def test_signals_while_libraries_are_loaded_show_no_traceback(tmp_path: Path, number: str, ready: str) -> None:
    """Ctrl-C reaches the fork server, too, which is in the group of the terminal."""
    (tmp_path / "slow.py").write_text("import pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(2)\n")
    (tmp_path / "parent.py").write_text(LOADS)
    variables = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command = [sys.executable, "parent.py", number]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{ready}\n", "")


STARTS = """
import os, time
import psutil
from flows import warm
if __name__ == "__main__":
    warm.LOADED = ()
    warm.prepare()
    while not warm.is_ready():
        time.sleep(0.01)
    stage = warm.Fork("job", [], os.environ | {"DPREC_RUN": str(os.getpid())})
    if b"started" not in (line := stage.stdout.readline()):
        raise SystemExit(line)
    print(psutil.Process(stage.pid).ppid(), stage.pid, flush=True)
    time.sleep(60)
"""


def test_the_fork_server_and_its_stages_end_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("import time\nprint('started')\ntime.sleep(60)\n")
    (tmp_path / "parent.py").write_text(STARTS)
    run = subprocess.Popen(
        [sys.executable, "parent.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    left = [psutil.Process(int(pid)) for pid in run.stdout.readline().split()]
    assert len(left) == 2
    run.kill()
    run.wait()
    wait_until(lambda: not any(map(works, left)), 60.0)


def works(process: psutil.Process) -> bool:
    """A zombie, whose parent no one reaps, does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
