"""Processes for work side by side: none outlives the one that gives the work."""

import subprocess
import sys
import time

import psutil

GIVES_WORK = """
import time
from tasks.stages.parent import workers

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
    assert parent.stdout is not None
    assert parent.stdout.readline() == "given\n"
    deadline = time.monotonic() + 60
    while len(workers := psutil.Process(parent.pid).children()) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # two, and multiprocessing's tracker of resources
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
