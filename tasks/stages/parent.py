"""Processes that end when the one that started them is gone, killed or not."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

PR_SET_PDEATHSIG = 1
STAGE = b"\0DVC_STAGE="
"""DVC sets it for the command of a stage, not for itself."""


def end_with_parent(parent: int | None = None) -> None:
    """On Linux the kernel ends this process as soon as the thread that started it is gone.

    Where a shell stands between DVC and its stage (dash does not replace itself with the command), DVC is watched, too.

    Args:
        parent: who started it, where that is known; gone by now, it is not waited for.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if parent is not None and os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
        try:
            shell = Path(f"/proc/{os.getppid()}")
            if STAGE in b"\0" + (shell / "environ").read_bytes():
                dvc = os.pidfd_open(int((shell / "stat").read_text().rpartition(")")[2].split()[1]))
                threading.Thread(target=_end_with, args=(dvc,), daemon=True).start()
        except (OSError, ValueError):  # the parent is gone already, or another user's
            return


def workers(jobs: int) -> ProcessPoolExecutor:
    """Processes for work side by side, fresh ones, which end with the thread that gives them work."""
    return ProcessPoolExecutor(jobs, get_context("spawn"), initializer=end_with_parent, initargs=(os.getpid(),))


def _end_with(process: int) -> None:
    """Wait for the end of a process, given by its file descriptor, and end this one."""
    select.select([process], [], [])
    os.kill(os.getpid(), signal.SIGTERM)
