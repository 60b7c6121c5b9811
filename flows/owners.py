"""Who holds a lock, and whether that process still runs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil


def lives(owner: dict[str, Any], since: float) -> bool:
    """Whether the owner of a lock still runs; since: when the file of locks was last written, after its start."""
    try:
        process = psutil.Process(owner["pid"])
        program = Path(owner["cmd"].partition(" ")[0])
        name = program.parent.name if program.stem == "__main__" else program.stem
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and process.create_time() <= since + 2.0  # clocks of files and of processes differ
            and (process.pid == os.getpid() or any(name in word for word in process.cmdline()))
        )
    except (psutil.NoSuchProcess, OverflowError):
        return False
    except psutil.AccessDenied:
        return True


def holder(lock: Path) -> str:
    """The process whose number the file of a lock holds."""
    with suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int(lock.read_text(encoding="utf-8")))
        return f"process {process.pid} ({' '.join(process.cmdline())})"
    return "another process"
