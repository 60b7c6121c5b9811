"""Processes of stages: they end with the one that started them, killed or not, and keep memory that they freed."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

DECIDES_NOTHING = True
PR_SET_PDEATHSIG = 1
RUN = "DPREC_RUN"
"""The environment's word for the process of dprec that a stage, or a scheduled run, belongs to: its id."""
STAGE = "DVC_STAGE"
"""DVC sets it for the command of a stage, not for itself."""
ROOT = "DVC_ROOT"
"""As does this, for the folder of the project."""
INIT = 1
GRACE_SECONDS = 40.0  # for a scheduled run to stop its stages
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, ARRAY_BYTES = 2**31 - 1, 2**28


def end_with(parent: int) -> None:
    """On Linux the kernel ends this process as soon as the thread that started it is gone, also across an `exec`.

    parent: the process that started it; gone by now, it is not waited for.
    """
    if sys.platform == "linux":
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a fork has its parent's handlers, which an `exec` forgets
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            _end()


def end_with_parent() -> None:
    """On Linux this stage ends with `dprec run` or the DVC command that it belongs to, however that ends.

    The kernel ends it with its parent. The command is another process where a shell waits for the stage (dash does
    not replace itself with it), or where dprec forked the stage from one that had loaded the libraries. It may be gone
    before this is called: the stage then ends at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if not end_with_run() and STAGE in os.environ:
            starter = _starter()
            _watch(starter)
            if starter and (starter != _starter() or not _is_command(starter)):
                _end()


def end_with_run() -> bool:
    """On Linux this process ends with the dprec that the environment names; whether it names one."""
    run = os.environ.get(RUN, "")
    if named := sys.platform == "linux" and run.isdecimal() and int(run) != os.getpid():
        _watch(int(run))
    return named


def workers(jobs: int) -> ProcessPoolExecutor:
    """Processes for work side by side, fresh ones, which end with the thread that gives them work."""
    return ProcessPoolExecutor(jobs, get_context("spawn"), initializer=end_with, initargs=(os.getpid(),))


def _starter() -> int:
    """The closest process above this one that is none of a stage's; 0 where that is out of sight."""
    process = os.getppid()
    while process not in (0, INIT) and _is_of_a_stage(process):
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            process = os.getppid()  # it has just ended, and its children have another parent
    return process


def _is_of_a_stage(process: int) -> bool:
    try:
        return f"\0{STAGE}=".encode() in b"\0" + Path(f"/proc/{process}/environ").read_bytes()
    except OSError:  # another user's
        return False


def _is_command(process: int) -> bool:
    """Whether the command may be this one, rather than what takes in the processes of commands that are gone.

    DVC starts stages in its own session. In a container the first process often has the session of all others: that is
    the command if DVC's locks on files name it.
    """
    try:
        locks = Path(os.environ.get(ROOT, ""), ".dvc/tmp/rwlock")
        return os.getsid(process) == os.getsid(0) and (process != INIT or f'"pid": {INIT},' in locks.read_text())
    except OSError:
        return False


def _watch(process: int) -> None:
    """End this process with another one, at once if there is no such process."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return _end()
    except (OSError, OverflowError):  # an old kernel, or out of sight
        return None
    return threading.Thread(target=_wait_for, args=(watched,), daemon=True).start()


def _wait_for(process: int) -> None:
    """Wait for the end of a process, given by its file descriptor, and end this one, which may not take too long."""
    select.select([process], [], [])
    _end()
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def _end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def keep_freed_memory() -> bool:
    """Let glibc keep up to 2 GiB of freed memory for what is needed next; whether there is a glibc that does.

    By default arrays over 32 MiB are given back to the kernel each time and come back cleared, page by page: more than
    half the time of models that make such arrays in every step. Arrays over 256 MiB are still given back.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(M_MMAP_THRESHOLD, ARRAY_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
