"""SIGKILL to a run's whole group, to it alone, to a stage, to plain DVC, to Prefect's server, to what serves schedules.

At a random time, or at the moment at which a stage begins.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter

import httpx
import psutil

from flows.deployments import NIGHTLY
from flows.server import CREDENTIAL
from tests.faults.suite import DPREC, DVC, END_SECONDS, RUN, Row, Setup, Suite, together


def _first(suite: Suite, *words: str) -> psutil.Process | None:
    """The oldest process of the suite whose command line has all these words."""
    named = []
    for process in suite.processes():
        with suppress(psutil.Error):  # it may end meanwhile
            if set(words) <= set(" ".join(process.cmdline()).split()):
                named.append((process.create_time(), process))
    return min(named, key=itemgetter(0), default=(0.0, None))[1]


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
    if process := _first(suite, "uvicorn"):
        process.kill()
    return process is not None


@dataclass(frozen=True)
class Kind:
    """What is killed, and how."""

    command: tuple[str, ...]
    strike: Callable[[Suite, subprocess.Popen[str]], bool]
    """Whether there was anything to kill."""
    environment: dict[str, str] = field(default_factory=dict)
    scheduled: bool = False
    """The command serves schedules, of which one has a run going on."""

    @property
    def ends_command(self) -> bool:
        """Whether it is the command that is killed, rather than what it started."""
        return self.strike in (_group, _alone)


REPRO = (*DVC, "repro", "-q")
KINDS = {
    "a run with its group": Kind(RUN, _group),
    "a run alone": Kind(RUN, _alone),
    "a stage alone": Kind(RUN, _stage),
    "`dvc repro` alone": Kind(REPRO, _alone, {"SHELL": "/bin/bash"}),
    "`dvc repro` alone, whose shell waits for stages": Kind(REPRO, _alone, {"SHELL": "/bin/sh"}),
    "Prefect's server alone": Kind(RUN, _server),
    "`dprec schedule` alone, a run going on": Kind((*DPREC, "schedule"), _alone, scheduled=True),
}
OWN_SERVER = 3
"""Of so many kills of a run, one has a server of its own."""
RUN_SECONDS = 3.0
"""A scheduled run takes about as long once its first stage has begun."""


def rows(setup: Setup) -> Iterator[Row]:
    """As many kills as asked for, each kind as often as any other.

    Half of them at random times of what the command takes, the others at the moment at which a stage begins.
    """
    for number, (name, kind) in enumerate(KINDS.items()):
        if setup.match not in name:
            continue
        suite, start = setup.template.copy(setup.folder), time.monotonic()
        lasts = RUN_SECONDS
        if not kind.scheduled:
            suite.call(*kind.command, **setup.known, **kind.environment)
            lasts = time.monotonic() - start
        times, wrong = len(range(number, setup.kills, len(KINDS))), []
        for time_ in range(times):
            own = kind.strike is _server or (kind.command == RUN and time_ % OWN_SERVER == 1)
            known = kind.environment | ({} if own else setup.known)
            wrong += _kill(setup, kind, known, None if time_ % 2 == 0 else setup.random.uniform(0.0, lasts))
        yield f"kill -9: {name}", times, wrong


def _kill(setup: Setup, kind: Kind, environment: dict[str, str], after: float | None) -> list[str]:
    """What went wrong with one kill, after so many seconds or as a stage begins, and the run after it."""
    suite = setup.template.copy(setup.folder)
    running = suite.begin(*kind.command, **environment)
    if kind.scheduled:
        _start_scheduled(setup.known)
        _wait_for_stage(suite, running)
    if after is not None:
        time.sleep(after)
    elif not kind.scheduled:
        for _ in range(setup.random.randint(1, 3)):
            _wait_for_stage(suite, running)
    suite.command_is_killed(kind.ends_command)
    while running.poll() is None and not kind.strike(suite, running):
        time.sleep(0.01)  # no stage, or no server, at this moment
    try:
        running.wait(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return [f"{after} s: the command did not end"]
    wrong = [f"left running: {line}" for line in suite.left(SCHEDULED_SECONDS if kind.scheduled else END_SECONDS)]
    suite.command_is_killed(False)
    errors = suite.said()[1]
    if kind.command == RUN and running.returncode > 0 and errors.count("\n") != 1:
        wrong.append(f"more than a line: {errors!r}")
    when = "as a stage begins" if after is None else f"after {after:.2f} s"
    return [f"{when}: {line}" for line in together(wrong + setup.recovers(suite))]


SCHEDULED_SECONDS = 15.0
"""A scheduled run is told by Prefect's means to stop; what its stages then do lasts longer."""


def _wait_for_stage(suite: Suite, running: subprocess.Popen[str]) -> None:
    """Until a stage begins that was not there before."""
    before = {process.pid for process in suite.processes()}
    end = time.monotonic() + 60
    while running.poll() is None and time.monotonic() < end:
        for process in suite.processes():
            with suppress(psutil.Error):
                if process.pid not in before and "stage.py" in process.cmdline():
                    return


def _start_scheduled(known: dict[str, str]) -> None:
    """Have the first schedule run now, once it is served."""
    name, _, word = known[CREDENTIAL].partition(":")
    deployment, end = f"{NIGHTLY}-nightly", time.monotonic() + 120
    with httpx.Client(base_url=known["PREFECT_API_URL"], auth=(name, word), timeout=30.0) as client:
        while time.monotonic() < end:
            deployed = client.get(f"/deployments/name/regenerate/{deployment}")
            if (
                deployed.is_success
                and client.post(f"/deployments/{deployed.json()['id']}/create_flow_run", json={}).is_success
            ):
                return
            time.sleep(0.2)
    raise TimeoutError("nothing serves the schedules")
