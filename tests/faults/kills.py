"""SIGKILL at a random time to a run's whole group, to it alone, to a stage, to plain DVC, to Prefect's server."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import psutil

from tests.faults.suite import DVC, RUN, Row, Setup, Suite, together


def _first(suite: Suite, *words: str) -> psutil.Process | None:
    """The oldest process of the suite whose command line has all these words."""
    named = [process for process in suite.processes() if set(words) <= set(" ".join(process.cmdline()).split())]
    return min(named, key=psutil.Process.create_time, default=None)


def _group(_: Suite, running: subprocess.Popen[str]) -> bool:
    os.killpg(running.pid, signal.SIGKILL)
    return True


def _alone(_: Suite, running: subprocess.Popen[str]) -> bool:
    running.kill()
    return True


def _stage(suite: Suite, _: subprocess.Popen[str]) -> bool:
    if process := _first(suite, "python", "stage.py"):
        process.kill()
    return process is not None


def _server(suite: Suite, _: subprocess.Popen[str]) -> bool:
    if process := _first(suite, "prefect", "server", "start"):
        process.kill()
    return process is not None


KINDS: dict[str, tuple[tuple[str, ...], Callable[[Suite, subprocess.Popen[str]], bool]]] = {
    "a run with its group": (RUN, _group),
    "a run alone": (RUN, _alone),
    "a stage alone": (RUN, _stage),
    "`dvc repro` alone": ((*DVC, "repro", "-q"), _alone),
    "Prefect's server alone": (RUN, _server),
}


def rows(setup: Setup) -> Iterator[Row]:
    """As many kills as asked for, each kind as often as any other, at random times of what its command takes."""
    for number, kind in enumerate(KINDS):
        command, strike = KINDS[kind]
        own = {} if strike is _server else setup.known
        suite, start = setup.template.copy(setup.folder), time.monotonic()
        suite.call(*command, **own)
        lasts = time.monotonic() - start
        times, wrong = len(range(number, setup.kills, len(KINDS))), []
        for _ in range(times):
            wrong += _kill(setup, kind, own, lasts)
        yield f"kill -9: {kind}", times, wrong


def _kill(setup: Setup, kind: str, own: dict[str, str], lasts: float) -> list[str]:
    """What went wrong with one kill and the run after it."""
    suite = setup.template.copy(setup.folder)
    command, strike = KINDS[kind]
    after = setup.random.uniform(0.0, lasts)
    running = suite.begin(*command, **own)
    time.sleep(after)
    while running.poll() is None and not strike(suite, running):
        time.sleep(0.01)  # no stage, or no server, at this moment
    try:
        running.wait(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return [f"{after:.2f} s: the command did not end"]
    wrong = [f"left running: {line}" for line in suite.left()]
    errors = suite.said()[1]
    if command == RUN and running.returncode > 0 and errors.count("\n") != 1:
        wrong.append(f"more than a line: {errors!r}")
    return [f"after {after:.2f} s: {line}" for line in together(wrong + setup.recovers(suite))]
