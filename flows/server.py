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
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import httpx

from flows.storage import damage
from tasks.disk import rename
from tasks.errors import ConfigurationError
from tasks.stages.parent import end_with

STARTUP_SECONDS = 120.0
CREDENTIAL = "PREFECT_API_AUTH_STRING"
"""The variable from which Prefect's clients take it."""
HOST = "127.0.0.1"
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
    kept = start(pages=pages)
    atexit.register(kept.end)
    threading.Thread(target=kept.watch, daemon=True).start()
    os.environ["PREFECT_API_URL"] = kept.address
    for name in ("NO_PROXY", "no_proxy"):  # what a proxy of the user's saw, it could use
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), HOST]))
    return kept.address


class Server:
    """A server that is started again where it dies.

    This process listens at its address for as long as it lives, and hands the socket to the server: nobody else can
    answer there, who would be sent the credential. Who asks while there is no server waits for the next.
    """

    def __init__(self, *, pages: bool) -> None:
        """pages: it shows its pages, too, and does what automations ask for."""
        self._socket = socket.create_server((HOST, 0))
        self.address = f"http://{HOST}:{self._socket.getsockname()[1]}/api"
        self.credential = f"dprec:{secrets.token_urlsafe(32)}"
        self._pages = pages
        self._lock = threading.Lock()
        self._ended = False
        self.said = TemporaryFile()  # noqa: SIM115  # open for as long as the server lives
        self.process = self._begin()

    def watch(self) -> None:
        """Until `end` is called, or it has died too often. The thread lives as long as the process."""
        for _ in range(AGAIN):
            self.process.wait()
            with self._lock:
                if self._ended:
                    return
                print("Prefect's server ended and is started again; the run goes on", file=sys.stderr, flush=True)
                self.process = self._begin()
        self.process.wait()
        self._socket.close()  # nobody answers any more: who asks is refused, and does not wait

    def end(self) -> None:
        """End it."""
        with self._lock:
            self._ended = True
        self._socket.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def answers(self) -> bool:
        """Whether it answers before it ends, and in time."""
        deadline = time.monotonic() + STARTUP_SECONDS
        with httpx.Client(trust_env=False, timeout=2.0) as client:
            while time.monotonic() < deadline and self.process.poll() is None:
                with suppress(httpx.TransportError):
                    if client.get(f"{self.address}/health").is_success:
                        return True
                time.sleep(0.2)
        return False

    def _begin(self) -> subprocess.Popen[bytes]:
        own = {
            "PREFECT_API_URL": self.address,
            "PREFECT_UI_ENABLED": str(self._pages).lower(),
            # an automation of `dprec schedule --notify` is that command's alone
            "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": str(self._pages).lower(),
            CREDENTIAL: self.credential,
            "PREFECT_SERVER_API_AUTH_STRING": self.credential,
            "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": self.address.removesuffix("/api"),
            "PREFECT__SERVER_FINAL": "1",
        }
        app = ("--factory", "prefect.server.api.server:create_app", "--log-level", "critical", "--lifespan", "on")
        return subprocess.Popen(
            [sys.executable, "-m", "uvicorn", *app, "--fd", str(self._socket.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.said,
            env=os.environ | own,
            start_new_session=True,
            umask=0o077,  # its database says what ran when, and what failed
            pass_fds=(self._socket.fileno(),),
            preexec_fn=partial(end_with, os.getpid()),
        )


def start(*, pages: bool) -> Server:
    """Start a server on a free port of this machine and wait until it answers.

    Whoever reaches it could run code through it. So it wants a credential, drawn for each start and handed to this
    process's own clients, lets pages of no other origin read its answers, and ends with this process.

    Raises:
        ConfigurationError: it ended, or did not answer in time.
    """
    database = Path(os.environ.get("PREFECT_HOME", ".prefect")) / "prefect.db"
    _set_aside_if_damaged(database)
    started = Server(pages=pages)
    try:
        if not started.answers():
            why = "it does not answer" if started.process.poll() is None else _last_error(started.said)
            raise ConfigurationError(
                f"the Prefect server that records runs did not start ({why}); if that is for its database, move "
                f"{database} away and run this again, or set PREFECT_API_URL to a server of your own"
            )
    except BaseException:
        started.end()
        raise
    os.environ[CREDENTIAL] = started.credential
    return started


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
