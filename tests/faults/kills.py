"""SIGKILL to a run's whole group, to it alone, to a stage, to plain DVC, to Prefect's server, to what serves schedules.

At a random time, or at the moment at which a stage begins.
"""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter

import httpx
import psutil

from flows.deployments import NIGHTLY
from flows.server import CREDENTIAL
from tests.faults.suite import DPREC, DVC, END_SECONDS, RUN, Row, Setup, Suite, together


def _first(suite: Suite, is_it: Callable[[psutil.Process], bool]) -> psutil.Process | None:
    """The oldest process of the suite that is what is looked for."""
    stamped = []
    for process in suite.processes():
        with suppress(psutil.Error, ProcessLookupError):  # it may end meanwhile
            if is_it(process):
                stamped.append((process.create_time(), process))
    return min(stamped, key=itemgetter(0), default=(0.0, None))[1]


def _is_stage(process: psutil.Process) -> bool:
    """Whether it is a stage's: `python -m tasks.stages.…`, or a fork with a session of its own."""
    words = " ".join(process.cmdline())
    return "tasks.stages." in words or ("forkserver" in words and os.getsid(process.pid) == process.pid)


def _is_server(process: psutil.Process) -> bool:
    return "uvicorn" in process.cmdline()


def _group(_: Suite, running: subprocess.Popen[str]) -> bool:
    os.killpg(running.pid, signal.SIGKILL)
    return True


def _alone(_: Suite, running: subprocess.Popen[str]) -> bool:
    running.kill()
    return True


def _stage(suite: Suite, _: subprocess.Popen[str]) -> bool:
    if process := _first(suite, _is_stage):
        process.kill()
    return process is not None


def _server(suite: Suite, _: subprocess.Popen[str]) -> bool:
    if process := _first(suite, _is_server):
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
STAGES = 14
"""At the beginning of one of so many there is a kill."""


def rows(setup: Setup) -> Iterator[Row]:
    """As many kills as asked for, each kind as often as any other.

    Half of them at random times of what an undisturbed run takes, the others at the moment at which a stage begins.
    """
    kinds = [(name, kind) for name, kind in KINDS.items() if setup.match in name]
    times, wrong = Counter[str](), {name: list[str]() for name, _ in kinds}
    for number in range(setup.kills if kinds else 0):
        name, kind = kinds[number % len(kinds)]
        own = kind.strike is _server or (kind.command == RUN and times[name] % OWN_SERVER == 1)
        after = None if times[name] % 2 == 0 else setup.random.uniform(0.0, setup.seconds)
        lines = _kill(setup, kind, kind.environment | ({} if own else setup.known), after)
        print(f"{name}, {after}: {lines or 'right'}", flush=True)
        times[name] += 1
        wrong[name] += lines
    yield from ((f"kill -9: {name}", times[name], wrong[name]) for name in wrong)


def _kill(setup: Setup, kind: Kind, environment: dict[str, str], after: float | None) -> list[str]:
    """What went wrong with one kill, after so many seconds or as a stage begins, and the run after it."""
    suite = setup.template.copy(setup.folder)
    running = suite.begin(*kind.command, **environment)
    if kind.scheduled:
        _start_scheduled(setup.known)
        _wait_for_stage(suite, running)
    if after is not None:
        time.sleep(after)
    else:
        for _ in range(setup.random.randint(1, STAGES)):
            _wait_for_stage(suite, running)
    while running.poll() is None and not kind.strike(suite, running):
        time.sleep(0.01)  # no stage, or no server, at this moment
    killed = time.time()
    try:
        running.wait(timeout=600)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        return [f"{after} s: the command did not end"]
    seconds = SCHEDULED_SECONDS if kind.scheduled else END_SECONDS
    wrong = [f"left running: {line}" for line in suite.left(seconds)]
    if kind.ends_command:
        since = killed + (seconds if kind.scheduled else STAGE_SECONDS)
        wrong += [f"a stage went on: {name}" for name in suite.ended_since(since)]
    errors = suite.said()[1]
    if kind.command == RUN and running.returncode > 0 and errors.count("\n") != 1:
        wrong.append(f"more than a line: {errors!r}")
    when = "as a stage begins" if after is None else f"after {after:.2f} s"
    return [f"{when}: {line}" for line in together(wrong + setup.recovers(suite))]


STAGE_SECONDS = 2.0
"""For what a stage leaves to end whose command was killed."""
SCHEDULED_SECONDS = 15.0
"""A scheduled run is told by Prefect's means to stop."""


def _wait_for_stage(suite: Suite, running: subprocess.Popen[str]) -> None:
    """Until a stage begins that was not there before."""
    before = {process.pid for process in suite.processes()}
    end = time.monotonic() + 60
    while running.poll() is None and time.monotonic() < end:
        for process in suite.processes():
            with suppress(psutil.Error, ProcessLookupError):
                if process.pid not in before and _is_stage(process):
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
