"""Disturb the small suite and count how it ends: `python -m tests.faults --help`."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from flows import server
from tests.faults import concurrent, corruptions, disk, kills
from tests.faults.suite import RUN, Setup, alone, make

ROOT = Path(__file__).resolve().parents[2]
PARTS = {"kills": kills.rows, "corruptions": corruptions.rows, "disk": disk.rows, "beside": concurrent.rows}
PAGE = ROOT / "docs" / "faults.md"
HEADER = """# Faults put in on purpose

Written by `make faults`: each fault is put into a fresh copy of a small suite (five stages, four units of work with
states of their epochs, a verdict). *Right* are those after which the next run, or the one after the command that its
one line named, had byte for byte the results and locks of a run that nothing disturbed, and no process was left.

| fault | times | right |
| --- | ---: | ---: |
"""


def main() -> None:
    """Put all faults in, or those of one kind; exit code 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--match", default="", help="only faults with this in their name")
    parser.add_argument("--write", action="store_true", help="write docs/faults.md; rows that were not run stay")
    chosen = parser.parse_args()
    alone()
    failed, table = 0, dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="dprec-faults-") as folder, _setup(Path(folder), chosen) as setup:
        for name, rows in PARTS.items():
            for what, times, wrong in rows(setup) if chosen.only in (None, name) else ():
                right = times - len(wrong)
                print(f"{what}: {right} of {times} right", *wrong, sep="\n    ", flush=True)
                table[what] = f"| {what} | {times} | {right} |\n"
                failed += len(wrong)
    if chosen.write:
        PAGE.write_text(HEADER + "".join((_written() | table).values()), encoding="utf-8")
    raise SystemExit(failed > 0)


def _written() -> dict[str, str]:
    """The rows of the page as it is: fault -> line."""
    lines = PAGE.read_text(encoding="utf-8").splitlines(keepends=True) if PAGE.is_file() else []
    rows = [line for line in lines if line.startswith("| ")][1:]
    return {line.removeprefix("| ").partition(" | ")[0]: line for line in rows if not line.startswith("| ---")}


@contextmanager
def _setup(folder: Path, chosen: argparse.Namespace) -> Iterator[Setup]:
    template = make(folder / "template")
    os.environ["PREFECT_HOME"] = str(folder / "prefect")
    started = server.Server(pages=False)
    known = {"PREFECT_API_URL": started.address, server.CREDENTIAL: started.credential}
    try:
        finished = template.copy(folder / "finished")
        finished.call(*RUN, **known).check_returncode()
        yield Setup(template, finished, folder / "disturbed", known, Random(chosen.seed), chosen.kills, chosen.match)
    finally:
        started.end()


if __name__ == "__main__":
    main()
