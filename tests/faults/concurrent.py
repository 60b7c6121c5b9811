"""Commands during a run that is in the middle of its stages: both end well, or the other in words that name the run.

DVC waits for nothing: `dvc repro` may end in words that name the run which began after it, too.
"""

import subprocess
import time
from collections.abc import Iterator

from tests.faults.suite import DPREC, DVC, END_SECONDS, RUN, Row, Setup, together

CONCURRENT: dict[str, tuple[str, ...]] = {
    "`dprec run --wait`": (*RUN, "--wait"),
    "`dprec run`": RUN,
    "`dprec check`": (*DPREC, "check", "demo"),
    "`dprec scrub`": (*DPREC, "scrub"),
    "`dvc repro`": (*DVC, "repro"),
    "`dvc commit`": (*DVC, "commit", "-f", "data/dvc.yaml:download@demo"),
    "`dvc checkout`": (*DVC, "checkout", "-q", "data/dvc.yaml:download@demo"),
    "`dvc push`": (*DVC, "push", "-q"),
    "`dvc status`": (*DVC, "status"),
}

LINES = 5
"""In so many lines DVC names the owner of a file, and advises to remove its locks; dprec takes one."""


def rows(setup: Setup) -> Iterator[Row]:
    """Each command during `dprec run`, and `dprec run` during `dvc repro`."""
    for name, command in CONCURRENT.items():
        if setup.match not in name:
            continue
        yield f"{name} during `dprec run`", 1, _concurrent(setup, RUN, command)
    if setup.match in "`dprec run` during `dvc repro`":
        yield "`dprec run` during `dvc repro`", 1, _concurrent(setup, CONCURRENT["`dvc repro`"], RUN)


def _concurrent(setup: Setup, first: tuple[str, ...], second: tuple[str, ...]) -> list[str]:
    suite = setup.template.copy(setup.folder)
    suite.call(*DVC, "remote", "add", "--default", "storage", str(suite.root.parent / "storage"))
    running = suite.begin(*first, **setup.known)
    while running.poll() is None and not list(suite.root.glob("data/checkpoints/demo/demo-bpr")):
        time.sleep(0.02)  # the first stage that takes a while
    other = suite.call(*second, **setup.known)
    running.wait(timeout=600)
    wrong = [f"left running: {line}" for line in suite.left(END_SECONDS)]
    if running.returncode != 0 and (first == RUN or "flows/__main__.py run demo\n" not in suite.said()[1]):
        wrong.append(f"the run next to it failed: {suite.said()}")
    if other.returncode != 0 and not _names(other, running.pid):
        wrong.append(f"names no owner: {other.stderr!r}")
    if other.returncode != 0 and other.stderr.strip().count("\n") >= (LINES if second[:3] == DVC else 1):
        wrong.append(f"more than was to be said: {other.stderr!r}")
    if suite.call(*second, **setup.known).returncode != 0:
        wrong.append("fails afterwards, too")
    return together(wrong + setup.recovers(suite))


def _names(other: subprocess.CompletedProcess[str], pid: int) -> bool:
    return f"process {pid}" in other.stderr or f"PID {pid}" in other.stderr
