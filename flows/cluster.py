"""Units on a Dask cluster: the driver sends each to a worker and takes its results from the store that both see.

What is sent is the name of one function of this project and strings; what comes back are strings. Results come through
the store and are believed only while they agree with their manifest. Prefect stays here: workers know nothing of it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from flows import remote
from flows.execution import StageFailed, say
from flows.store import Store, line_of
from tasks.errors import ConfigurationError
from tasks.stages.common import CHECKPOINTS
from tasks.stages.parent import end_with

LOCAL = "local:"
OWN_STORE = CHECKPOINTS / ".store"
"""Of a cluster of this run's own; it is removed with the run."""
CONNECT_SECONDS = 30.0
START_SECONDS = 60.0
END_SECONDS = 5.0


class Lost(StageFailed):
    """Raised when the scheduler is gone."""


@dataclass(frozen=True)
class Needs:
    """What a unit needs of its worker, as Dask resources."""

    memory_mb: int = 0
    gpus: int = 0

    @property
    def resources(self) -> dict[str, float]:
        """In Dask's terms: `MEMORY` in bytes, and `GPU`."""
        return {key: value for key, value in (("MEMORY", self.memory_mb * 1e6), ("GPU", self.gpus)) if value}


class Cluster:
    """A connection to a scheduler, and the store.

    Args:
        client: of `distributed`.
        name: what people call the cluster.
        store: the store's address, as workers and driver know it.
        offers: what each worker has, where no other will ever join; None where they come and go.
    """

    def __init__(self, client: Any, name: str, store: str, offers: dict[str, float] | None = None) -> None:
        self.store = Store(store)
        self._client, self._name, self._address = client, name, store
        self._offers = offers
        self._warned: set[str] = set()
        self._stopped = False

    def run(self, stage: str, unit: tuple[str, str, str, str], inputs: str, needs: Needs, *, force: bool) -> str:
        """Have a worker work on a unit; which one did, and for how long.

        Args:
            unit: module, argument, label, folder.
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
            self._warn(stage, needs)
            future = self._client.submit(
                remote.work_on,
                *(self._address, inputs, *unit, "1" if force else ""),
                key=f"{stage} {unit[2]} {os.urandom(4).hex()}",
                pure=False,
                resources=needs.resources or None,
            )
            answer = future.result()
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
        if "error" in answer:
            raise StageFailed(answer["error"])
        return f"{answer['worker']}, {answer['seconds']} s"

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
        wanted = needs.resources
        for key, value in wanted.items():
            if self._offers is not None and value > (offered := self._offers.get(key, 0.0)):
                raise StageFailed(
                    f"needs {key}={value:g}, and workers of {self._name} have {offered:g} (`resources` of the suite)"
                )
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        if stage in self._warned or any(
            all(worker["resources"].get(key, 0) >= value for key, value in wanted.items()) for worker in workers
        ):
            return
        self._warned.add(stage)
        lacking = " ".join(f"{key}={value:g}" for key, value in wanted.items())
        say(stage, f"waits: no worker offers {lacking}" if lacking else "waits for a worker")


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
        with _start_local(address, store or str(OWN_STORE.resolve())) as cluster:
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
def _start_local(address: str, store: str) -> Iterator[Cluster]:
    """A scheduler and N workers of this machine, which only this run can talk to."""
    from distributed.security import Security

    count = address.removeprefix(LOCAL)
    if not count.isdecimal() or int(count) < 1:
        raise ConfigurationError(f"{address}: name the number of workers, e.g. {LOCAL}4")
    with ExitStack() as stack:
        if store == str(OWN_STORE.resolve()):
            stack.callback(shutil.rmtree, store, ignore_errors=True)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dprec-"))
        files, scheduler_file = write_certificate(Path(folder)), f"{folder}/scheduler.json"
        scheduler = _begin(stack, "scheduler", files, "--port", "0", "--scheduler-file", scheduler_file)
        _wait_for(Path(scheduler_file), scheduler)
        offers = {"MEMORY": float(psutil.virtual_memory().total // int(count))}
        args = ["--nworkers", count, "--nthreads", "1", "--memory-limit", "0"]
        args += ["--local-directory", f"{folder}/workers"]
        args += ["--resources", " ".join(f"{key}={value:.0f}" for key, value in offers.items())]
        _begin(
            stack, "worker", files, "--scheduler-file", scheduler_file, *args
        )  # it takes its leave of a scheduler that is there
        cluster = Cluster(_client(scheduler_file, Security(require_encryption=True, **files)), address, store, offers)
        stack.callback(cluster.stop)
        yield cluster


def write_certificate(folder: Path) -> dict[str, str]:
    """Write a new certificate, its own authority, and its key: what scheduler, workers and driver have in common.

    Returns:
        The paths, by the names of `distributed.security.Security`; only the user can read the files.
    """
    from distributed.security import Security

    temporary = Security.temporary()
    files = {"ca.pem": temporary.tls_ca_file, "key.pem": temporary.tls_client_key}
    for name, text in files.items():
        with open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(text)
    ca, key = (str(folder / name) for name in files)
    roles = {f"tls_{role}_{kind}": path for role in ("client", "worker", "scheduler") for kind, path in
             (("cert", ca), ("key", key))}  # fmt: skip
    return {"tls_ca_file": ca} | roles


def _begin(stack: ExitStack, what: str, files: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    """`dask scheduler` or `dask worker` on this machine's own address, with nothing of Prefect's, until all ends."""
    tls = ["--tls-ca-file", files["tls_ca_file"], "--tls-cert", files["tls_client_cert"]]
    tls += ["--tls-key", files["tls_client_key"], "--protocol", "tls", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", what, *tls, "--no-dashboard", *arguments],
        env=remote.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is the run's, which ends them itself
        preexec_fn=partial(end_with, os.getpid()),
    )
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started: a worker may wait for long for a scheduler that is gone."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not path.is_file():
        if process.poll() is not None or time.monotonic() > deadline:
            raise ConfigurationError("the scheduler of this run did not start")
        time.sleep(0.05)


def _client(address: str, security: Any) -> Any:
    from distributed import Client

    where: dict[str, Any] = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        return Client(**where, security=security, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ConfigurationError(f"{address}: no scheduler answers ({' '.join(str(error).split())})") from None
