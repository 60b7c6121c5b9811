"""The Prefect server that records runs: the user's own, or one for as long as a command takes.

Prefect would start a temporary server by itself, but in the terminal's process group: Ctrl-C would end it first, and
the interrupted run could no longer say how it ended.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

import httpx

from tasks.errors import ConfigurationError

STARTUP_SECONDS = 120.0
CREDENTIAL = "PREFECT_API_AUTH_STRING"
"""The variable from which Prefect's clients take it."""
PR_SET_PDEATHSIG = 1


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
        ConfigurationError: it did not answer in time.
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
    process = subprocess.Popen(
        [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=os.environ | own,
        start_new_session=True,
        umask=0o077,  # its database says what ran when, and what failed
        preexec_fn=_end_with_parent,
    )
    try:
        _wait_until_up(address, process)
    except BaseException:
        end(process)
        raise
    os.environ[CREDENTIAL] = credential
    return process, address


def _end_with_parent() -> None:
    """On Linux the kernel ends this process when the one that started it is gone, killed or not."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server that `start` started."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_until_up(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{address}/health", timeout=2.0).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise ConfigurationError(
        f"no Prefect server came up at {address}; start one with `prefect server start` and set PREFECT_API_URL"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
