"""One file on its way from an http(s) address: it goes on where it stopped, and ends where that is of no use.

pooch is not used: it begins again what was cut off.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from io import SEEK_END, BufferedWriter
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from tasks.core.errors import DataError

_BUSY = {408, 425, 429, 500, 502, 503, 504}  # answers worth asking again for


@dataclass(frozen=True)
class RetryPolicy:
    """How long a download insists."""

    attempts: int = 5
    first_wait: float = 1.0
    """Seconds before the second attempt; each further wait is twice as long."""
    timeout: float = 30.0
    """Seconds without an answer after which an attempt has failed."""
    slowest: float = 1000.0
    """Bytes per second, on average over `window`, below which a download ends."""
    window: float = 60.0
    """Seconds."""
    longest: float = 24 * 3600.0
    """Seconds after which an attempt ends, however fast it is."""


PATIENT = RetryPolicy()


class _TooSlowError(Exception):
    """The server sends so little, or for so long, that waiting is of no use."""


class _TryAgainError(Exception):
    """The server gave an answer that another attempt may better."""


class UnreachedError(DataError):
    """The address does not give the file; there are other ways to have it."""


class _RunningError(DataError):
    """Another process is at the same download."""


def redact(address: str) -> str:
    """An address as messages have it: without name, password, query and fragment, which may be secret."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:  # the reason quotes it
        return "the mirror"
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"


@dataclass(frozen=True)
class Transfer:
    """One file on its way from an address to `partial`."""

    address: str
    """With what must not be shown."""
    partial: Path
    size: int | None
    """Bytes, None where only the server knows."""
    limit: int

    @property
    def label(self) -> str:
        """The address without what must not be shown."""
        return redact(self.address)

    def run(self, *, progress: bool, retries: RetryPolicy) -> None:
        """Fill `partial`, going on where it stops; it stays for the next run unless it can be of no use."""
        attempts = Retrying(
            stop=stop_after_attempt(retries.attempts),
            wait=wait_exponential(multiplier=retries.first_wait, max=60),
            retry=retry_if_exception_type((httpx.TransportError, _TryAgainError)),
            reraise=True,
        )
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every address as it is
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        try:
            with (
                self.partial.open("ab") as out,
                httpx.Client(follow_redirects=True, timeout=retries.timeout) as client,
                Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), disable=not progress) as bar,
            ):
                self._lock(out)
                task = bar.add_task(self.label.rpartition("/")[2], total=self.size)
                for attempt in attempts:
                    with attempt:
                        self._go_on(client, out, retries, partial(bar.update, task))
        except _RunningError:
            raise
        except httpx.InvalidURL:
            self.partial.unlink(missing_ok=True)
            raise UnreachedError(f"{self.label} is none") from None
        except _TooSlowError as error:
            raise self._unreached("too slow", error) from error
        except (httpx.TransportError, httpx.TooManyRedirects, _TryAgainError) as error:
            raise self._unreached("not reachable", error) from error
        except (DataError, OSError) as error:
            self.partial.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                folder = self.partial.parent
                raise DataError(f"{folder}: no space left for {self.label}; free some and run it again") from error
            raise

    def _unreached(self, what: str, error: Exception) -> UnreachedError:
        head = f"{self.label}: {what} ({str(error) or type(error).__name__}"
        if kept := self.partial.stat().st_size:
            return UnreachedError(f"{head}; {kept:,} bytes are kept and the next run goes on from there)")
        self.partial.unlink()
        return UnreachedError(f"{head}; nothing was received)")

    def _lock(self, out: BufferedWriter) -> None:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _RunningError(f"{self.label}: another run is downloading it; wait until that one is done") from None
        out.seek(0, SEEK_END)

    def _go_on(
        self, client: httpx.Client, out: BufferedWriter, allowed: RetryPolicy, show: Callable[..., None]
    ) -> None:
        """One attempt at the rest of the file.

        A server that sends a byte at a time never runs into the timeout of a single answer, so its pace is watched.
        """
        start = out.tell()
        if start == self.size:
            return
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        request = client.build_request("GET", self.address, headers=headers)
        with closing(_answer(client, request, allowed.window)) as response:
            status = f"answered {response.status_code} {response.reason_phrase}"
            content_range = response.headers.get("content-range", "")
            if start and response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                if content_range == f"bytes */{start}":
                    return
                _truncate(out)
                raise _TryAgainError(status)
            if response.status_code in _BUSY:
                raise _TryAgainError(status)
            if not response.is_success:
                raise UnreachedError(f"{self.label}: {status}")
            if start and not content_range.startswith(f"bytes {start}-"):
                start = _truncate(out)  # the server sends the whole file although asked for the rest
            length = response.headers.get("content-length")
            total = self.size if length is None else start + int(length)
            self._require_space((total or self.limit) - start)
            began = since = time.monotonic()
            before = start
            for chunk in response.iter_raw():
                out.write(chunk)
                show(completed=out.tell(), total=total)
                if (now := time.monotonic()) - began > allowed.longest:
                    raise _TooSlowError(f"it takes longer than {allowed.longest:,g} s")
                if now - since > allowed.window:
                    if (came := out.tell() - before) < allowed.slowest * allowed.window:
                        raise _TooSlowError(f"{came:,} bytes in {allowed.window:g} s")
                    since, before = now, out.tell()
                if out.tell() > self.limit:
                    raise UnreachedError(
                        f"{self.label}: sends more than {self.limit:,} bytes, so it is not the published file"
                    )
        if self.size is not None and out.tell() < self.size:
            raise _TryAgainError(f"stopped after {out.tell():,} of {self.size:,} bytes")

    def _require_space(self, need: int) -> None:
        folder = self.partial.parent
        if need > (free := shutil.disk_usage(folder).free):
            raise DataError(
                f"{folder}: {self.label} needs {need:,} more bytes, {free:,} are free; free some and run it again"
            )


def _answer(client: httpx.Client, request: httpx.Request, seconds: float) -> httpx.Response:
    """The status and headers of an answer; a server may send these, too, a byte at a time."""
    answer: Future[httpx.Response] = Future()

    def ask() -> None:
        try:
            answer.set_result(client.send(request, stream=True))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()  # ends with the client
    try:
        return answer.result(seconds)
    except TimeoutError:
        raise _TooSlowError(f"no whole answer in {seconds:g} s") from None


def _truncate(out: BufferedWriter) -> int:
    out.truncate(0)
    return out.seek(0)
