"""What the machines of a cluster share, and what a worker does with it: one unit, from inputs there to results there.

A store is a folder or anything else that `fsspec` opens by an address: `s3://…`, `gcs://…`, `ssh://…`. Below it lie

    files/SHA-256             inputs of units, files of finished units, lists of either
    units/FOLDER              the name of the list of a finished unit, written after its files

Every file is hashed when it is read, which shows damage. It shows no forgery: who may write there decides what a unit's
results are. No one needs to lock anything, and what is removed from a store is put there or computed again.

A worker needs the project's environment (a clone at the driver's revision, in whose folder it is started) and a store.
Parameters and data come from there; the code is its own. Where that gives a unit another key it is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from flows.execution import StageFailed, reason, say
from tasks.core.disk import rename
from tasks.core.errors import ConfigurationError, DataError
from tasks.pipeline import runs
from tasks.pipeline.common import atomic_write, file_digest
from tasks.pipeline.parent import end_with

RENAMED = {"file", "local", "sftp", "ssh", "smb"}
"""Where a file appears whole only if it is renamed into its place; object stores do so by themselves."""
BUCKETS = {"s3", "s3a", "gs", "gcs"}
"""Where the first part of a path is a bucket, which its owner makes."""
CODE = Path(__file__).resolve().parents[1]
"""The folder of this code, which units import."""
PASSWORD = re.compile(r"://[^/]*:(?!\d*/)[^@]*@")
"""`user:password@`, and no port; as it stands, a slash in it would end the name of the host."""
SHA256 = re.compile(r"[0-9a-f]{64}")


class Store:
    """A store at an address.

    Raises:
        ConfigurationError: `fsspec` cannot open it, there is no such bucket, or it holds a password.
    """

    def __init__(self, address: str) -> None:
        from fsspec.core import url_to_fs

        require_no_secret(address)
        try:
            self._files, self._root = url_to_fs(address)
            protocol = self._files.protocol
            protocols = {protocol} if isinstance(protocol, str) else set(protocol)
            if BUCKETS & protocols and not self._files.exists(self._root.partition("/")[0]):
                raise FileNotFoundError("there is no such bucket; make it first")
        except Exception as error:  # packages of stores have errors of their own kinds
            raise ConfigurationError(f"{address}: no store that can be opened ({line_of(error)})") from None
        self._renames = bool(RENAMED & protocols)

    def put_files(self, paths: Iterable[Path], above: Path = Path()) -> str:
        """Put files and all below folders there, and a list of them by their paths from `above`; the list's name."""
        files = sorted({file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])})
        listed = {
            file.relative_to(above).as_posix(): self._put(file) if file.is_file() else None
            for file in files
            if file.exists()
        }
        return self._put(json.dumps(listed, sort_keys=True).encode())

    def get_files(self, listed: str, target: Path) -> None:
        """Write the files of a list below a folder.

        Raises:
            DataError: one is missing, or not what its name says; then it is removed.
        """
        path = target / ".list"
        self._get(listed, path)
        table: dict[str, str | None] = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        for name, digest in table.items():
            place = _path_within(target, name)
            if digest is None:  # a folder, which may be empty
                place.mkdir(parents=True, exist_ok=True)
            else:
                self._get(digest, place)

    def put_unit(self, done: Path, folder: str) -> None:
        """Put the results of a unit there, which lie in `done` and agree with their manifest.

        folder: of the unit, relative to the project; its name is the unit's key.
        """
        runs.verify(done, PurePosixPath(folder).name)
        self._write(self.put_files([done], done).encode(), f"units/{folder}")

    def get_unit(self, folder: str, done: Path) -> bool:
        """Write the results of a unit to `done`; False where they are not there, or not as its manifest has them.

        The second says a line: the unit is worked on again.
        """
        try:
            with atomic_write(done) as target:
                target.mkdir()
                listed = self._files.cat_file(f"{self._root}/units/{folder}")
                self.get_files(listed.decode(errors="replace"), target)
                runs.verify(target, PurePosixPath(folder).name)
        except FileNotFoundError:
            return False
        except DataError as error:
            say(folder, f"not taken from the store ({error})")
            return False
        return True

    def _put(self, content: Path | bytes) -> str:
        """Put a file or some bytes there, unless they are; their SHA-256."""
        if isinstance(content, Path):
            digest, size = file_digest(content), content.stat().st_size
        else:
            digest, size = hashlib.sha256(content).hexdigest(), len(content)
        name = f"files/{digest}"
        with suppress(FileNotFoundError):
            if self._files.size(f"{self._root}/{name}") == size:
                return digest
        self._write(content, name)
        return digest

    def _write(self, content: Path | bytes, name: str) -> None:
        target = f"{self._root}/{name}"
        if self._renames:
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
        first = f"{target}.{secrets.token_hex(8)}.partial" if self._renames else target
        if isinstance(content, Path):
            self._files.put_file(str(content), first)
        else:
            self._files.pipe_file(first, content)
        if self._renames:
            self._files.mv(first, target)

    def _get(self, digest: str, path: Path) -> None:
        if not SHA256.fullmatch(digest):
            raise DataError(f"{digest}: not the SHA-256 of a file")
        name = f"{self._root}/files/{digest}"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._files.get_file(name, str(path))
        except FileNotFoundError:
            raise DataError(f"{name}: not in the store; run it again") from None
        if file_digest(path) != digest:
            path.unlink()
            self._files.rm_file(name)
            raise DataError(f"{name}: not what its name says, and removed; run it again")


