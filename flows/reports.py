"""Reports over http, for pages that may not open files: those of a Prefect server beside `dprec schedule`."""

from __future__ import annotations

import os
import secrets
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path, PurePosixPath
from typing import Any

SECONDS = 10.0
"""Who asks for nothing for so long is left."""
ADDRESS = "DPREC_REPORTS"
"""The variable that says where reports are served; runs of a schedule inherit it."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """Nothing: what a stranger sends and breaks off is nobody's to read."""


class _Reports(SimpleHTTPRequestHandler):
    """The files of one folder, below a path that cannot be guessed; no lists of files."""

    timeout = SECONDS

    def __init__(self, *arguments: Any, secret: str, **options: Any) -> None:
        self._secret = secret
        super().__init__(*arguments, **options)

    def send_head(self) -> Any:
        start, secret, path = [*self.path.partition("?")[0].split("/", 2), "", ""][:3]
        if start or not secrets.compare_digest(secret.encode(), self._secret.encode()):
            return self.send_error(HTTPStatus.NOT_FOUND)
        target = PurePosixPath("/", path.lstrip("/"))
        if Path(self.translate_path(str(target))).is_dir():
            target /= "index.html"  # without a redirect, which would not know the secret
        self.path = str(target)
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
        The address of the folder, without a slash at its end.
    """
    secret = secrets.token_urlsafe(16)
    handler = partial(_Reports, secret=secret, directory=str(folder.resolve()))
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ[ADDRESS] = f"http://127.0.0.1:{server.server_port}/{secret}"
    return os.environ[ADDRESS]


def link(path: Path, folder: Path) -> str:
    """Where a browser finds a file of the served folder; its `file:` address while nothing serves it."""
    if address := os.environ.get(ADDRESS):
        return f"{address}/{path.relative_to(folder).as_posix()}"
    return path.resolve().as_uri()
