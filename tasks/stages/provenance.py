"""Where and when a stage ran: a record beside the outputs, which no stage's hash depends on.

What decides a result stands in params.yaml and in the outputs. Everything else that one may want to know of a run is
here: revision, time, processor, memory, versions of packages.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tasks.device import accelerator
from tasks.stages.common import PROVENANCE, atomic_write, write_json

PACKAGES = ("torch", "dgl", "numpy", "scikit-learn", "polars", "pyarrow", "dp-accounting", "great-expectations")


def path(stage: str, name: str) -> Path:
    """Where the record of a stage lies, such as data/provenance/train/gerai-bpr.json."""
    return PROVENANCE / stage / f"{name}.json"


def record(stage: str, name: str, started: float, timings: dict[str, Any]) -> None:
    """Write what there is to know of a stage that ended just now.

    Args:
        stage, name: which stage of the pipeline ran, and for what.
        started: `time.time()` at the start.
        timings: what the stage itself measured, such as the seconds of every epoch.
    """
    content = {
        "stage": stage,
        "name": name,
        "revision": git_revision(),
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - started, 1),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "processor": processor(accelerator(asked="epoch_seconds" in timings)),
        "cores": os.cpu_count(),
        "packages": {package: version(package) for package in PACKAGES},
    }
    place = path(stage, name)
    with atomic_write(place) as new:
        write_json(new, content | timings)


def processor(accelerator: str = "") -> str:
    """The model of the processor, never the name of the machine: it decides how sums are rounded.

    accelerator: what else does, such as `cuda:0 (NVIDIA H100)`; a stage with units may have worked on it elsewhere.
    """
    return ", ".join(filter(None, (_processor(), accelerator)))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def git_revision() -> str:
    """The commit of the working tree, with `+changes` if tracked code differs from it; `unknown` outside git."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)

    try:
        revision = git("rev-parse", "HEAD")
        if revision.returncode != 0:
            return "unknown"
        code = ("tasks", "flows", "suites", "params.yaml", "dvc.yaml", ":!*.lock")
        changed = git("diff", "--quiet", "HEAD", "--", *code).returncode != 0
    except FileNotFoundError:
        return "unknown"
    return revision.stdout.strip() + ("+changes" if changed else "")


if __name__ == "__main__":
    print(processor())
