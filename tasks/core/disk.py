"""Bringing files to the disk: what is renamed into its place is whole there, even after a power cut; digests."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

_HOST = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]
"""In the names of unfinished outputs: the id of a process means something on its own host alone."""


def sync(path: Path) -> None:
    """Wait until a file, or a folder with all that is in it, is on the disk."""
    for written in [*path.rglob("*"), path] if path.is_dir() else [path]:
        _sync(written)


def rename(source: Path, target: Path, *, durable: bool = True) -> None:
    """Rename a file or a folder, in whose place there may be a file or an empty folder.

    Args:
        durable: have its content on the disk before, and its new name there after.

    Raises:
        OSError: as `os.replace`.
    """
    if durable:
        sync(source)
    os.replace(source, target)
    if durable:
        _sync(target.parent)


@contextmanager
def atomic_write(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Yield a path next to `path` to write a file or fill a folder; on success it replaces `path` in one rename.

    On any error, Ctrl-C included, what was written is removed and `path` is as it was before. For a folder, create
    it first: `place.mkdir()`. Of several processes that write one `path` the last to finish stays. A file that its
    owner may write to keeps its mode.

    Args:
        durable: have everything on the disk before the rename, so that not even a power cut leaves half of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.with_name(f".{path.name}.{_HOST}.{os.getpid()}.partial")
    _sweep(path)
    try:
        yield target
        _replace(target, path, durable=durable)
    except OSError as error:
        if error.errno == errno.ENOSPC and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        remove(target)


def _replace(target: Path, path: Path, *, durable: bool) -> None:
    """Rename `place` to `path`, from which a folder must be moved away first: another process may do so, too."""
    if path.is_file() and target.is_file() and (mode := stat.S_IMODE(path.stat().st_mode)) & stat.S_IWUSR:
        target.chmod(mode)
    if durable:
        sync(target)  # while the old output is still in its place
    old = path.with_name(f".{path.name}.{_HOST}.{os.getpid()}.old.partial")
    while True:
        if target.is_dir():
            with suppress(FileNotFoundError):
                rename(path, old, durable=False)
        try:
            rename(target, path, durable=durable)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            remove(old)  # another process has put its own in that place meanwhile
        else:
            break
    remove(old)


def _sweep(path: Path) -> None:
    """Clear away what killed runs of this host left next to `path`; what a live process is writing is not touched."""
    prefix = f".{path.name}.{_HOST}."
    for left in path.parent.glob(f"{prefix}*.partial"):
        pid = left.name.removeprefix(prefix).split(".")[0]
        if pid.isdecimal() and int(pid) != os.getpid() and _is_alive(int(pid)):
            continue
        with suppress(OSError):  # another process may clear it away at the same time
            if left.name.endswith(".old.partial") and not path.exists():
                rename(left, path)  # killed between the two renames: the old output is still the current one
            else:
                remove(left)


def _is_alive(pid: int) -> bool:
    """Whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def remove(path: Path) -> None:
    """Delete a file or folder if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def require_writable(path: Path) -> None:
    """Refuse a path that could not be made, before what may take hours.

    Raises:
        PermissionError: the folder above it is none, or may not be written to.
    """
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    try:
        TemporaryFile(dir=folder).close()
    except OSError:
        raise PermissionError(errno.EACCES, "not a folder that may be written to", str(folder)) from None


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
