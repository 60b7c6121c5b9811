"""A dvc.lock that is damaged: seen, set aside, and replaced by the committed one."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

from flows import locks
from flows.execution import say
from flows.locks import Busy
from tasks.stages.common import atomic_write

WRITING_SECONDS = 5.0
"""How long whoever does not wait gives DVC to write a dvc.lock."""


def is_cut(lock: Path) -> bool:
    """Whether the end of a dvc.lock is missing where it still reads as one: its last file has size and number of files.

    DVC would believe what is left, and not write the rest again.
    """
    if not lock.is_file():
        return False
    text = lock.read_text(encoding="utf-8", errors="replace")
    if "<<<<<<<" in text:  # a merge is the user's
        return False
    last = text.rpartition("- path: ")[2]
    complete = "size: " in last and (".dir\n" not in last or "nfiles: " in last)
    return not text.endswith("\n") or (last != text and not complete)


def recover(repo: Any, lock: Path, *, patient: bool) -> bool:
    """Set a damaged dvc.lock aside and take the committed one; what it does not know comes from DVC's cache.

    On any error the damaged one is still in its place, so that this can be tried again.

    Args:
        patient: wait for whoever holds DVC's lock of the project, who may be writing it.

    Returns:
        Whether it was damaged.

    Raises:
        Busy: another process holds DVC's lock.
    """
    with _alone(repo, patient=patient):
        if not is_cut(lock) and _is_readable(repo, lock):
            return False
        committed = subprocess.run(["git", "show", f"HEAD:./{lock.as_posix()}"], capture_output=True, check=False)
        aside = _keep(lock)
        if known := committed.returncode == 0:
            with atomic_write(lock) as place:
                place.write_bytes(committed.stdout)
        else:
            lock.unlink()
        say(
            lock.as_posix(),
            f"damaged, kept as {aside.name}; " + ("the committed one is used" if known else "begun anew"),
        )
        return True


def _keep(lock: Path) -> Path:
    """Copy a damaged dvc.lock beside it, under a name that no other damaged one has; where the copy is."""
    content = lock.read_bytes()
    first = lock.with_name(f"{lock.name}.damaged")
    places = chain([first], (first.with_name(f"{first.name}-{number}") for number in count(2)))
    place = next(place for place in places if not place.exists() or place.read_bytes() == content)
    with atomic_write(place) as new:
        new.write_bytes(content)
    return place


@contextmanager
def _alone(repo: Any, *, patient: bool) -> Iterator[None]:
    """DVC's lock of the project, without which no dvc.lock is judged: DVC writes them in place, within a second."""
    from dvc.lock import LockError

    deadline = time.monotonic() + WRITING_SECONDS
    while True:
        try:
            repo.lock.lock()
            break
        except LockError:
            if not patient and time.monotonic() > deadline:
                owner = locks.holder(repo)
                raise Busy(f"dvc.lock: being written by {owner}; run this again once it has ended") from None
            time.sleep(0.2)
    try:
        yield
    finally:
        repo.lock.unlock()


def _is_readable(repo: Any, lock: Path) -> bool:
    from dvc.dvcfile import Lockfile
    from dvc.exceptions import DvcException

    try:
        Lockfile(repo, str(lock)).load()
    except DvcException:
        return False
    return True
