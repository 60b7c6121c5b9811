"""Units of stages on a cluster: all that are not finished are sent away before the stage itself puts them together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from flows.cluster import Cluster, Needs
from flows.execution import Processes, StageFailed, say
from flows.store import line_of
from flows.units import Unit, list_units, units_of
from tasks.config.params import OWN_FILES, PARAMS_FILE, SUITES
from tasks.errors import DataError
from tasks.stages import runs


@dataclass
class _Sent:
    """What the units of a stage have in common that are away."""

    inputs: str
    reason: str = ""
    """Why one of them failed."""


class ClusterUnits:
    """The units of the stages that run now, as `flows.units.Units` has them; a cluster works on them.

    Args:
        cluster: what works on them.
        processes: runs what lists the units of a stage.
        slots: of idle cores, to which a stage gives its own while its units are away.
        submit: makes a unit a task run, which calls `work_on`; its future.
        reads: the files and folders that a stage reads, relative to the project.
        needs: what the units of a stage need of a worker.
        force: finished units are worked on again.
    """

    def __init__(
        self,
        cluster: Cluster,
        processes: Processes,
        slots: threading.Semaphore,
        submit: Callable[[Unit], Any],
        *,
        reads: Callable[[str], list[Path]],
        needs: Callable[[str], Needs],
        force: bool = False,
    ) -> None:
        self._cluster, self._processes, self._slots, self._submit = cluster, processes, slots, submit
        self._reads, self._needs, self._force = reads, needs, force
        self._sent: dict[str, _Sent] = {}

    @contextmanager
    def working(self, stage: str, command: str) -> Iterator[bool]:
        """Have the units of a stage finished, so that its command puts them together; whether it is to force any.

        Raises:
            StageFailed: a unit failed, or the scheduler is gone.
        """
        parts = units_of(command)
        if parts is None:
            yield self._force
            return
        units = [unit for unit in list_units(self._processes, stage, *parts) if self._force or not _finished(unit)]
        if units:
            self._slots.release()
            try:
                self._send(stage, units)
            finally:
                self._slots.acquire()
        yield False

    def take(self) -> None:
        """No unit is for this machine."""

    def work_on(self, unit: Unit, on_line: Callable[[str], None]) -> None:
        """Have a worker work on a unit, unless the store has its results, and take them from there.

        Raises:
            StageFailed: with the unit's own last word.
        """
        sent = self._sent[unit.stage]
        if sent.reason:
            raise StageFailed("not run: another unit of its stage failed")
        try:
            on_line(self._have_worked_on(unit, sent.inputs))
        except Exception as error:  # stores have errors of their own kinds
            sent.reason = sent.reason or line_of(error)
            raise error if isinstance(error, StageFailed) else StageFailed(line_of(error)) from error

    def _have_worked_on(self, unit: Unit, inputs: str) -> str:
        """Have a unit worked on, unless the store has its results; which machine did, and for how long."""
        if not self._force and self._fetch(unit):
            return "was finished before, and is taken from the store"
        part = (unit.module, unit.argument, unit.label, unit.folder.as_posix())
        answer = self._cluster.run(unit.stage, part, inputs, self._needs(unit.stage), force=self._force)
        if not self._fetch(unit):
            raise StageFailed("its results in the store are not those that it wrote; run it again")
        return answer

    def stop(self) -> None:
        """Anyone who waits for units that are away hears that the run was stopped."""
        self._cluster.stop()

    def _send(self, stage: str, units: list[Unit]) -> None:
        configuration = [PARAMS_FILE, *(path for part in OWN_FILES for path in sorted(SUITES.glob(f"*/{part}")))]
        try:
            inputs = self._cluster.store.put_files([*configuration, *self._reads(stage)])
        except Exception as error:  # stores have errors of their own kinds
            raise StageFailed(f"its inputs cannot be put into the store ({line_of(error)})") from error
        sent = self._sent[stage] = _Sent(inputs)
        say(stage, f"has {len(units)} unit{'' if len(units) == 1 else 's'} for the cluster")
        for task_run in [self._submit(unit) for unit in units]:
            task_run.wait()
        if sent.reason:
            raise StageFailed(sent.reason)

    def _fetch(self, unit: Unit) -> bool:
        unit.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(unit.folder / "lock"):
            return self._cluster.store.get_unit(unit.folder.as_posix(), unit.folder / "done")


def _finished(unit: Unit) -> bool:
    try:
        runs.verify(unit.folder / "done", unit.folder.name)
    except DataError:
        return False
    return True
