"""Getting a published file: from where the user placed it, from a mirror, or from its official address."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from tasks.datasets.transfer import PATIENT, RetryPolicy, Transfer
from tasks.disk import rename
from tasks.errors import ByHandError, DataError

PLAIN = re.compile(r"(?!//)[^@?#:=\\]*")
"""What DPREC_MIRROR says if it can be nothing but a path, and may be shown."""


class Options(BaseModel):
    """What params.yaml may say to a source or a format beyond its name.

    No unknown keys, and no guessing: a quoted number, or `true` for 1, is a mistake.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ReplicaOptions(Options):
    """How large a synthetic replica is; each says what of it grows how with the scale."""

    scale: float = Field(gt=0, allow_inf_nan=False)
    """1.0: as large as the published data."""
    seed: int = Field(ge=0)


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

    mirror: str | None = field(repr=False)
    """Folder or http(s) address of a mirror (the environment's DPREC_MIRROR), None for none."""
    placed: Path
    """Folder where a user puts files fetched by other means, under their official names."""
    downloads: Path
    """Folder where downloads lie while they are incomplete."""
    progress: bool = False
    """Show a bar on standard error."""

    @property
    def mirror_address(self) -> str | None:
        """The mirror, where it is an http(s) address."""
        said = self._said
        return said if re.match("https?://", said, re.IGNORECASE) else None

    @property
    def mirror_folder(self) -> Path | None:
        """The mirror, where it is a folder."""
        return Path(self._said) if self._said and not self.mirror_address else None

    @property
    def _said(self) -> str:
        """Without the spaces and quotes that a file of settings may have left around it."""
        return (self.mirror or "").strip(" \t\r\n\"'")


@contextmanager
def local_file(file: RemoteFile | FormFile, places: Places, retries: RetryPolicy = PATIENT) -> Iterator[Path]:
    """Yield a local path of `file`: the placed file if there is one, else the mirror's if one is set, else a download.

    A placed file and a mirror's are handed on unverified where a mirror may have packed them anew: verify what is
    inside. The official one has the published size and checksums. A download goes on where an interrupted one
    stopped, and is deleted once the caller is done with it or has refused it with a `DataError`.

    Raises:
        ByHandError: the file is neither placed nor in a mirror, and only its publisher's form gives it out.
        DataError: mirror, file or address not there; another size or checksum than published; too little disk
            space; the same download already running.
    """
    if (path := places.placed / file.name).is_file():
        if isinstance(file, FormFile):
            verify(path, file)
        yield path
        return
    if places.mirror_folder is not None:
        yield _in_folder(places.mirror_folder, file, places.placed)
        return
    mirror = places.mirror_address
    if mirror is None and isinstance(file, FormFile):
        raise ByHandError(f"{file.name} has to be fetched by hand\n{file.instruction(places.placed)}")
    official = isinstance(file, RemoteFile) and mirror is None
    address = _mirror_address(mirror, file.mirror_path) if mirror else _address(file)
    places.downloads.mkdir(parents=True, exist_ok=True)
    # The address is part of the name: what one server sent is never continued with what another sends.
    name = f"{hashlib.sha256(address.encode()).hexdigest()[:12]}-{Path(file.name).name}"
    target = places.downloads / name
    if not target.is_file():
        otherwise = f"set DPREC_MIRROR to a mirror's folder or address, or place the file at {path}"
        partial = target.with_name(f"{target.name}.partial")
        size = file.size if official else None
        transfer = Transfer(address, partial, size, file.limit, otherwise)
        transfer.run(progress=places.progress, retries=retries)
        rename(partial, target)
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
        DataError: as in `local_file`.
    """
    target = folder / Path(file.name).name
    with local_file(file, places) as path:
        shutil.copyfile(path, target)
    return target


def copy_verified(files: Iterable[RemoteFile | FormFile], folder: Path, places: Places) -> None:
    """Put copies of files into `folder` under their base names, if they are what is known of the published ones.

    Raises:
        DataError: as in `local_file` and `verify`.
    """
    for file in files:
        with local_file(file, places) as path:
            verify(path, file)
            shutil.copyfile(path, folder / Path(file.name).name)


def _address(file: RemoteFile | FormFile) -> str:
    assert isinstance(file, RemoteFile)
    return file.address


def _mirror_address(mirror: str, path: str) -> str:
    """The address of a mirror's file; what its user appended to the mirror's address, such as a token, stays."""
    base, mark, query = mirror.partition("?")
    return f"{base.rstrip('/')}/{path}{mark}{query}"


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
    if os.path.isfile(path):  # False also for what no path can be
        return path
    is_folder = os.path.isdir(mirror)
    if PLAIN.fullmatch(str(mirror)):
        what = f"it holds no {file.mirror_path}" if is_folder else "there is no such folder"
        missing = f"DPREC_MIRROR={mirror}: {what} (looked for {path})"
    else:  # an address that was mistyped, perhaps with a password
        missing = f"DPREC_MIRROR: {f'it holds no {file.mirror_path}' if is_folder else 'no such folder'}"
    if isinstance(file, FormFile) and is_folder:
        raise ByHandError(f"{missing}\n{file.instruction(placed)}")
    raise DataError(f"{missing}; correct DPREC_MIRROR or unset it")
