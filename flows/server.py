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
import time
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


def server(*, pages: bool = False) -> str:
    """The address of a Prefect server: the one that PREFECT_API_URL names, or one that ends with this process.

    Call it before Prefect is imported: Prefect reads its settings once, and its last log lines, sent while the
    interpreter shuts down, must still find the server. With `pages`, the server shows its pages too.

    Raises:
        ConfigurationError: the started server did not answer in time.
    """
    if given := os.environ.get("PREFECT_API_URL"):
        return given
    process, address = start(pages=pages)
    atexit.register(end, process)
    os.environ["PREFECT_API_URL"] = address
    return address


def start(*, pages: bool) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server on a free port of this machine and wait until it answers.

    Whoever reaches it could run code through it. So it wants a credential, drawn for each start and handed to this
    process's own clients, lets pages of no other origin read its answers, and ends with this process.

    Raises:
        ConfigurationError: it ended, or did not answer in time.
    """
    port = _free_port()
    address = f"http://127.0.0.1:{port}/api"
    credential = f"dprec:{secrets.token_urlsafe(32)}"
    own = {
        "PREFECT_API_URL": address,
        "PREFECT_UI_ENABLED": str(pages).lower(),
        CREDENTIAL: credential,
        "PREFECT_SERVER_API_AUTH_STRING": credential,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": address.removesuffix("/api"),
    }
    database = Path(os.environ.get("PREFECT_HOME", ".prefect")) / "prefect.db"
    _set_aside_if_damaged(database)
    said = TemporaryFile()  # noqa: SIM115  # open for as long as the server lives
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        env=os.environ | own,
        start_new_session=True,
        umask=0o077,  # its database says what ran when, and what failed
        preexec_fn=partial(end_with, os.getpid()),
    )
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
