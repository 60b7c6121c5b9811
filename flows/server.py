"""The Prefect server that records runs: the user's own, or one for as long as a command takes; reports over http.

Prefect's own temporary server ends at Ctrl-C before the run has said how it ended, outlives kill -9, lets all read its
database, and leaves its port free for a moment. Its pages may not open files: those of reports are served next to it.
"""

from __future__ import annotations

import atexit
import os
import secrets
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import httpx
from rich.console import Console

from tasks.core.errors import ConfigurationError
from tasks.pipeline.common import REPORTS
from tasks.pipeline.parent import end_with

CREDENTIAL = "PREFECT_API_AUTH_STRING"  # the variable from which Prefect's clients take it
ADDRESS = "DPREC_REPORTS"
"""The variable that says where reports are served; runs of a schedule inherit it."""
HOST = "127.0.0.1"
HEADERS = [("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")]
"""Of reports."""
APP = ("--factory", "prefect.server.api.server:create_app", "--log-level", "critical", "--lifespan", "on")


def server(*, pages: bool = False) -> str:
    """The address of a Prefect server: the one that PREFECT_API_URL names, or one that ends with this process.

    Call it before Prefect is imported: it reads its settings once, and its last log lines must still find the server.
    """
    if named := os.environ.get("PREFECT_API_URL"):
        return named
    started = Server(pages=pages)
    atexit.register(started.end)
    os.environ |= {"PREFECT_API_URL": started.address, CREDENTIAL: started.credential}
    for name in ("NO_PROXY", "no_proxy"):  # what a proxy of the user's saw, it could use
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), HOST]))
    return started.address


class Server:
    """A server on a port of this machine, which wants a credential and lets pages of no other origin read its answers.

    Who reaches it could run code through it. This process listens and hands the socket over: no other one can answer at
    the address, and be sent the credential. It ends with this process, and this process with it. With `pages` it shows
    its pages and does what automations ask for. Raises ConfigurationError if it ends, or does not answer in time.
    """

    def __init__(self, *, pages: bool) -> None:
        self._serves, self._socket = False, socket.create_server((HOST, 0))
        self.address = f"http://{HOST}:{self._socket.getsockname()[1]}/api"
        self.credential = f"dprec:{secrets.token_urlsafe(32)}"
        variables = {"PREFECT_API_URL": self.address, "PREFECT__SERVER_FINAL": "1"}
        variables |= dict.fromkeys((CREDENTIAL, "PREFECT_SERVER_API_AUTH_STRING"), self.credential)
        variables |= dict.fromkeys(("PREFECT_SERVER_LOGGING_LEVEL", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"), "ERROR")
        variables |= dict.fromkeys(("PREFECT_UI_ENABLED", "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED"), str(pages))
        variables["PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS"] = self.address.removesuffix("/api")
        with TemporaryFile() as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", *APP, "--fd", str(self._socket.fileno())],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=os.environ | variables,
                start_new_session=True,
                umask=0o077,  # its database says what ran when, and what failed
                pass_fds=(self._socket.fileno(),),
                preexec_fn=partial(end_with, os.getpid()),
            )
            threading.Thread(target=self._watch, daemon=True).start()
            try:
                httpx.get(f"{self.address}/health", timeout=120.0, trust_env=False).raise_for_status()
            except httpx.HTTPError as error:
                self.end()
                errors.seek(0)
                lines = [line for line in errors.read().decode(errors="replace").splitlines() if "Error: " in line]
                why = f"Prefect's server did not start ({[str(error), *lines][-1]}); if that is for its database, move "
                why += f"{os.environ.get('PREFECT_HOME', '.prefect')}/prefect.db away and run this again"
                raise ConfigurationError(why) from None
        self._serves = True

    def _watch(self) -> None:
        self._process.wait()
        self._socket.close()  # who asks is refused, and does not wait
        if self._serves:
            Console().show_cursor()  # which a view of the run hides
            os.write(2, b"dprec: Prefect's server ended; run it again, it goes on where it stopped\n")
            os._exit(1)  # its clients would ask for minutes, and say so; stages end with this process

    def end(self) -> None:
        """End it, and wait until it has; by force after ten seconds."""
        self._serves = False
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        self._process.kill()


def serve() -> str:
    """Serve reports to this machine until the process ends; their address, which the environment has from now on.

    It cannot be guessed, and has no slash at its end. There need not be any reports yet.
    """
    import uvicorn
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    secret, listening = secrets.token_urlsafe(16), socket.create_server((HOST, 0))
    reports = StaticFiles(directory=REPORTS.resolve(), html=True, check_dir=False)
    config = uvicorn.Config(Starlette(routes=[Mount(f"/{secret}", reports)]), log_level="critical", headers=HEADERS)
    threading.Thread(target=uvicorn.Server(config).run, args=([listening],), daemon=True).start()
    os.environ[ADDRESS] = f"http://{HOST}:{listening.getsockname()[1]}/{secret}"
    return os.environ[ADDRESS]


def link(path: Path) -> str:
    """Where a browser finds a file of a report; its `file:` address while nothing serves it."""
    if address := os.environ.get(ADDRESS):
        return f"{address}/{path.relative_to(REPORTS).as_posix()}"
    return path.resolve().as_uri()
