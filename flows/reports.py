"""Reports over http, for pages that may not open files: those of a Prefect server next to `dprec schedule`."""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ADDRESS = "DPREC_REPORTS"
"""The variable that says where reports are served; runs of a schedule inherit it."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Nothing: what a stranger sends and breaks off is for no terminal."""


class _Reports(SimpleHTTPRequestHandler):
    """The files of one folder, without lists of files."""

    timeout = 10.0  # seconds; who asks for nothing for so long is left

    def send_head(self) -> Any:
        try:
            return super().send_head()
        except ValueError:  # no name of a file
            return self.send_error(HTTPStatus.NOT_FOUND)

    def list_directory(self, path: Any) -> None:  # noqa: ARG002  # it is given by name
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        for name, value in (("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer")):
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the terminal belongs to the runs."""


def serve(folder: Path) -> str:
    """Serve a folder to this machine until the process ends, and name the address in the environment.

    Args:
        folder: what is served, e.g. data/reports; it need not be there yet.

    Returns:
        The address of the folder, which cannot be guessed, without a slash at its end.
    """
    secret, above = secrets.token_urlsafe(16), TemporaryDirectory(prefix="dprec-")
    atexit.register(above.cleanup)
    Path(above.name, secret).symlink_to(folder.resolve())
    server = _Server(("127.0.0.1", 0), partial(_Reports, directory=above.name))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ[ADDRESS] = f"http://127.0.0.1:{server.server_port}/{secret}"
    return os.environ[ADDRESS]


def link(path: Path, folder: Path) -> str:
    """Where a browser finds a file of the served folder; its `file:` address while nothing serves it."""
    if address := os.environ.get(ADDRESS):
        return f"{address}/{path.relative_to(folder).as_posix()}"
    return path.resolve().as_uri()
