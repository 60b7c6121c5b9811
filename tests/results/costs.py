"""docs/costs.csv: what each suite took, from its provenance in git. `python -m tests.results.costs` writes it."""

import subprocess
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

from tasks.results.load import Run, read_runs
from tests.parameters import ROOT
from tests.results.made import COMMITTED

PLACE = ROOT / "docs/costs.csv"


def runs(suite: str) -> tuple[Run, ...]:
    """What git has of the runs of a suite: `make demo` on another kind of processor leaves a record of its own."""
    command = ["git", "show", f":data/results/{suite}/provenance.json"]
    with tempfile.NamedTemporaryFile() as record:
        record.write(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
        record.flush()
        return read_runs(Path(record.name))


def costs() -> pl.DataFrame:
    """A row for each suite: hours from the first stage to the end of the last are given where one revision made all."""
    rows = []
    for suite in COMMITTED:
        known = runs(suite)
        longest = max(known, key=lambda run: run.cpu_seconds)
        revisions = sorted({run.revision for run in known})
        began = [datetime.fromisoformat(run.started) for run in known]
        ended = [start + timedelta(seconds=run.seconds) for start, run in zip(began, known, strict=True)]
        hours = (max(ended) - min(began)).total_seconds() / 3600 if len(revisions) == 1 else None
        row = {
            "suite": suite,
            "cpu_hours": sum(run.cpu_seconds for run in known) / 3600,
            "clock_hours": hours,
            "longest_stage": f"{longest.stage}@{longest.name}",
            "its_cpu_hours": longest.cpu_seconds / 3600,
            "peak_memory_mb": max(run.peak_memory_mb for run in known),
            "revisions": " ".join(revisions),
        }
        rows.append(row)
    return pl.DataFrame(rows)


def written() -> str:
    return costs().write_csv(float_precision=2)


if __name__ == "__main__":
    PLACE.write_text(written(), encoding="utf-8")
