"""What work takes: CPU seconds and memory, added up over interruptions and processes. It decides nothing.

A process that is killed adds nothing of what it did since it began.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tasks.errors import DprecError
from tasks.stages.common import read_json, write_json

DECIDES_NOTHING = True
FILE = "cost.json"
"""In a unit's folder: what working on it took until now."""


class Cost(NamedTuple):
    """Of one or several processes."""

    cpu_seconds: float = 0.0
    """Of all threads, and of processes that were begun and have ended."""
    peak_memory_mb: int = 0

    def plus(self, other: Cost) -> Cost:
        """Of both, one after another."""
        return Cost(self.cpu_seconds + other.cpu_seconds, max(self.peak_memory_mb, other.peak_memory_mb))


def of_this_process() -> Cost:
    """Since it began."""
    process, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in (process, ended))
    return Cost(seconds, round(process.ru_maxrss / 1024))


def of_unit(folder: Path) -> Cost:
    """What working on the unit of that folder took in all processes; nothing where no record is readable."""
    try:
        return Cost(**read_json(folder / FILE))
    except (OSError, DprecError, TypeError):
        return Cost()


@contextmanager
def added(folder: Path) -> Iterator[None]:
    """Adds what is done within to the cost of that folder's unit, be it interrupted or not."""
    began = of_this_process()
    try:
        yield
    finally:
        now = of_this_process()
        took = Cost(now.cpu_seconds - began.cpu_seconds, now.peak_memory_mb)
        write_json(folder / FILE, of_unit(folder).plus(took)._asdict())
