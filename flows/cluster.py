"""Units on a Dask cluster: the driver sends each to a worker and takes its results from the store that both see.

All units of a stage that are not finished are sent away before the stage itself puts them together.

What is sent is the name of one function of this project and strings; what comes back is a line. Results come through
the store and are believed only while they agree with their manifest. Prefect stays here: workers know nothing of it.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from filelock import FileLock

from flows.execution import Processes, StageFailed, say
from flows.stopping import interrupts_blocked
from flows.store import Store, line_of, work_on
from flows.units import Unit, list_units
from tasks.config.params import OWN_FILES, PARAMS_FILE, SUITES
from tasks.core.errors import ConfigurationError
from tasks.pipeline import runs
from tasks.pipeline.common import CHECKPOINTS

if TYPE_CHECKING:
    from distributed import Client
    from prefect import State
    from prefect.futures import PrefectFuture

Needs = dict[str, float]
"""What a unit needs of its worker, as resources of Dask: `MEMORY` in bytes, and `GPU`."""
LOCAL = "local:"
OWN_STORE = CHECKPOINTS / ".store"
"""Of a cluster of this run's own; it is removed with the run."""
CONNECT_SECONDS = 30.0


class Lost(StageFailed):
    """Raised when the scheduler is gone."""


class Cluster:
    """A connection to a scheduler, and the store at an address that workers and driver know.

    offers: what each worker has, where no other will ever join; None where they come and go.
    """

    def __init__(self, client: Client, name: str, store: str, offers: dict[str, float] | None = None) -> None:
        self.store = Store(store)
        self._client, self._name, self._address = client, name, store
        self._offers = offers
        self._warned: set[str] = set()
        self._stopped = False

    def run(self, unit: Unit, inputs: str, needs: Needs, *, force: bool) -> str:
        """Have a worker work on a unit; which one did, and for how long.

        inputs: their list in the store.

        Raises:
            Lost: the scheduler is gone.
            StageFailed: with the unit's own last word.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        if self._client.status != "running":
            raise self._ended()
        try:
            self._warn(unit.stage, needs)
            named = (unit.module, unit.argument, unit.label, unit.folder.as_posix())
            future = self._client.submit(
                work_on,
                *(self._address, inputs, *named, "1" if force else ""),
                key=f"{unit.name} {os.urandom(4).hex()}",
                pure=False,
                resources=needs or None,
            )
            return str(future.result())
        except FutureCancelledError:
            raise self._ended() from None
        except KilledWorker as error:
            reason = f"the worker that works on it was killed {error.allowed_failures + 1} times (out of memory?)"
            raise StageFailed(reason) from None
        except StageFailed:
            raise
        except Exception as error:  # of Dask, or of what it calls
            if self._client.status == "running":
                raise StageFailed(line_of(error)) from None
            raise self._ended() from None

    def stop(self) -> None:
        """Cancel what was sent; what waits for it is notified."""
        self._stopped = True
        self._client.close(timeout=2)

    def _ended(self) -> StageFailed:
        if self._stopped:
            return StageFailed("not run: the run was stopped")
        return Lost(
            f"{self._name}: the scheduler is gone; finished units are kept, and the next run goes on from there"
        )

    def _warn(self, stage: str, needs: Needs) -> None:
        """Say once of a stage that no worker has what it needs now; refuse it where none will have that."""
        for key, value in needs.items():
            if self._offers is not None and value > (offered := self._offers.get(key, 0.0)):
                raise StageFailed(
                    f"needs {key}={value:g}, and workers of {self._name} have {offered:g} (`resources` of the suite)"
                )
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if stage in self._warned or any(
            all(worker["resources"].get(key, 0) >= value for key, value in needs.items()) for worker in workers
        ):
            return
        self._warned.add(stage)
        lacking = " ".join(f"{key}={value:g}" for key, value in needs.items())
        say(stage, f"waits: no worker offers {lacking}" if lacking else "waits for a worker")


@dataclass
class _Sent:
    inputs: str
    reason: str = ""


class ClusterUnits:
    """The units of the stages that run now, as `flows.units.Units` has them; a cluster works on them.

    Args:
        slots: of idle cores, to which a stage gives its own while its units are away.
        submit: makes a unit a task run, which calls `work_on`; its future.
        reads: the files and folders that each stage reads, relative to the project.
    """

    def __init__(
        self,
        cluster: Cluster,
        processes: Processes,
        slots: threading.Semaphore,
        submit: Callable[[Unit], PrefectFuture[State[None]]],
        reads: Mapping[str, list[Path]],
        needs: Mapping[str, Needs],
        *,
        force: bool,
    ) -> None:
        self._cluster, self._processes, self._slots, self._submit = cluster, processes, slots, submit
        self._reads, self._needs, self._force = reads, needs, force
        self._sent: dict[str, _Sent] = {}

    @contextmanager
    def working(self, stage: str, module: str, argument: str) -> Iterator[bool]:
        """Have the units of a stage finished, so that its command puts them together; whether it is to force any.

        Raises:
            StageFailed: a unit failed, or the scheduler is gone.
        """
        units = list_units(self._processes, stage, module, argument)
        if not self._force:
            units = [unit for unit in units if not runs.is_finished(unit, moves=False)]
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
            if not self._force and self._fetch(unit):
                on_line("was finished before, and is taken from the store")
                return
            answer = self._cluster.run(unit, sent.inputs, self._needs[unit.stage], force=self._force)
            if not self._fetch(unit):
                raise StageFailed("its results in the store are not those that it wrote; run it again")
            on_line(answer)
        except Exception as error:  # stores have errors of their own kinds
            sent.reason = sent.reason or line_of(error)
            raise error if isinstance(error, StageFailed) else StageFailed(line_of(error)) from error

    def _send(self, stage: str, units: list[Unit]) -> None:
        configuration = [PARAMS_FILE, *(path for part in OWN_FILES for path in sorted(SUITES.glob(f"*/{part}")))]
        try:
            inputs = self._cluster.store.put_files([*configuration, *self._reads[stage]])
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
        with FileLock(unit.folder / runs.LOCK):
            return self._cluster.store.get_unit(unit.folder.as_posix(), unit.folder / "done")


@contextmanager
def connect(address: str, store: str | None, *, insecure: bool = False) -> Iterator[Cluster]:
    """A cluster for as long as a run needs it.

    Args:
        address: of a scheduler (`tls://host:port`), or `local:N`: one of this machine with N workers.
        store: address of the store; None: one of this run's own, for `local:N` alone.
        insecure: a scheduler without TLS will do.

    Raises:
        ConfigurationError: there is no such scheduler, it has no TLS, or no store is named.
    """
    if address.startswith(LOCAL):
        with _start_local(address, store) as cluster:
            yield cluster
        return
    if "://" not in address:
        address = f"tcp://{address}"
    if not address.startswith("tls://") and not insecure:
        raise ConfigurationError(
            f"{address}: without TLS, whoever reaches the scheduler can run code on every worker and read what it is "
            "sent; name a scheduler at tls://HOST:PORT (docs/cluster.md), or accept that with --insecure-cluster"
        )
    if store is None:
        raise ConfigurationError(f"{address}: name the store that its workers share with this machine: --store ADDRESS")
    from distributed.security import Security

    client = _client(address, Security(require_encryption=address.startswith("tls://")))
    cluster = Cluster(client, address, str(Path(store).resolve()) if "://" not in store else store)
    try:
        yield cluster
    finally:
        cluster.stop()


@contextmanager
def _start_local(address: str, store: str | None) -> Iterator[Cluster]:
    """A scheduler in this process and N workers of this machine, which only this run can talk to."""
    from distributed import LocalCluster
    from distributed.security import Security

    count = address.removeprefix(LOCAL)
    if not count.isdecimal() or int(count) < 1:
        raise ConfigurationError(f"{address}: name the number of workers, e.g. {LOCAL}4")
    offers = {"MEMORY": float(psutil.virtual_memory().total // int(count))}
    with ExitStack() as stack:
        if store is None:
            store = str(OWN_STORE.resolve())
            stack.callback(shutil.rmtree, store, ignore_errors=True)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dprec-"))
        with interrupts_blocked():  # also in workers: Ctrl-C is the run's, which ends them itself
            workers = LocalCluster(
                n_workers=int(count),
                threads_per_worker=1,
                memory_limit=0,
                resources=offers,
                local_directory=folder,
                security=Security.temporary(),
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        stack.callback(workers.close)
        cluster = Cluster(_client(workers), address, store, offers)
        stack.callback(cluster.stop)
        yield cluster


def write_certificate(folder: Path) -> None:
    """Write ca.pem, a new certificate, its own authority, and its key.pem: what scheduler, workers and driver share."""
    from distributed.security import Security

    temporary = Security.temporary()
    for name, text in (("ca.pem", temporary.tls_ca_file), ("key.pem", temporary.tls_client_key)):
        with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)


def _client(scheduler: object, security: object = None) -> Client:
    """scheduler: its address, or a cluster of `distributed`, which has its own `security`."""
    from distributed import Client

    try:
        return Client(scheduler, security=security, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ConfigurationError(f"{scheduler}: no scheduler answers ({line_of(error)})") from None
