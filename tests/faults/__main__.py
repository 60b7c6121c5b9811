"""Disturb the small suite and count how it ends: `python -m tests.faults --help`."""

import argparse
import csv
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from flows import server
from tests.faults import concurrent, corruptions, disk, kills
from tests.faults.suite import RUN, Setup, alone, make
from tests.parameters import ROOT

PARTS = {"kills": kills.rows, "corruptions": corruptions.rows, "disk": disk.rows, "beside": concurrent.rows}
TABLE = ROOT / "docs" / "faults.csv"
COLUMNS = ("fault", "times", "right")


def main() -> None:
    """Put all faults in, or those of one kind; exit code 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--match", default="", help="only faults with this in their name")
    parser.add_argument("--write", action="store_true", help="write docs/faults.csv; rows that were not run stay")
    chosen = parser.parse_args()
    alone()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="dprec-faults-") as folder, _setup(Path(folder), chosen) as setup:
        for name, rows in PARTS.items():
            for what, times, wrong in rows(setup) if chosen.only in (None, name) else ():
                right = times - len(wrong)
                print(f"{what}: {right} of {times} right", *wrong, sep="\n    ", flush=True)
                failed += len(wrong)
                if chosen.write:
                    _write(what, times, right)
    raise SystemExit(failed > 0)


def _write(*row: Any) -> None:
    """Put a row into the table at once: all of it takes an hour, or is ended before."""
    rows = {row["fault"]: tuple(row.values()) for row in csv.DictReader(TABLE.open(encoding="utf-8"))} | {row[0]: row}
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows.values()])


@contextmanager
def _setup(folder: Path, chosen: argparse.Namespace) -> Iterator[Setup]:
    template = make(folder / "template")
    os.environ["PREFECT_HOME"] = str(folder / "prefect")
    started = server.Server(pages=False)
    known = {"PREFECT_API_URL": started.address, server.CREDENTIAL: started.credential}
    try:
        finished = template.copy(folder / "finished")
        start = time.monotonic()
        finished.call(*RUN, **known).check_returncode()
        seconds = time.monotonic() - start
        print(f"an undisturbed run: {seconds:.1f} s", flush=True)
        place = folder / "disturbed"
        yield Setup(template, finished, place, known, seconds, Random(chosen.seed), chosen.kills, chosen.match)
    finally:
        started.end()


if __name__ == "__main__":
    main()
