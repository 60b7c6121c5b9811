"""Getting a published file: from where the user placed it, from a mirror, or from its official address."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from tasks.core.disk import rename
from tasks.core.errors import ByHandError, DataError
from tasks.datasets.transfer import PATIENT, RetryPolicy, Transfer, UnreachedError

if TYPE_CHECKING:
    _Options = TypeVar("_Options")

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
    """Official page or file; empty for generated data."""
    licence: str
    """In a sentence."""
    holds: str
    """What is in it, in a few words with numbers."""
    entry: str
    """How params.yaml asks for it, under `datasets`, with the published or most usual options."""
    files: tuple[RemoteFile | FormFile, ...] = ()
    """What has to be fetched; nothing for generated data."""
    terms: str = ""
    """What else is asked of users, in more sentences."""
    about: int = 0
    """Bytes, where the files do not say them; of generated data those at the default scale."""
    synthetic: bool = False

    @property
    def conditions(self) -> str:
        """The licence and the terms, as records and reports have them."""
        return f"{self.licence} {self.terms}" if self.terms else self.licence

    @property
    def size(self) -> int:
        """Bytes as distributed."""
        return self.about or sum(file.size or 0 for file in self.files)


@dataclass(frozen=True)
class RemoteFile:
    """A file as its publisher distributes it."""

    address: str
    """Official address (https)."""
    size: int
    """Bytes."""
    sha256: str
    mirror_path: str
    """Where a mirror keeps it, below the mirror's root. A mirror may have packed it again."""

    @property
    def name(self) -> str:
        """Its name at the official address."""
        return self.address.rpartition("/")[2]

    @property
    def below(self) -> str:
        """Where it lies below the folder of its data set."""
        return self.name

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

    @property
    def below(self) -> str:
        """Where it lies below the folder of its data set: the name without its first folder."""
        folder, _, name = self.name.partition("/")
        return name or folder

    def missing(self, placed: Path, *looked: object) -> ByHandError:
        """Where it was looked for, and three lines: where to get it, what, where to put it."""
        tried = f" (looked for {' or '.join(map(str, looked))})" if looked else ""
        return ByHandError(
            f"{self.name} has to be fetched by hand{tried}\nget it at: {self.page}\nask for: {self.what}\n"
            f"put it at: {placed / self.name}"
        )


def form_files(
    dataset: str, page: str, what: str, files: Mapping[str, tuple[int, str] | None], mirror: str = ""
) -> tuple[FormFile, ...]:
    """Files that one page gives out.

    Args:
        dataset: folder of them all below data/placed, and in a mirror unless `mirror` names another.
        what: to ask for, with `{}` for a file's name.
        files: name -> bytes and SHA-256, None where they are not known.
    """
    return tuple(
        FormFile(f"{dataset}/{name}", page, what.format(name), f"{mirror or dataset}/{name}", *(published or ()))
        for name, published in files.items()
    )


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
        return self._bare if re.match("https?://", self._bare, re.IGNORECASE) else None

    @property
    def mirror_folder(self) -> Path | None:
        """The mirror, where it is a folder."""
        return Path(self._bare) if self._bare and not self.mirror_address else None

    @property
    def _bare(self) -> str:
        """Without the spaces and quotes that a file of settings may have left around it."""
        return (self.mirror or "").strip(" \t\r\n\"'")


