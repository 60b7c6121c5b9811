"""The DVC graph as a Prefect flow: one task run per stage, independent stages side by side.

DVC is asked once what is up to date. Those stages become task runs in a state called `Cached`; each of the others is
compared again once its inputs are there, and run if it still differs. Nothing here knows what stages there are: the
graph is that of dvc.yaml.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_link_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.states import Completed
from prefect.task_runners import ThreadPoolTaskRunner

from flows import plan, warm
from flows.cost import recorded
from flows.current import current
from flows.execution import Processes, StageFailed, exclusive, say
from flows.live import Lines, view
from flows.plan import Plan, Step
from flows.project import Project
from tasks.errors import DprecError
from tasks.stages.common import REPORTS
from tasks.stages.parent import end_with_run

WAKE_SECONDS = 0.5
"""How long Ctrl-C may take to be seen."""
MANY = 8
"""Stages that are worth having the large libraries loaded once for all of them."""
RETRIED = "download"  # the only stage that reaches for something outside this machine
RETRY_DELAYS = [2.0, 10.0]  # seconds; the stage itself has tried several times by then


def report_path(suite: str) -> Path:
    """Where the report of a suite lies."""
    return REPORTS / suite / "index.html"


def report_stage(suite: str) -> str:
    """The stage that everything of a suite leads to."""
    return f"report@{suite}"


@task(cache_policy=NO_CACHE, persist_result=False)
def run_stage(step: Step, project: Project, processes: Processes, screen: Lines, force: bool) -> State[Any]:
    """One stage: `Cached` if there was nothing to do, `Completed` once it ran.

    Raises:
        StageFailed: with the stage's own last word.
    """
    if step.cached and not force:
        screen.cached(step.name)
        return Completed(name="Cached", message="up to date")
    logger = get_run_logger()

    def on_line(line: str) -> None:
        logger.info(line)
        screen.line(step.name, line)

    screen.starts(step.name, "forced" if force else step.why)
    start = time.monotonic()
    try:
        ran = project.reproduce(step.address, lambda command: processes.run(command, on_line), force=force)
    except DprecError as error:
        screen.failed(step.name, str(error))
        raise
    if not ran:
        screen.cached(step.name, "its inputs came out the same")
        return Completed(name="Cached", message="its inputs came out the same")
    seconds = time.monotonic() - start
    screen.done(step.name, seconds)
    return Completed(message=f"ran for {seconds:.1f} s")


@flow(name="regenerate", flow_run_name="{suite}", task_runner=ThreadPoolTaskRunner(max_workers=16))  # type: ignore[arg-type]  # invariant in Prefect
def regenerate(suite: str, jobs: int | None = None, wait: bool = False, force: bool = False) -> State[Any]:
    """Bring the report of `suite` up to date.

    Args:
        suite: a folder of suites/; its last stage is `report@SUITE`.
        jobs: stages that may run at the same time; by default one per processor core.
        wait: wait for another run in this project instead of refusing to start.
        force: run every stage, up to date or not.

    Raises:
        DprecError: params.yaml is wrong (before anything runs), another run is going on, or a stage failed.
    """
    end_with_run()
    logger = get_run_logger()
    with exclusive(f"suite {suite}", wait=wait), current(suite) as project:
        todo = plan.read(report_stage(suite), project)
        while discarded := plan.discard_damaged(todo, project):
            for path in discarded:
                say(path, "damaged on the disk and removed: it is restored or computed again")
            todo = plan.read(report_stage(suite), project)
        if force or len(todo.pending) >= MANY:
            warm.prepare()
        jobs = jobs or os.cpu_count() or 1
        with (
            view(todo, recorded(Path(), suite), jobs, force) as screen,
            _stopping(Processes(force=force), project) as processes,
        ):
            failed, left = _walk(todo, _Stages(project, processes, screen, force), jobs)
    for name in left:
        screen.left(name)
        logger.warning("%s was not run: what it needs failed", name)
    if failed:
        raise StageFailed("; ".join(f"{name} failed: {reason}" for name, reason in failed.items()))
    report = report_path(suite)
    create_link_artifact(
        key=f"report-{suite}", link=report.resolve().as_uri(), link_text=f"Report of {suite}", description=str(report)
    )
    ran = len(todo.steps) if force else len(todo.pending)
    return Completed(message=f"{len(todo.steps)} stages, {ran} looked at anew: {report}")


@dataclass(frozen=True)
class _Stages:
    """What every stage of a run is run with."""

    project: Project
    processes: Processes
    screen: Lines
    force: bool

    def submit(self, step: Step, needs: list[PrefectFuture[Any]]) -> PrefectFuture[Any]:
        """A task run of a stage, after those that it needs."""
        retried = step.name.partition("@")[0] == RETRIED
        configured = run_stage.with_options(
            name=step.name.partition("@")[0],
            task_run_name=step.name,
            retries=len(RETRY_DELAYS) if retried else 0,
            retry_delay_seconds=RETRY_DELAYS if retried else 0,
        )
        arguments = (step, self.project, self.processes, self.screen, self.force)
        return configured.submit(*arguments, wait_for=needs, return_state=False)


def _walk(todo: Plan, stages: _Stages, jobs: int) -> tuple[dict[str, str], list[str]]:
    """Submit every stage as soon as what it needs is done, at most `jobs` of them at work at the same time.

    Returns:
        Failed stages with their reasons, and the stages that were not run because of them, both in order.
    """
    futures: dict[str, PrefectFuture[Any]] = {}
    waiting = list(todo.steps)
    ended: SimpleQueue[str] = SimpleQueue()
    succeeded: set[str] = set()
    failed: dict[str, str] = {}
    busy: set[str] = set()

    while True:
        for step in list(waiting):
            idle = step.cached and not stages.force
            if succeeded.issuperset(step.needs) and (idle or len(busy) < jobs):
                waiting.remove(step)
                futures[step.name] = stages.submit(step, [futures[name] for name in step.needs])
                futures[step.name].add_done_callback(partial(_put, ended, step.name))
                if not idle:
                    busy.add(step.name)
        if len(futures) == len(succeeded) + len(failed):
            return failed, [step.name for step in waiting]
        name = _next(ended)
        busy.discard(name)
        futures[name].wait()
        state = futures[name].state
        if state.is_completed():
            succeeded.add(name)
        else:
            failed[name] = _message(state).removeprefix(f"{name.replace('@', ' ')}: ")


def _next(ended: SimpleQueue[str]) -> str:
    """The next stage that ends.

    The wait wakes up now and then: polars, which the data sets' modules load, has Ctrl-C restart system calls, and a
    wait without end would never see it.
    """
    while True:
        try:
            return ended.get(timeout=WAKE_SECONDS)
        except Empty:
            continue


def _put(ended: SimpleQueue[str], name: str, _: PrefectFuture[Any]) -> None:
    ended.put(name)


def _message(state: State[Any]) -> str:
    error = state.result(raise_on_failure=False)
    return str(error) if isinstance(error, Exception) else str(state.message)


@contextmanager
def _stopping(processes: Processes, project: Project) -> Iterator[Processes]:
    """Whatever ends the run early (Ctrl-C, a cancelled flow run) ends its stages too."""
    try:
        yield processes
    except BaseException:
        project.stopped.set()
        processes.stop()
        raise
