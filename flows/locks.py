"""Locks of suites on another processor than that of the committed ones.

A lock names what was computed, and sums are rounded otherwise on another processor. Where the results are the committed
ones all the same, so is the lock, and what this machine computed is noted in .dvc/tmp: git sees no change, and nothing
runs again. With a DVC remote, from which others fetch what a lock names, the lock itself is this machine's.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from flows.execution import say
from tasks.config.params import own_file
from tasks.pipeline.common import RESULTS, atomic_write, read_json
from tasks.pipeline.provenance import git, processor

LOCAL = Path(".dvc/tmp/locks")
"""What this machine computed, in a file by the SHA-256 of the lock that stayed as committed."""
COMPUTED = re.compile(r"\n {6}(md5|size|nfiles): .*")


def computed_here(lock: Path) -> Path:
    """The lock of what this machine computed: itself, or the file that stands for it."""
    if not lock.is_file():
        return lock
    path = LOCAL / hashlib.sha256(lock.read_bytes()).hexdigest()
    return path if path.is_file() else lock


def write_entry(lock: Path, new: Path, name: str, dump: Callable[[], None]) -> None:
    """Write to `new` what `lock` has, with another entry for the stage of this name.

    dump: adds the entry to `new` by DVC, which takes a second for every 3,000 lines that are there: it gets none where
    the others can be kept as text.
    """
    text = computed_here(lock).read_text(encoding="utf-8") if lock.exists() else ""
    if re.findall(r"^\S.*", text, re.MULTILINE) != ["schema: '2.0'", "stages:"] or "&id" in text:  # anchors
        new.write_text(text, encoding="utf-8")
        dump()
        return
    dump()
    entry = new.read_text(encoding="utf-8").partition("stages:\n")[2]
    old = re.search(rf"^  {re.escape(name)}:\n(?:(?: {{3}}.*)?\n)*", text, re.MULTILINE)
    start, end = old.span() if old else (len(text), len(text))
    new.write_text(text[:start] + entry + text[end:], encoding="utf-8")


def settle(suite: str, *, shared: bool) -> None:
    """After a run: the committed lock, where only hashes differ, it is of another processor, and results are the same.

    shared: there is a DVC remote; the lock becomes what this machine computed.
    """
    lock = own_file(suite).with_name("dvc.lock")
    if shared:
        if (computed := computed_here(lock)) != lock:
            _replace(lock, computed.read_text(encoding="utf-8"))
        return
    committed = git("show", f"HEAD:./{lock.as_posix()}")
    if committed is None or not lock.is_file():
        return
    text = lock.read_text(encoding="utf-8")
    if committed == text or COMPUTED.sub("", committed) != COMPUTED.sub("", text):
        return
    recorded = RESULTS / suite / "provenance.json"
    machines = read_json(recorded)["machines"] if recorded.is_file() else []
    of_another = machines and not any(machine["processor"].startswith(processor()) for machine in machines)
    if git("diff", "--quiet", "HEAD", "--", (RESULTS / suite).as_posix()) is None or not of_another:
        return
    _replace(LOCAL / hashlib.sha256(committed.encode()).hexdigest(), text)
    _replace(lock, committed)


def take_committed(lock: Path) -> None:
    """Set a damaged lock aside and take the committed one; what that does not know comes from DVC's cache."""
    committed = git("show", f"HEAD:./{lock.as_posix()}")
    shutil.copyfile(lock, lock.with_name(f"{lock.name}.damaged"))
    if committed is None:
        lock.unlink()
    else:
        _replace(lock, committed)
    say(lock.as_posix(), f"damaged, kept as {lock.name}.damaged; the committed one is used, if there is one")


def _replace(path: Path, text: str) -> None:
    with atomic_write(path) as new:
        new.write_text(text, encoding="utf-8")
