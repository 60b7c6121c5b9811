"""The DVC graph as a Prefect flow: one task run per stage, independent stages side by side.

While a core is idle, units of stages that run become task runs of their own (`flows.units`).

DVC is asked once what is up to date. Those stages become task runs in a state called `Cached`; each of the others is
compared again once its inputs are there, and run if it still differs. Nothing here knows what stages there are: the
graph is that of dvc.yaml.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.states import Completed
from prefect.task_runners import ThreadPoolTaskRunner

from flows import plan, warm
from flows.cluster import Cluster, Lost, Needs, connect
from flows.cluster_units import ClusterUnits
from flows.cost import recorded_seconds
from flows.dvc import Project
from flows.execution import Killed, Processes, StageFailed, hold_project, say
from flows.live import Lines, view
from flows.plan import Plan, Step, current_project
from flows.prepared import take_prepared
from flows.reports import link
from flows.units import Unit, Units
from tasks.config import params
from tasks.errors import ConfigurationError, DprecError
from tasks.stages.common import REPORTS, RESULTS, private
from tasks.stages.parent import end_with_run

WAKE_SECONDS = 0.5
"""How long Ctrl-C may take to be seen."""
THREADS = 256
"""Task runs at the same time; each unit that is on a cluster is one. Half of them are stages at most."""
CACHED = 16
"""Stages that are up to date, at the same time."""
AnyUnits = Units | ClusterUnits
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
def run_stage(
    step: Step, project: Project, processes: Processes, units: AnyUnits, screen: Lines, force: bool
) -> State[Any]:
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

    def command(line: str) -> None:
        with units.of(step.name, step.command) as again:
            processes.run(line, on_line, of=step.name, force=again)

    screen.starts(step.name, "forced" if force else step.why)
    start = time.monotonic()
    try:
        ran = project.reproduce(step.address, command, force=force)
    except DprecError as error:
        screen.failed(step.name, str(error))
        raise
    if not ran:
        screen.cached(step.name, "its inputs came out the same")
        return Completed(name="Cached", message="its inputs came out the same")
    seconds = time.monotonic() - start
    screen.done(step.name, seconds)
    return Completed(message=f"ran for {seconds:.1f} s")


@task(name="unit", cache_policy=NO_CACHE, persist_result=False)
def run_unit(unit: Unit, units: AnyUnits, screen: Lines) -> State[Any]:
    """One unit of a stage that runs at the same time.

    Raises:
        StageFailed: with the unit's own last word.
    """
    logger = get_run_logger()

    def on_line(line: str) -> None:
        logger.info(line)
        screen.unit(unit.name, f"| {line}")

    screen.unit(unit.name, "starts")
    start = time.monotonic()
    try:
        units.work_on(unit, on_line)
    except Lost:  # its stage says so
        raise
    except Killed as error:
        say(unit.name, f"{error}; its stage works on it")
        raise
    except StageFailed as error:
        say(unit.name, f"failed: {error}")
        raise
    screen.unit(unit.name, f"done in {time.monotonic() - start:.1f} s")
    return Completed(message=f"ran for {time.monotonic() - start:.1f} s")


@flow(name="regenerate", flow_run_name="{suite}", task_runner=ThreadPoolTaskRunner(max_workers=THREADS))  # type: ignore[arg-type]  # invariant in Prefect
def regenerate(
    suite: str,
    jobs: int | None = None,
    wait: bool = False,
    force: bool = False,
    cluster: str | None = None,
    store: str | None = None,
    insecure_cluster: bool = False,
) -> State[Any]:
    """Bring the report of `suite` up to date.

    Args:
        suite: a folder of suites/; its last stage is `report@SUITE`.
        jobs: stages and units that may run at the same time; by default one per processor core.
        wait: wait for another run in this project instead of refusing to start.
        force: run every stage, up to date or not.
        cluster: where units are worked on, as `flows.cluster.connect` has it; None: on this machine's cores.
        store: what the cluster's workers share with this machine.
        insecure_cluster: a scheduler without TLS will do.

    Raises:
        DprecError: params.yaml is wrong (before anything runs), another run is going on, there is no such cluster, or
            a stage failed.
    """
    private()  # also where a worker of Prefect calls it
    end_with_run()
    logger = get_run_logger()
    with ExitStack() as stack:
        stack.enter_context(hold_project(f"suite {suite}", wait=wait))
        take_prepared(suite)
        project = stack.enter_context(current_project(suite))
        todo = plan.read(report_stage(suite), project)
        if project.why_by_repro:
            say("DVC", f"{project.why_by_repro}: stages run by `dvc repro`, which is slower")
        if force or len(todo.pending) >= MANY:
            warm.prepare()
        reached = stack.enter_context(connect(cluster, store, insecure=insecure_cluster)) if cluster else None
        jobs = jobs or os.cpu_count() or 1
        with view(todo, recorded_seconds(Path(), suite), jobs, force) as screen:
            walk = _Walk(suite, todo, project, reached, screen, jobs, force)
            with _stopping(walk, project):
                failed, left = walk()
    for name in left:
        screen.left(name)
        logger.warning("%s was not run: what it needs failed", name)
    if failed:
        reasons = {reason: [name for name in failed if failed[name] == reason] for reason in failed.values()}
        raise StageFailed("; ".join(f"{', '.join(names)} failed: {reason}" for reason, names in reasons.items()))
    show(suite)
    ran = len(todo.steps) if force else len(todo.pending)
    return Completed(message=f"{len(todo.steps)} stages, {ran} looked at anew: {report_path(suite)}")


def show(suite: str) -> None:
    """Have Prefect's pages show where the report is, and the suite's headline where it has one."""
    path = report_path(suite)
    create_link_artifact(
        key=f"report-{suite}", link=link(path, REPORTS), link_text=f"Report of {suite}", description=str(path)
    )
    if (RESULTS / suite / "results.json").is_file():
        from tasks.stages.report import standings  # with libraries that draw

        utility, systems = standings(suite)
        rows = [
            {
                "system": of.system.label,
                utility: "" if of.utility is None else f"{of.utility:.3f}",
                "accounted ε": of.budget,
                "proved ε": "" if of.proved is None else f"≥ {of.proved:.3g}",
                "verdict": of.verdict,
            }
            for of in systems
        ]
        create_table_artifact(key=f"headline-{suite}", table=rows, description=f"Headline of {suite}")


class _Walk:
    """Submits every stage as soon as what it needs is done, with at most `jobs` processes at work at the same time."""

    def __init__(
        self,
        suite: str,
        todo: Plan,
        project: Project,
        cluster: Cluster | None,
        screen: Lines,
        jobs: int,
        force: bool,
    ) -> None:
        self.processes = Processes(force=force)
        self._run = partial(_submit, project=project, processes=self.processes, screen=screen, force=force)
        self._screen = screen
        self._jobs, self._force = jobs, force
        self._waiting = list(todo.steps)
        self._ended: SimpleQueue[str] = SimpleQueue()
        needs = needs_of(suite, todo)  # without a cluster, too: a name that is misspelt is said at once
        self.units: AnyUnits = Units(self.processes, self._look, force=force)
        if cluster is not None:
            addresses = {step.name: step.address for step in todo.steps}
            self.units = ClusterUnits(
                cluster,
                self.processes,
                self._look,
                reads=lambda stage: project.input_files(addresses[stage]),
                needs=needs,
                force=force,
            )
        self._futures: dict[str, PrefectFuture[Any]] = {}
        self._shared: dict[str, PrefectFuture[Any]] = {}
        self._busy: set[str] = set()
        self._cached: set[str] = set()
        self._succeeded: set[str] = set()
        self._failed: dict[str, str] = {}

    def __call__(self) -> tuple[dict[str, str], list[str]]:
        """Failed stages with their reasons, and the stages that were not run because of them, both in order."""
        while True:
            self._start_stages()
            if len(self._futures) == len(self._succeeded) + len(self._failed):
                for future in self._shared.values():
                    future.wait()
                return self._failed, [step.name for step in self._waiting]
            self._share_units()
            if name := self._wait_for_next():
                self._end(name)

    def _look(self) -> None:
        self._ended.put("")

    @property
    def _free(self) -> bool:
        working = self._busy - self.units.waiting
        return len(working) + self.units.asking < self._jobs and len(self._busy) < THREADS // 2

    def _is_ready(self, step: Step) -> bool:
        return self._succeeded.issuperset(step.needs)

    def _start_stages(self) -> None:
        for step in list(self._waiting):
            idle = step.cached and not self._force
            if self._is_ready(step) and (len(self._cached) < CACHED if idle else self._free):
                self._waiting.remove(step)
                needs = [self._futures[name] for name in step.needs]
                self._futures[step.name] = future = self._run(step, self.units, needs)
                future.add_done_callback(partial(_set, self._ended, step.name))
                (self._cached if idle else self._busy).add(step.name)

    def _share_units(self) -> None:
        """Give cores for which no stage waits to the units of those that run."""
        elsewhere = self.units.elsewhere
        while (elsewhere or (self._free and not any(map(self._is_ready, self._waiting)))) and (
            unit := self.units.take()
        ):
            configured = run_unit.with_options(task_run_name=unit.name)
            self._shared[unit.name] = future = configured.submit(unit, self.units, self._screen, return_state=False)
            if not elsewhere:
                self._busy.add(unit.name)
            future.add_done_callback(partial(_set, self._ended, unit.name))

    def _wait_for_next(self) -> str:
        """The next stage or unit that ends, or nothing after a while.

        The wait wakes up now and then: polars, which the data sets' modules load, has Ctrl-C restart system calls, and
        a wait without end would never see it.
        """
        with suppress(Empty):
            return self._ended.get(timeout=WAKE_SECONDS)
        return ""

    def _end(self, name: str) -> None:
        self._busy.discard(name)
        self._cached.discard(name)
        if name in self._shared:  # its stage says how it ended
            return
        self._futures[name].wait()
        state = self._futures[name].state
        if state.is_completed():
            self._succeeded.add(name)
        else:
            self._failed[name] = _message(state).removeprefix(f"{name.replace('@', ' ')}: ")


def needs_of(suite: str, todo: Plan) -> Callable[[str], Needs]:
    """What the suite's parameters say that the units of a stage need, or of all stages of its kind.

    Raises:
        ConfigurationError: they name a stage that the suite does not have.
    """
    known = params.load().suites[suite].resources or {}
    stages = {step.name for step in todo.steps} | {step.name.partition("@")[0] for step in todo.steps}
    for name in known:
        if name not in stages:
            raise ConfigurationError(f"{params.own_file(suite)}: resources.{name}: {suite} has no such stage")
    return lambda stage: Needs(**known.get(stage, known.get(stage.partition("@")[0], {})))


def _set(ended: SimpleQueue[str], name: str, _: PrefectFuture[Any]) -> None:
    ended.put(name)


def _submit(
    step: Step,
    units: AnyUnits,
    needs: list[PrefectFuture[Any]],
    *,
    project: Project,
    processes: Processes,
    screen: Lines,
    force: bool,
) -> PrefectFuture[Any]:
    retried = step.name.partition("@")[0] == RETRIED
    configured = run_stage.with_options(
        name=step.name.partition("@")[0],
        task_run_name=step.name,
        retries=len(RETRY_DELAYS) if retried else 0,
        retry_delay_seconds=RETRY_DELAYS if retried else 0,
    )
    return configured.submit(step, project, processes, units, screen, force, wait_for=needs, return_state=False)


def _message(state: State[Any]) -> str:
    error = state.result(raise_on_failure=False)
    return str(error) if isinstance(error, Exception) else str(state.message)


@contextmanager
def _stopping(walk: _Walk, project: Project) -> Iterator[None]:
    """Whatever ends the run early (Ctrl-C, a cancelled flow run) ends its stages and units too."""
    try:
        yield
    except BaseException:
        project.stopped.set()
        walk.units.stop()
        walk.processes.stop()
        raise
