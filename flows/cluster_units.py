"""Units of stages on a cluster: all that are not finished are sent away before the stage itself puts them together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

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
    """The units of a stage that are not back yet."""

    inputs: str
    needs: Needs
    left: set[str]
    back: threading.Event = field(default_factory=threading.Event)
    """All are back, or one failed."""
    reason: str = ""


class ClusterUnits:
    """The units of the stages that run now, as `flows.units.Units` has them; a cluster works on them.

    Args:
        cluster: what works on them.
        processes: runs what lists the units of a stage.
        slots: of idle cores, to which a stage gives its own while its units are away.
        changed: called when there is more to take than before.
        reads: the files and folders that a stage reads, relative to the project.
        needs: what the units of a stage need of a worker.
        force: finished units are worked on again.
    """

    def __init__(
        self,
        cluster: Cluster,
        processes: Processes,
        slots: threading.Semaphore,
        changed: Callable[[], None],
        *,
        reads: Callable[[str], list[Path]],
        needs: Callable[[str], Needs],
        force: bool = False,
    ) -> None:
        self._cluster, self._processes, self._slots, self._changed = cluster, processes, slots, changed
        self._reads, self._needs, self._force = reads, needs, force
        self._sent: dict[str, _Sent] = {}
        self._queue: SimpleQueue[Unit] = SimpleQueue()
        self._lock = threading.Lock()
        self._stopped = ""
        """Why no unit is sent any more."""

    @contextmanager
    def of(self, stage: str, command: str) -> Iterator[bool]:
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
            self._send(stage, units)
        yield False

    def take(self) -> Unit | None:
        """A unit that is to be sent."""
        try:
            return self._queue.get_nowait()
        except Empty:
            return None

    def work_on(self, unit: Unit, on_line: Callable[[str], None]) -> None:
        """Have a worker work on a unit that was taken, unless the store has its results, and take them from there.

        Raises:
            StageFailed: with the unit's own last word.
        """
        sent, reason = self._sent[unit.stage], "not finished"
        try:
            if sent.reason:
                raise StageFailed("not run: another unit of its stage failed")
            on_line(self._have_worked_on(unit, sent))
            reason = ""
        except StageFailed as error:
            reason = str(error)
            raise
        except Exception as error:  # stores have errors of their own kinds
            reason = line_of(error)
            raise StageFailed(reason) from error
        finally:
            with self._lock:
                sent.reason = sent.reason or reason
                sent.left.discard(unit.label)
                if sent.reason or not sent.left:
                    sent.back.set()

    def _have_worked_on(self, unit: Unit, sent: _Sent) -> str:
        """Have a unit worked on, unless the store has its results; which machine did, and for how long."""
        if not self._force and self._fetch(unit):
            return "was finished before, and is taken from the store"
        own = (unit.module, unit.argument, unit.label, unit.folder.as_posix())
        said = self._cluster.run(unit.stage, own, sent.inputs, sent.needs, force=self._force)
        if not self._fetch(unit):
            raise StageFailed("its results in the store are not those that it wrote; run it again")
        return said

    def stop(self) -> None:
        """Whoever waits for units that are away hears that the run was stopped."""
        with self._lock:
            self._stopped = "not run: the run was stopped"
            for sent in self._sent.values():
                sent.reason = sent.reason or self._stopped
                sent.back.set()
        self._cluster.stop()

    def _send(self, stage: str, units: list[Unit]) -> None:
        configuration = [PARAMS_FILE, *(path for own in OWN_FILES for path in sorted(SUITES.glob(f"*/{own}")))]
        try:
            inputs = self._cluster.store.put_files([*configuration, *self._reads(stage)])
        except Exception as error:  # stores have errors of their own kinds
            raise StageFailed(f"its inputs cannot be put into the store ({line_of(error)})") from error
        sent = _Sent(inputs, self._needs(stage), {unit.label for unit in units})
        with self._lock:
            if self._stopped:
                raise StageFailed(self._stopped)
            self._sent[stage] = sent
        say(stage, f"has {len(units)} unit{'' if len(units) == 1 else 's'} for the cluster")
        for unit in units:
            self._queue.put(unit)
        self._changed()
        self._slots.release()
        sent.back.wait()
        self._slots.acquire()
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
