"""Getting a published file: from where the user placed it, from a mirror, or from its official address."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import SEEK_END, BufferedWriter
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from tasks.errors import ByHandError, DataError

_BUSY = {408, 425, 429, 500, 502, 503, 504}  # answers worth asking again for


class Options(BaseModel):
    """What params.yaml may say to a source or a format beyond its name.

    No unknown keys, and no guessing: a quoted number, or `true` for 1, is a mistake.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NoOptions(Options):
    """For a source or format that leaves nothing open."""


@dataclass(frozen=True)
class Source:
    """What is said about a raw data set: by `dprec data list`, by the download stage, in records and reports."""

    name: str
    address: str
    """Official page or file; for generated data, the module that generates them."""
    synthetic: bool
    licence: str
    holds: str
    """What is in it, in a few words with numbers."""
    size: int
    """Bytes as distributed; of generated data, about what is written at the default scale."""
    entry: str = ""
    """How params.yaml asks for it, under `datasets`, with the published or most usual options."""
    files: tuple[RemoteFile | FormFile, ...] = ()
    """What has to be fetched; nothing for generated data."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as its publisher distributes it."""

    address: str
    """Official address (https)."""
    size: int
    """Bytes."""
    md5: str | None
    """None where not known."""
    sha256: str
    mirror_path: str
    """Where a mirror keeps it, below the mirror's root. A mirror may have packed it anew."""

    @property
    def name(self) -> str:
        """Its name at the official address."""
        return self.address.rpartition("/")[2]

    @property
    def limit(self) -> int:
        """Most bytes that a re-packed copy may have."""
        return 2 * self.size


@dataclass(frozen=True)
class FormFile:
    """A file that its publisher hands out after a form, a login or an e-mail: no program can fetch it."""

    name: str
    """Where the user places it, below data/placed."""
    page: str
    """Where to ask for it."""
    what: str
    """What to ask for, and which file of it this is."""
    mirror_path: str
    """Where a mirror keeps it, below the mirror's root."""
    size: int | None = None
    """Bytes, None where not known."""
    sha256: str | None = None
    limit: int = 32 << 30
    """Most bytes that are taken from a mirror's address."""

    def instruction(self, placed: Path) -> str:
        """Three lines: where, what, where to put it."""
        return f"get it at: {self.page}\nask for: {self.what}\nput it at: {placed / self.name}"


@dataclass(frozen=True)
class Places:
    """Where files may lie and how much is said while they come."""

    mirror: str | None
    """Folder or http(s) address of a mirror (the environment's DPREC_MIRROR), None for none."""
    placed: Path
    """Folder where a user puts files fetched by other means, under their official names."""
    downloads: Path
    """Folder where downloads lie while they are incomplete."""
    progress: bool = False
    """Show a bar on standard error."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long a download insists."""

    attempts: int = 5
    first_wait: float = 1.0
    """Seconds before the second attempt; each further wait is twice as long."""
    timeout: float = 30.0
    """Seconds without an answer after which an attempt has failed."""


class _TryAgain(Exception):
    """The server gave an answer that another attempt may better."""


class _RunningError(DataError):
    """Another process is at the same download."""


@contextmanager
def fetched(file: RemoteFile | FormFile, places: Places, retries: RetryPolicy = RetryPolicy()) -> Iterator[Path]:
    """Yield a local path of `file`: the placed file if there is one, else the mirror's if one is set, else a download.

    A placed file and a mirror's are handed on unverified where a mirror may have packed them anew: verify what is
    inside. The official one has the published size and checksums. A download goes on where an interrupted one
    stopped, and is deleted once the caller is done with it or has refused it with a `DataError`.

    Raises:
        ByHandError: the file is neither placed nor in a mirror, and only its publisher's form gives it out.
        DataError: mirror, file or address not there; another size or checksum than published; too little disk
            space; the same download already running.
    """
    mirror = places.mirror
    if (path := places.placed / file.name).is_file():
        if isinstance(file, FormFile):
            verify(path, file)
        yield path
        return
    if mirror is not None and not mirror.startswith(("http://", "https://")):
        yield _in_folder(Path(mirror), file, places.placed)
        return
    if mirror is None and isinstance(file, FormFile):
        raise ByHandError(f"{file.name} has to be fetched by hand\n{file.instruction(places.placed)}")
    official = isinstance(file, RemoteFile) and mirror is None
    address = f"{mirror.rstrip('/')}/{file.mirror_path}" if mirror else _address(file)
    places.downloads.mkdir(parents=True, exist_ok=True)
    # The address is part of the name: what one server sent is never continued with what another sends.
    name = f"{hashlib.sha256(address.encode()).hexdigest()[:12]}-{Path(file.name).name}"
    target = places.downloads / name
    if not target.is_file():
        otherwise = f"set DPREC_MIRROR to a mirror's folder or address, or place the file at {path}"
        partial = target.with_name(f"{target.name}.partial")
        size = file.size if official else None
        transfer = _Transfer(address, partial, size, file.limit, otherwise)
        transfer.run(progress=places.progress, retries=retries)
        partial.replace(target)
    try:
        if official:
            verify(target, file)
        yield target
    except DataError:
        target.unlink(missing_ok=True)
        raise
    target.unlink(missing_ok=True)


def copy(file: RemoteFile | FormFile, folder: Path, places: Places) -> Path:
    """Put a copy of `file` into `folder` under its base name.

    Raises:
        DataError: as in `fetched`.
    """
    target = folder / Path(file.name).name
    with fetched(file, places) as path:
        shutil.copyfile(path, target)
    return target


