"""The Prefect server that records runs: the user's own, or one for as long as a command takes.

Prefect would start a temporary server by itself, but in the terminal's process group: Ctrl-C would end it first, and
the interrupted run could no longer say how it ended.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from urllib.parse import urlsplit

import httpx

from flows.storage import damage
from tasks.disk import rename
from tasks.errors import ConfigurationError
from tasks.stages.parent import end_with

STARTUP_SECONDS = 120.0
CREDENTIAL = "PREFECT_API_AUTH_STRING"
"""The variable from which Prefect's clients take it."""


AGAIN = 3
"""How often a server that dies under a run is started again."""


def server(*, pages: bool = False) -> str:
    """The address of a Prefect server: the one that PREFECT_API_URL names, or one that ends with this process.

    Call it before Prefect is imported: Prefect reads its settings once, and its last log lines, sent while the
    interpreter shuts down, must still find the server. With `pages`, the server shows its pages too. A server of
    ours that dies is started again: Prefect's clients ask it for minutes, and the run goes on.

    Raises:
        ConfigurationError: the started server did not answer in time.
    """
    if given := os.environ.get("PREFECT_API_URL"):
        return given
    process, address = start(pages=pages)
    kept = _Kept(process, address, pages=pages)
    atexit.register(kept.end)
    threading.Thread(target=kept.watch, daemon=True).start()
    os.environ["PREFECT_API_URL"] = address
    return address


class _Kept:
    """A server that is started again at its address where it dies."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, *, pages: bool) -> None:
        self._process, self._address, self._pages = process, address, pages
        self._lock = threading.Lock()
        self._ended = False

    def watch(self) -> None:
        """Until `end` is called, or it has died too often. The thread lives as long as the process."""
        for _ in range(AGAIN):
            self._process.wait()
            with self._lock:
                if self._ended:
                    return
                print("Prefect's server ended and is started again; the run goes on", file=sys.stderr, flush=True)
                self._process = _begin(self._address, os.environ[CREDENTIAL], pages=self._pages)
        self._process.wait()

    def end(self) -> None:
        """End it."""
        with self._lock:
            self._ended = True
        end(self._process)


def start(*, pages: bool) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server on a free port of this machine and wait until it answers.

    Whoever reaches it could run code through it. So it wants a credential, drawn for each start and handed to this
    process's own clients, lets pages of no other origin read its answers, and ends with this process.

    Raises:
        ConfigurationError: it ended, or did not answer in time.
    """
    address = f"http://127.0.0.1:{_free_port()}/api"
    credential = f"dprec:{secrets.token_urlsafe(32)}"
    database = Path(os.environ.get("PREFECT_HOME", ".prefect")) / "prefect.db"
    _set_aside_if_damaged(database)
    said = TemporaryFile()  # noqa: SIM115  # open for as long as the server lives
    process = _begin(address, credential, pages=pages, said=said)
    try:
        if not _answers(address, process):
            why = "it does not answer" if process.poll() is None else _last_error(said)
            raise ConfigurationError(
                f"the Prefect server that records runs did not start ({why}); if that is for its database, move "
                f"{database} away and run this again, or set PREFECT_API_URL to a server of your own"
            )
    except BaseException:
        end(process)
        raise
    os.environ[CREDENTIAL] = credential
    return process, address


def _begin(
    address: str, credential: str, *, pages: bool, said: IO[bytes] | int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    own = {
        "PREFECT_API_URL": address,
        "PREFECT_UI_ENABLED": str(pages).lower(),
        CREDENTIAL: credential,
        "PREFECT_SERVER_API_AUTH_STRING": credential,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": address.removesuffix("/api"),
    }
    port = str(urlsplit(address).port)
    return subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", port],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        env=os.environ | own,
        start_new_session=True,
        umask=0o077,  # its database says what ran when, and what failed
        preexec_fn=partial(end_with, os.getpid()),
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server that `start` started."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _set_aside_if_damaged(database: Path) -> None:
    """Runs need no record of earlier ones: where SQLite cannot read it, a new one is begun."""
    if not database.is_file():
        return
    if why := damage(database):
        aside = f"{database.name}.damaged-{time.time_ns()}"
        for file in database.parent.glob(f"{database.name}*"):
            if file.name.removeprefix(database.name) in ("", "-wal", "-shm"):
                rename(file, file.with_name(aside + file.name.removeprefix(database.name)), durable=False)
        print(f"{database}: damaged ({why}); set aside as {aside}", file=sys.stderr, flush=True)


def _last_error(said: IO[bytes]) -> str:
    """The last exception that a process wrote, else its last line."""
    said.seek(0)
    lines = said.read().decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
    return next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception): ", line)), lines[-1])


def _answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether it answers before it ends, and in time."""
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{address}/health", timeout=2.0).is_success:
                return True
        except httpx.TransportError:
            time.sleep(0.2)
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
