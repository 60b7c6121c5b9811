"""A disk that is full: a small file system in memory, in which writing fails at another point each time.

Mounting one needs root; without it nothing is tried.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.suite import END_SECONDS, RUN, Row, Setup, Suite, together

SIZE = 128 * 2**20
TIMES = 10


def rows(setup: Setup) -> Iterator[Row]:
    """Ten runs with from next to nothing to almost enough left on the disk."""
    if os.geteuid() != 0:
        print("disk full: not tried, mounting needs root")
        return
    place = setup.folder.with_name("disk")
    place.mkdir()
    wrong: list[str] = []
    with _mounted(place):
        needed = _taken(place, setup)
        for number in range(TIMES):
            wrong += _full(setup, place, needed * number // TIMES)
    yield "disk full", TIMES, wrong


def _taken(place: Path, setup: Setup) -> int:
    """Bytes that an undisturbed run writes."""
    suite = _copied(setup, place)
    before = _left(place)
    suite.call(*RUN, **setup.known)
    return before - _left(place)


def _full(setup: Setup, place: Path, left: int) -> list[str]:
    """What went wrong with a run that finds `left` bytes, and with the run after it, which finds all."""
    suite = _copied(setup, place)
    ballast = place / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(_left(place) - left, 1))
    met = suite.call(*RUN, **setup.known)
    ballast.unlink()
    wrong = [f"left running: {line}" for line in suite.left(END_SECONDS)]
    if met.returncode not in (0, 1) or met.stderr.count("\n") != met.returncode:
        wrong.append(f"not one line: {met.stderr!r}")
    return [f"{left} bytes left: {line}" for line in together(wrong + setup.recovers(suite))]


def _copied(setup: Setup, place: Path) -> Suite:
    return setup.template.copy(place / "suite")


def _left(place: Path) -> int:
    stat = os.statvfs(place)
    return stat.f_bavail * stat.f_bsize


@contextmanager
def _mounted(place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