def _address(file: RemoteFile | FormFile) -> str:
    assert isinstance(file, RemoteFile)
    return file.address


def verify(path: Path, file: RemoteFile | FormFile) -> None:
    """Compare size, MD5 and SHA-256 of a file with the published ones, as far as they are known.

    Raises:
        DataError: one differs (says expected and found).
    """
    downloaded = isinstance(file, RemoteFile)
    expected = {"size": None if file.size is None else f"{file.size:,} bytes"}
    if isinstance(file, RemoteFile):
        expected["md5"] = file.md5
    expected["sha256"] = file.sha256
    got = {"size": f"{path.stat().st_size:,} bytes"}
    for what, value in expected.items():
        if value is None:
            continue
        if what not in got:
            with path.open("rb") as content:
                got[what] = hashlib.file_digest(content, what).hexdigest()
        if got[what] != value:
            raise DataError(
                f"{file.address if isinstance(file, RemoteFile) else path}: {what} is {got[what]}, expected {value}; "
                + (
                    "the copy was deleted, run it again, and if it differs again the published file has changed"
                    if downloaded
                    else "it is not the published file, or not whole: get it again"
                )
            )


def _in_folder(mirror: Path, file: RemoteFile | FormFile, placed: Path) -> Path:
    path = mirror / file.mirror_path
    if path.is_file():
        return path
    what = f"it holds no {file.mirror_path}" if mirror.is_dir() else "there is no such folder"
    missing = f"DPREC_MIRROR={mirror}: {what} (looked for {path})"
    if isinstance(file, FormFile) and mirror.is_dir():
        raise ByHandError(f"{missing}\n{file.instruction(placed)}")
    raise DataError(f"{missing}; correct DPREC_MIRROR or unset it")


@dataclass(frozen=True)
class _Transfer:
    """One file on its way from an address to `partial`."""

    address: str
    partial: Path
    size: int | None
    """Bytes, None where only the server knows."""
    limit: int
    otherwise: str
    """What to do where the address cannot be reached."""

    def run(self, *, progress: bool, retries: RetryPolicy) -> None:
        """Fill `partial`, going on where it stops; it stays for the next run unless it can be of no use."""
        attempts = Retrying(
            stop=stop_after_attempt(retries.attempts),
            wait=wait_exponential(multiplier=retries.first_wait, max=60),
            retry=retry_if_exception_type((httpx.TransportError, _TryAgain)),
            reraise=True,
        )
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        try:
            with (
                self.partial.open("ab") as out,
                httpx.Client(follow_redirects=True, timeout=retries.timeout) as client,
                Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), disable=not progress) as bar,
            ):
                self._lock(out)
                task = bar.add_task(self.address.rpartition("/")[2], total=self.size)
                for attempt in attempts:
                    with attempt:
                        self._go_on(client, out, lambda done, total: bar.update(task, completed=done, total=total))
        except _RunningError:
            raise
        except (httpx.TransportError, httpx.InvalidURL, httpx.TooManyRedirects, _TryAgain) as error:
            why = f"{str(error) or type(error).__name__}; {self._keep()}"
            raise DataError(f"{self.address}: not reachable ({why}); {self.otherwise}") from error
        except (DataError, OSError) as error:
            self.partial.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                folder = self.partial.parent
                raise DataError(f"{folder}: no space left for {self.address}; free some and run it again") from error
            raise

    def _keep(self) -> str:
        if kept := self.partial.stat().st_size:
            return f"{kept:,} bytes are kept and the next run goes on from there"
        self.partial.unlink()
        return "nothing was received"

    def _lock(self, out: BufferedWriter) -> None:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _RunningError(f"{self.address}: another run is downloading it; wait until that one is done") from None
        out.seek(0, SEEK_END)

    def _go_on(self, client: httpx.Client, out: BufferedWriter, show: Callable[[int, int | None], None]) -> None:
        """One attempt at the rest of the file."""
        start = out.tell()
        if start == self.size:
            return
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with client.stream("GET", self.address, headers=headers) as response:
            status = f"answered {response.status_code} {response.reason_phrase}"
            content_range = response.headers.get("content-range", "")
            if start and response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                if content_range == f"bytes */{start}":
                    return
                _empty(out)
                raise _TryAgain(status)
            if response.status_code in _BUSY:
                raise _TryAgain(status)
            if not response.is_success:
                raise DataError(f"{self.address}: {status}; {self.otherwise}")
            if start and not content_range.startswith(f"bytes {start}-"):
                start = _empty(out)  # the server sends the whole file although asked for the rest
            length = response.headers.get("content-length")
            total = self.size if length is None else start + int(length)
            self._require_space((total or self.limit) - start)
            for chunk in response.iter_raw():
                out.write(chunk)
                show(out.tell(), total)
                if out.tell() > self.limit:
                    raise DataError(
                        f"{self.address}: sends more than {self.limit:,} bytes, so it is not the published file; "
                        f"{self.otherwise}"
                    )
        if self.size is not None and out.tell() < self.size:
            raise _TryAgain(f"stopped after {out.tell():,} of {self.size:,} bytes")

    def _require_space(self, need: int) -> None:
        folder = self.partial.parent
        if need > (free := shutil.disk_usage(folder).free):
            raise DataError(
                f"{folder}: {self.address} needs {need:,} more bytes, {free:,} are free; free some and run it again"
            )


def _empty(out: BufferedWriter) -> int:
    out.truncate(0)
    return out.seek(0)
