"""Processes for work side by side, and stages: none outlives the one that started it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.flows.conftest import wait_for

pytestmark = pytest.mark.slow

GIVES_WORK = """
import time
from tasks.pipeline.parent import workers

if __name__ == "__main__":
    with workers(2) as pool:
        for _ in range(2):
            pool.submit(time.sleep, 300)
        pool.submit(print, flush=True)
        print("given", flush=True)
"""


def test_workers_end_with_a_killed_parent(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(GIVES_WORK)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "given\n"
    deadline = time.monotonic() + 60
    while len(workers := psutil.Process(parent.pid).children()) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # two, and multiprocessing's tracker of resources
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive


COMMAND = """
import os, subprocess, sys, time
words = {"dvc": {"DVC_STAGE": "train@a"}, "dprec": {"DPREC_RUN": str(os.getpid())}}
environment = os.environ | words[sys.argv[1]]
subprocess.Popen([*sys.argv[2:], f"{sys.executable} stage.py"], env=environment).wait()
"""
STAGE = """
import os, pathlib, time
from tasks.pipeline.parent import end_with_parent
pathlib.Path("partial").write_text(str(os.getpid()))
pathlib.Path("partial").rename("started")
while not pathlib.Path("goes-on").exists():
    time.sleep(0.01)
end_with_parent()
pathlib.Path("watches").touch()
time.sleep(300)
"""
SHELLS = {"dash": ["/bin/sh", "-c"], "bash": ["/bin/bash", "--norc", "-c"]}


@pytest.mark.parametrize("killed", ["before its stage watches it", "afterwards"])
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("command", ["dvc", "dprec"])
def test_a_stage_ends_with_a_command_that_is_killed_at_any_time(
    tmp_path: Path, command: str, shell: str, killed: str
) -> None:
    """Some shells wait for a stage, and outlive the command."""
    (tmp_path / "command.py").write_text(COMMAND)
    (tmp_path / "stage.py").write_text(STAGE)
    starter = subprocess.Popen(
        [sys.executable, "command.py", command, *SHELLS[shell]], cwd=tmp_path, start_new_session=True
    )
    wait_for(tmp_path / "started")
    stage = psutil.Process(int((tmp_path / "started").read_text()))
    if killed == "afterwards":
        (tmp_path / "goes-on").touch()
        wait_for(tmp_path / "watches")
    starter.kill()
    starter.wait()
    (tmp_path / "goes-on").touch()
    _, alive = psutil.wait_procs([stage], timeout=20)
    for process in alive:
        process.kill()
    assert not alive


@pytest.mark.parametrize(
    ("locks", "lives"), [('{"write": {"out": {"pid": 1, "cmd": ""}}}', True), ("{}", False), (None, False)]
)
def test_the_first_process_of_a_container_is_the_command_if_dvcs_locks_name_it(
    tmp_path: Path, locks: str | None, lives: bool
) -> None:
    """Such a process, which is this one here, has the session of all others, and takes in those that are left."""
    if locks:
        (tmp_path / ".dvc/tmp").mkdir(parents=True)
        (tmp_path / ".dvc/tmp/rwlock").write_text(locks.replace('"pid": 1', f'"pid": {os.getpid()}'))
    code = (
        "import os; from tasks.pipeline import parent; parent.INIT = os.getppid(); parent.end_with_parent(); print(1)"
    )
    environment = os.environ | {"DVC_STAGE": "train@a", "DVC_ROOT": str(tmp_path)}
    stage = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (stage.stdout, stage.returncode) == (("1\n", 0) if lives else ("", -15))