@contextmanager
def local_file(file: RemoteFile | FormFile, places: Places, retries: RetryPolicy = PATIENT) -> Iterator[Path]:
    """Yield a local path of `file`: the placed file if there is one, else the mirror's if one is set, else a download.

    A placed file and a mirror's are handed on unverified where a mirror may have packed them again: verify what is
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
    if mirror:
        address = _mirror_address(mirror, file.mirror_path)
    elif isinstance(file, RemoteFile):
        address = file.address
    else:
        raise file.missing(places.placed)
    places.downloads.mkdir(parents=True, exist_ok=True)
    # The address is part of the name: what one server sent is never continued with what another sends.
    name = f"{hashlib.sha256(address.encode()).hexdigest()[:12]}-{Path(file.name).name}"
    target = places.downloads / name
    if not target.is_file():
        partial = target.with_name(f"{target.name}.partial")
        transfer = Transfer(address, partial, None if mirror else file.size, file.limit)
        try:
            transfer.run(progress=places.progress, retries=retries)
        except UnreachedError as error:
            raise DataError(
                f"{error}; set DPREC_MIRROR to a mirror's folder or address, or place the file at {path}"
            ) from error
        rename(partial, target)
    try:
        if not mirror:
            verify(target, file)
        yield target
    except DataError:
        target.unlink(missing_ok=True)
        raise
    target.unlink(missing_ok=True)


def copy_files(files: Iterable[RemoteFile | FormFile], folder: Path, places: Places) -> None:
    """Put copies of files into `folder`, if they are what is known of the published ones.

    Raises:
        ByHandError, DataError: as in `local_file` and `verify`.
    """
    for file in files:
        target = folder / file.below
        target.parent.mkdir(parents=True, exist_ok=True)
        with local_file(file, places) as path:
            verify(path, file)
            shutil.copyfile(path, target)


def copied(source: Callable[[_Options], Source]) -> Callable[[Path, Places, _Options], None]:
    """The `obtain` of a data set whose files are taken as they are.

    Args:
        source: options -> what is said of the data set, with its files.
    """

    def obtain(folder: Path, places: Places, options: _Options) -> None:
        """Fill `folder` with the files of the source; errors as in `copy_files`."""
        copy_files(source(options).files, folder, places)

    return obtain


def by_option(option: str, variants: Mapping[str, Source]) -> Callable[[object], Source]:
    """The `source` of a data set of which an option says which files are meant."""
    return lambda options: variants[getattr(options, option)]


def _mirror_address(mirror: str, path: str) -> str:
    """The address of a mirror's file; what its user appended to the mirror's address, such as a token, stays."""
    base, mark, query = mirror.partition("?")
    return f"{base.rstrip('/')}/{path}{mark}{query}"


def verify(path: Path, file: RemoteFile | FormFile) -> None:
    """Compare size and SHA-256 of a file with the published ones, as far as they are known.

    Raises:
        DataError: one differs (says expected and found).
    """
    if file.size is not None and (size := path.stat().st_size) != file.size:
        raise _differs(path, file, "size", f"{size:,} bytes", f"{file.size:,} bytes")
    if file.sha256 is not None:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if digest != file.sha256:
            raise _differs(path, file, "sha256", digest, file.sha256)


def _differs(path: Path, file: RemoteFile | FormFile, what: str, actual: str, expected: str) -> DataError:
    difference = f"{what} is {actual}, expected {expected}"
    if isinstance(file, RemoteFile):
        return DataError(
            f"{file.address}: {difference}; the copy was deleted, run it again, and if it differs again the published "
            "file has changed"
        )
    return DataError(f"{path}: {difference}; it is not the published file, or not whole: get it again")


def _in_folder(mirror: Path, file: RemoteFile | FormFile, placed: Path) -> Path:
    path = mirror / file.mirror_path
    if os.path.isfile(path):  # False also for what no path can be
        return path
    is_folder = os.path.isdir(mirror)
    is_path = PLAIN.fullmatch(str(mirror)) is not None  # else an address that was mistyped, perhaps with a password
    if isinstance(file, FormFile) and is_folder:
        raise file.missing(placed, *((path,) if is_path else ()))
    raise DataError(
        f"DPREC_MIRROR{f'={mirror}' if is_path else ''}: "
        f"{f'it holds no {file.mirror_path}' if is_folder else 'there is no such folder'}"
        f"{f' (looked for {path})' if is_path else ''}; correct DPREC_MIRROR or unset it"
    )
