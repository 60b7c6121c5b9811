"""DVC's locks, of the project and of files (`.dvc/tmp/rwlock`): who holds them, without those that are gone.

DVC takes an owner for alive while any process has its id. Here an id that another process has by now, or that a dead
one still has (a zombie), does not count, and what cannot be read is nobody's.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import psutil

from tasks.errors import DprecError
from tasks.stages.common import atomic_write, remove

FILES = "rwlock"
STARTS = "rwlock.starts.json"
"""When the owners that are processes of dprec started: DVC's file has no place for it."""
SAME_SECONDS = 1.0
"""Two measurements of one process's start differ by less."""
CLOCK_SECONDS = 2.0
"""A file's time and a process's start may differ by this much although both are right."""


class Busy(DprecError):
    """Raised when another process holds what is needed; the message names it."""


def take(repo: Any, read: Sequence[str], written: Sequence[str]) -> AbstractContextManager[None]:
    """Keep other DVC commands from files until `release`; several threads must not call it at once.

    Raises:
        Busy: another process holds one of them.
    """
    from dvc.lock import LockError
    from dvc.rwlock import rwlock

    clear(repo)
    # named as DVC's own functions call us, which take the same locks while these are held
    files = rwlock(repo.tmp_dir, repo.fs, _command(), read, written, False)
    try:
        files.__enter__()
    except LockError as error:
        owner = re.search(r"\(PID (\d+)\): (.*)", str(error))
        raise Busy(f"process {owner[1]} ({owner[2]})" if owner else "another process") from None
    return files


def release(files: AbstractContextManager[None]) -> None:
    """Give back what `take` took, also where the file of locks was damaged meanwhile."""
    from dvc.exceptions import DvcException

    with suppress(AssertionError, KeyError, DvcException):
        files.__exit__(None, None, None)


def clear(repo: Any) -> bool:
    """Drop locks whose owners are gone; whether any is left of another process that runs DVC."""
    from dvc.lock import make_lock

    path, starts_path = Path(repo.tmp_dir, FILES), Path(repo.tmp_dir, STARTS)
    with make_lock(f"{path}.lock", tmp_dir=repo.tmp_dir, wait=True):
        files, starts = _files(path), _start_times(starts_path)
        since = path.stat().st_mtime if path.exists() else 0.0
        alive = {owner: _is_alive(*owner, starts.get(_key(*owner)), since) for owner in _owners(files)}
        kept = {
            "write": {file: info for file, info in files["write"].items() if alive[info["pid"], info["cmd"]]},
            "read": {
                file: left
                for file, infos in files["read"].items()
                if (left := [info for info in infos if alive[info["pid"], info["cmd"]]])
            },
        }
        if kept != files or not path.exists():
            _write(path, kept)
        owners = {_key(*owner) for owner, lives in alive.items() if lives}
        known = {key: start for key, start in starts.items() if key in owners} | {
            _key(os.getpid(), _command()): _start(psutil.Process())
        }
        if known != starts:
            _write(starts_path, known)
    return bool(owners - known.keys())


def holder(repo: Any) -> str:
    """Who holds DVC's lock of the project, as far as that can be known."""
    try:
        process = psutil.Process(int(Path(repo.tmp_dir, "lock").read_text(encoding="utf-8")))
        return f"process {process.pid} ({' '.join(process.cmdline())})"
    except (OSError, ValueError, psutil.Error):
        return "another process"


def _files(path: Path) -> dict[str, Any]:
    """DVC's locks on files; none where the file is not what DVC writes."""
    from dvc.rwlock import SCHEMA
    from voluptuous import Invalid

    try:
        return dict(SCHEMA(json.loads(path.read_bytes())))
    except FileNotFoundError:
        return {"write": {}, "read": {}}
    except (OSError, ValueError, RecursionError, Invalid):
        remove(path)
        return {"write": {}, "read": {}}


def _start_times(path: Path) -> dict[str, float]:
    try:
        return {str(key): float(start) for key, start in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _write(path: Path, content: Any) -> None:
    with atomic_write(path, durable=False) as place:
        place.write_text(json.dumps(content), encoding="utf-8")


def _owners(files: dict[str, Any]) -> set[tuple[int, str]]:
    infos = [*files["write"].values(), *(info for infos in files["read"].values() for info in infos)]
    return {(info["pid"], info["cmd"]) for info in infos}


def _is_alive(pid: int, command: str, start: float | None, since: float) -> bool:
    """Whether the owner of a lock still runs.

    Args:
        pid, command: what DVC's file says of it.
        start: when it started, in seconds since the machine did; None where that was not recorded.
        since: when the file was last written, in seconds since 1970: after the owner's start.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        if start is not None:
            return abs(_start(process) - start) < SAME_SECONDS
        if process.create_time() > since + CLOCK_SECONDS:
            return False
        return not _is_dvc(command) or any("dvc" in word for word in process.cmdline())
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return False
    except psutil.AccessDenied:
        return True


def _is_dvc(command: str) -> bool:
    program = Path(command.partition(" ")[0])
    return program.name == "dvc" or program.parts[-2:] == ("dvc", "__main__.py")


def _start(process: psutil.Process) -> float:
    """Seconds since the machine started, which no change of the clock moves."""
    return float(process.create_time() - psutil.boot_time())


def _command() -> str:
    return " ".join(sys.argv)


def _key(pid: int, command: str) -> str:
    return f"{pid} {command}"
