"""Units of running stages, for cores that are idle otherwise.

A stage works on its units from the first on. While no stage waits for a free core, other processes work on its last
ones: units are locked, so none is worked on twice, and the stage waits for those that others have before it puts all
together (`tasks.pipeline.runs`).
"""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from flows import warm
from flows.execution import Killed, Processes, StageFailed
from tasks.pipeline import runs
from tasks.stages.units import WORK

WORTH_SECONDS = 4.0
"""Of work that no process has begun: with less, starting one costs more than it saves."""
STAGES = "tasks.stages."


@dataclass(frozen=True)
class Unit(runs.Unit):
    """A unit of a running stage."""

    stage: str
    """As the plan calls it, e.g. `train@gerai-bpr`."""
    module: str
    argument: str
    """Of the stage's command: `python -m tasks.stages.MODULE ARGUMENT`."""

    @property
    def name(self) -> str:
        """E.g. `train@gerai-bpr base-seed-3`."""
        return f"{self.stage} {self.label}"

    @property
    def command(self) -> str:
        """Works on it alone."""
        return f"python -m {STAGES}{self.module} {self.argument} --unit {shlex.quote(self.label)}"


@dataclass
class _Running:
    command: tuple[str, str, str]
    """Stage, module and argument."""
    since: float
    """`time.time()` when it began."""
    units: list[Unit] | None = None
    """None before they are asked for."""
    reason: str = ""
    """Of the first of its units that failed."""
    taken: set[str] = field(default_factory=set)
    """Labels of units that other processes have, or had."""


class Units:
    """The units of the stages that run now, for processes of this machine. All threads of a run may call its methods.

    Args:
        slots: of idle cores; every process takes one.
        changed: called when there may be more to take than before.
        force: results from before a stage began count as unfinished.
    """

    def __init__(
        self, processes: Processes, slots: threading.Semaphore, changed: Callable[[], None], *, force: bool = False
    ) -> None:
        self._processes, self._slots, self._changed, self._force = processes, slots, changed, force
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()

    @contextmanager
    def working(self, stage: str, module: str, argument: str) -> Iterator[bool]:
        """While a stage's command runs, its units may be taken. Where one of them failed, the stage fails with that.

        Yields:
            Whether the command is to work on finished units again.

        Raises:
            StageFailed: with the reason of the unit.
        """
        running = self._running[stage] = _Running((stage, module, argument), time.time())
        try:
            yield self._force
        except StageFailed:
            self._processes.end(stage)
            if running.reason:
                raise StageFailed(running.reason) from None
            raise
        finally:
            del self._running[stage]

    def take(self) -> Unit | None:
        """A unit worth a process of its own and a slot for it, for `work_on`; None: there is none, or not yet."""
        if not self._slots.acquire(blocking=False):
            return None
        for running in list(self._running.values()):
            if running.reason or time.time() - running.since < WORTH_SECONDS / 2:
                continue
            warm.prepare()  # the processes that list and work on them start with the large libraries loaded
            if running.units is None and warm.has_ended():
                running.units = []
                threading.Thread(target=self._list, args=(running,), daemon=True).start()
                return None
            if unit := self._last_unfinished(running):
                running.taken.add(unit.label)
                return unit
        self._slots.release()
        return None

    def work_on(self, unit: Unit, on_line: Callable[[str], None]) -> None:
        """Run a unit that was taken. If it fails, its stage is ended; if it is killed, the stage works on it itself.

        Raises:
            Killed: a signal ended it.
            StageFailed: with the unit's own last word.
        """
        running = self._running.get(unit.stage)
        force = f" --force {running.since}" if self._force and running is not None else ""
        try:
            self._processes.run(unit.command + force, on_line, stage=unit.stage)
        except Killed:
            raise
        except StageFailed as error:
            with self._lock:  # a second interrupt would cut the stage's end short
                if running is not None and not running.reason:
                    running.reason = str(error)
                    self._processes.end(unit.stage)
            raise
        finally:
            self._slots.release()

    def _last_unfinished(self, running: _Running) -> Unit | None:
        """The last unit that no process works on, where the stage itself has another one to work on."""
        units, begun = running.units or [], running.since if self._force else 0.0
        left = [unit for unit in units if unit.written <= begun]
        each = (time.time() - running.since) / (1 + len(units) - len(left))
        free = [unit for unit in left if unit.label not in running.taken and not _is_locked(unit)]
        return free[-1] if free and len(left) > 1 and each * len(free) >= WORTH_SECONDS else None

    def _list(self, running: _Running) -> None:
        try:
            with suppress(StageFailed):  # a stage that cannot be asked says itself what is wrong
                running.units = list_units(self._processes, *running.command)
        finally:
            self._slots.release()
            self._changed()


def list_units(processes: Processes, stage: str, module: str, argument: str) -> list[Unit]:
    """The units of a stage whose inputs are there, in its own order.

    Raises:
        StageFailed: it cannot say so, with the reason.
    """
    lines: list[str] = []
    processes.run(f"python -m {STAGES}units {module} {argument}", lines.append, stage=stage)
    try:
        table = json.loads(lines[-1])
        return [Unit(label, Path(folder), stage, module, argument) for label, folder in table.items()]
    except (ValueError, IndexError, AttributeError, TypeError):
        raise StageFailed(f"{module} {argument}: its units are not what was expected: {' '.join(lines)}") from None


def units_of(command: str) -> tuple[str, str] | None:
    """Module and argument of the command of a stage that has units; None: it has none."""
    match shlex.split(command):
        case ["python", "-m", module, argument] if module.removeprefix(STAGES) in WORK and module.startswith(STAGES):
            return module.removeprefix(STAGES), argument
    return None


def _is_locked(unit: Unit) -> bool:
    if not unit.folder.is_dir():
        return False
    try:
        with FileLock(unit.folder / runs.LOCK, timeout=0):
            return False
    except Timeout:
        return True