def located(store: str | None, cwd: Path, suite: str, *, clustered: bool) -> str | None:
    """An address as it stands, a folder from where the command was given; None where there is none.

    Raises:
        ConfigurationError: it is for nothing, or holds a secret.
    """
    if not store:
        return None
    if not clustered:
        raise ConfigurationError(f"--store is for --cluster; `dprec run {suite}` alone works in this folder")
    require_no_secret(store)
    return store if "://" in store else str(cwd / store)


def require_no_secret(address: str) -> None:
    """Refuse an address that holds a password or a query: it is a parameter of the run, and is shown.

    Raises:
        ConfigurationError: it does.
    """
    for each in address.split("::"):  # one in another
        try:
            parts = urlsplit(each)
        except ValueError:  # it is no address, and will be refused as such
            continue
        password = PASSWORD.search(each) or (parts.scheme in ("http", "https") and parts.username)
        if password or (parts.scheme and parts.query):
            kind = "a password" if password else "a query (?...)"
            raise ConfigurationError(
                f"the store's address holds {kind}, which a run would show and record; leave it to the settings of the "
                "package that opens the store"
            )


def line_of(error: BaseException) -> str:
    """An error as one line; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def _path_within(target: Path, name: str) -> Path:
    """A path of a list, which must not lead out of its folder."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise DataError(f"{name}: leads out of its folder")
    return target.joinpath(*parts)


def work_on(store: str, inputs: str, module: str, argument: str, label: str, folder: str, force: str) -> str:
    """Work on one unit and put its results into the store; which machine did, and for how long.

    Args:
        store: address of the store.
        inputs: the list of its inputs there.
        module, argument: of the stage: `python -m tasks.stages.MODULE ARGUMENT`.
        label, folder: of the unit, as the driver has them; the folder's name is its key.
        force: "1": also if it is finished.

    Raises:
        StageFailed: with the unit's own last word, or what is wrong with the store.
    """
    os.umask(0o077)  # rows of users
    start = time.monotonic()
    try:
        shared = Store(store)
        project = _project(shared, inputs)
        command = [sys.executable, "-m", f"tasks.stages.{module}", argument, "--unit", label]
        command += ["--key", PurePosixPath(folder).name, *(["--force"] if force else [])]
        done = subprocess.run(
            command,
            cwd=project,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
            preexec_fn=partial(end_with, os.getpid()),
        )
        if done.returncode != 0:
            lines = list(filter(str.strip, done.stdout.splitlines()))
            raise StageFailed(reason(lines[-1].strip() if lines else "", done.returncode))
        shared.put_unit(project / folder / "done", folder)
    except Exception as error:  # stores have errors of their own kinds, which the driver may not know
        raise StageFailed(line_of(error)) from None
    return f"{socket.gethostname()}, {time.monotonic() - start:.1f} s"


def environment() -> dict[str, str]:
    """Of a unit: the worker's, with nothing of Prefect's, and the code of the folder that it was started in."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PREFECT_")}
    path = [str(Path.cwd()), str(CODE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return kept | {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


def _project(store: Store, inputs: str) -> Path:
    """A folder with these inputs, which units that have the same ones share."""
    from distributed import get_worker

    parent = Path(get_worker().local_directory) / "dprec"  # which Dask removes with the worker
    parent.mkdir(parents=True, exist_ok=True)
    project = parent / inputs
    if not project.is_dir():
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            target = Path(folder) / "project"
            target.mkdir()
            store.get_files(inputs, target)
            try:
                rename(target, project, durable=False)
            except OSError:  # another unit of this worker was faster
                if not project.is_dir():
                    raise
    return project
