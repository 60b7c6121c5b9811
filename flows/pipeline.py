"""The DVC graph as a Prefect flow: one task run per stage, independent stages side by side.

While a core is idle, units of stages that run become task runs of their own (`flows.units`).

DVC is asked once what is up to date. Those stages become task runs in a state called `Cached`; each of the others is
compared again once its inputs are there, and run if it still differs. Nothing here knows what stages there are: the
graph is that of dvc.yaml.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.states import Cancelled, Completed

from flows import plan, warm
from flows.cluster import Cluster, ClusterUnits, Lost, Needs, connect
from flows.cost import recorded_seconds
from flows.dvc import Project
from flows.entries import take_prepared
from flows.execution import Killed, Processes, StageFailed, hold_project, say
from flows.live import Lines, view
from flows.plan import Plan, Step, current_project
from flows.server import link
from flows.units import Unit, Units, units_of
from tasks.config import params
from tasks.core.errors import ConfigurationError, DprecError
from tasks.pipeline.common import REPORTS, private
from tasks.pipeline.parent import end_with_run

WAKE_SECONDS = 0.5
"""How long Ctrl-C may take to be seen: polars has it restart system calls, and a wait without end would not see it."""
MANY = 8
"""Stages that are worth having the large libraries loaded once for all of them."""
RETRIED = "download"
"""The only stage that reads something from outside this machine."""
RETRY_DELAYS = [2.0, 10.0]
"""Seconds before each retry; the stage itself has tried several times by then."""


@task(cache_policy=NO_CACHE, persist_result=False)
def run_stage(step: Step, run: Run) -> State[None]:
    """One stage: `Cached` if there was nothing to do, `Completed` once it ran, `Cancelled` if the run was stopped.

    Raises:
        StageFailed: with the stage's own last word.
    """
    if step.cached:
        run.screen.show("cached", step.name, "cached")
        return Completed(name="Cached", message="up to date")
    logger = get_run_logger()

    def on_line(line: str) -> None:
        logger.info(line)
        run.screen.show("line", step.name, line)

    def command(line: str) -> None:
        parts = units_of(step.command)
        with run.units.working(step.name, *parts) if parts else nullcontext(run.force) as again:
            on_share = partial(run.screen.progress, step.name)
            run.processes.run(line, on_line, on_share, stage=step.name, force=again)

    run.screen.show("starts", step.name, step.why)
    start = time.monotonic()
    try:
        ran = run.project.reproduce(step.address, command, force=run.force)
    except DprecError as error:
        if run.project.stopped.is_set():
            return Cancelled(message=str(error))
        run.screen.show("failed", step.name, str(error))
        raise
    if not ran:
        run.screen.show("cached", step.name, "cached (its inputs came out the same)")
        return Completed(name="Cached", message="its inputs came out the same")
    took = f"{time.monotonic() - start:.1f} s"
    run.screen.show("run", step.name, f"done in {took}")
    return Completed(message=f"ran for {took}")


@task(name="unit", task_run_name="{unit.name}", cache_policy=NO_CACHE, persist_result=False)
def run_unit(unit: Unit, run: Run) -> State[None]:
    """One unit of a stage that runs at the same time.

    Raises:
        StageFailed: with the unit's own last word.
    """
    logger = get_run_logger()

    def on_line(line: str) -> None:
        logger.info(line)
        run.screen.show("unit", unit.name, f"| {line}")

    run.screen.show("unit", unit.name, "starts")
    start = time.monotonic()
    try:
        run.units.work_on(unit, on_line)
    except StageFailed as error:
        if run.project.stopped.is_set():
            return Cancelled(message=str(error))
        if not isinstance(error, Lost):  # of which its stage speaks
            say(unit.name, f"{error}; its stage works on it" if isinstance(error, Killed) else f"failed: {error}")
        raise
    took = f"{time.monotonic() - start:.1f} s"
    run.screen.show("unit", unit.name, f"done in {took}")
    return Completed(message=f"ran for {took}")


@flow(name="regenerate", flow_run_name="{suite}")
def regenerate(
    suite: str,
    jobs: int | None = None,
    wait: bool = False,
    force: bool = False,
    cluster: str | None = None,
    store: str | None = None,
    insecure_cluster: bool = False,
) -> State[None]:
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
        todo = plan.read(f"report@{suite}", project, force=force)
        if project.why_by_repro:
            say("DVC", f"{project.why_by_repro}: stages run by `dvc repro`, which is slower")
        if len(todo.pending) >= MANY:
            warm.prepare()
        reached = stack.enter_context(connect(cluster, store, insecure=insecure_cluster)) if cluster else None
        jobs = jobs or os.cpu_count() or 1
        with view(todo, recorded_seconds(Path()), jobs) as screen:
            run = Run(suite, todo, project, reached, screen, jobs, force)
            try:
                failed, left = run()
            except BaseException:  # Ctrl-C, a cancelled flow run: it ends its stages and units too
                project.stopped.set()
                run.processes.stop()
                raise
        for name in left:
            screen.show("left", name, "not run: what it needs failed")
            logger.warning("%s was not run: what it needs failed", name)
        if failed:
            reasons = {reason: [name for name in failed if failed[name] == reason] for reason in failed.values()}
            raise StageFailed("; ".join(f"{', '.join(names)} failed: {reason}" for reason, names in reasons.items()))
        project.settle(suite)
        show(suite)
    counts = f"{len(todo.steps)} stages, {len(todo.pending)} looked at again"
    return Completed(message=f"{counts}: {REPORTS / suite / 'index.html'}")


def show(suite: str) -> None:
    """Have Prefect's pages show where the report is, and the suite's headline where it has one."""
    path = REPORTS / suite / "index.html"
    create_link_artifact(key=f"report-{suite}", link=link(path), link_text=f"Report of {suite}", description=str(path))
    from flows import results  # with libraries of tables

    if (board := results.board_of(suite)) is not None:
        rows = [
            {"what": name, "system": row["system"], board.measure.label: f"{row['utility']:.3f}"}
            | dict(zip(("accounted ε", "audited ε"), results.budget(row), strict=True))
            for name, row in results.decision(board).items()
            if row is not None
        ]
        create_table_artifact(key=f"headline-{suite}", table=rows, description=f"Headline of {suite}")


class Run:
    """What the task runs of one run share."""

    def __init__(
        self, suite: str, todo: Plan, project: Project, cluster: Cluster | None, screen: Lines, jobs: int, force: bool
    ) -> None:
        self.project, self.screen, self.force = project, screen, force
        self.slots, self.processes = threading.Semaphore(jobs), Processes()
        self._steps, self._changed, self._ended = todo.steps, threading.Event(), list[str]()
        self._futures: dict[str, PrefectFuture[State[None]]] = {}
        needs = needs_of(suite, todo)  # without a cluster, too: a name that is misspelt is said at once
        self.units: Units | ClusterUnits = Units(self.processes, self.slots, self._changed.set, force=force)
        if cluster is not None:
            with_units = [step for step in todo.steps if units_of(step.command)]
            reads = {step.name: project.input_files(step.address) for step in with_units}
            self.units = ClusterUnits(cluster, self.processes, self.slots, self.submit_unit, reads, needs, force=force)

    def __call__(self) -> tuple[dict[str, str], list[str]]:
        """Failed stages with their reasons, and the stages that were not run because of them, both in order."""
        waiting, states, units = list(self._steps), dict[str, State[None]](), list[PrefectFuture[State[None]]]()
        while True:
            for name in self._ended[len(states) :]:
                self._futures[name].wait()
                states[name] = self._futures[name].state
            succeeded = {name for name, state in states.items() if state.is_completed()}
            ready = [step for step in waiting if succeeded.issuperset(step.needs)]
            for step in ready:
                if self._start(step):
                    waiting.remove(step)
            if len(states) == len(self._futures):
                break
            while not any(step in waiting for step in ready) and (unit := self.units.take()):
                units.append(self.submit_unit(unit))
            self._changed.wait(WAKE_SECONDS)
            self._changed.clear()
        for unit_run in units:
            unit_run.wait()
        return {name: _message(states[name]) for name in states if name not in succeeded}, [
            step.name for step in waiting
        ]

    def _start(self, step: Step) -> bool:
        """Submit a stage whose inputs are there, if there is a slot for it or it needs none; whether that was done."""
        if not step.cached and not self.slots.acquire(blocking=False):
            return False
        kind = step.name.partition("@")[0]
        delays = RETRY_DELAYS if kind == RETRIED else []
        configured = run_stage.with_options(
            name=kind, task_run_name=step.name, retries=len(delays), retry_delay_seconds=delays or 0
        )
        needs = [self._futures[name] for name in step.needs]
        self._futures[step.name] = future = configured.submit(step, self, wait_for=needs, return_state=False)
        future.add_done_callback(partial(self._end, step))
        return True

    def submit_unit(self, unit: Unit) -> PrefectFuture[State[None]]:
        """Make a unit a task run."""
        return run_unit.submit(unit, self, return_state=False)

    def _end(self, step: Step, _: PrefectFuture[State[None]]) -> None:
        if not step.cached:
            self.slots.release()
        self._ended.append(step.name)
        self._changed.set()


def needs_of(suite: str, todo: Plan) -> dict[str, Needs]:
    """What the suite's parameters say that the units of each stage need, or of all stages of its kind.

    Raises:
        ConfigurationError: they name a stage that the suite does not have.
    """
    resources = params.load().suites[suite].resources or {}
    kinds = {step.name: step.name.partition("@")[0] for step in todo.steps}
    for name in resources:
        if name not in kinds and name not in kinds.values():
            raise ConfigurationError(f"{params.own_file(suite)}: resources.{name}: {suite} has no such stage")
    needs = {}
    for name, kind in kinds.items():
        wanted = resources.get(name, resources.get(kind, {}))
        amounts = {"MEMORY": wanted.get("memory_mb", 0) * 1e6, "GPU": wanted.get("gpus", 0)}
        needs[name] = {resource: amount for resource, amount in amounts.items() if amount}
    return needs


def _message(state: State[None]) -> str:
    error = state.result(raise_on_failure=False)
    return str(error) if isinstance(error, Exception) else str(state.message)
