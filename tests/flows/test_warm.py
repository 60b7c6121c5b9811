"""A fork runs a module as `python -m` does: output, exit code, signals, environment, the code as it then is."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest

from flows import warm
from flows.execution import Processes, StageFailed, environment

JOB = """
import os, sys, time
print("hello", sys.argv[1:], os.environ["WORD"], os.getcwd(), sys.argv[0].rpartition("/")[2], __name__)
print("and", "json" in sys.modules, file=sys.stderr)
if "slow" in sys.argv:
    time.sleep(60)
raise SystemExit(int(sys.argv[1]))
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the current folder, and a fork server that is ready."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warm, "LOADED", ("json",))
    (tmp_path / "job.py").write_text(JOB)
    warm.prepare()
    deadline = time.monotonic() + 30
    while not warm.ready() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert warm.ready()
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

    def killed() -> None:
        time.sleep(0.5)
        os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)  # type: ignore[attr-defined]

    threading.Thread(target=killed).start()
    with pytest.raises(StageFailed, match="killed by SIGKILL"):
        Processes().run("python -m job 0 slow", print)


def test_the_fork_server_ends_with_its_parent(tmp_path: Path) -> None:
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import time\nfrom multiprocessing import forkserver\nfrom flows import warm\n"
        "if __name__ == '__main__':\n"
        "    warm.LOADED = ()\n    warm.prepare()\n"
        "    while not warm.ready():\n        time.sleep(0.01)\n"
        "    print(forkserver._forkserver._forkserver_pid, flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(parent)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    server = int(process.stdout.readline())
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{server}/cmdline").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{server}/cmdline").read_bytes() == b"":  # a zombie whose parent nobody reaps
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{server}").exists()
