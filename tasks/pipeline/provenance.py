"""Where and when a stage ran: a record next to the outputs, which no stage's hash depends on.

What decides a result stands in params.yaml and in the outputs. Everything else that one may want to know of a run is
here: revision, time, processor, CPU seconds and memory, versions of packages. CPU seconds of units are added up over
interruptions and processes; a process that is killed adds nothing of what it did since it began.
"""

from __future__ import annotations

import math
import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np  # noqa: F401  # its linear algebra is asked about
from threadpoolctl import threadpool_info

from tasks.core.device import accelerator
from tasks.core.errors import DprecError
from tasks.pipeline.common import PROVENANCE, atomic_write, read_json, write_json

DECIDES_NOTHING = True
PACKAGES = ("torch", "dgl", "numpy", "scikit-learn", "polars", "pyarrow", "dp-accounting", "great-expectations")


COST = "cost.json"
"""In a unit's folder: what working on it took until now."""


class Cost(NamedTuple):
    """Of one or several processes."""

    cpu_seconds: float = 0.0
    """Of all threads, and of processes that were begun and have ended."""
    peak_memory_mb: int = 0


def of_this_process() -> Cost:
    """Since it began."""
    process, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in (process, ended))
    return Cost(seconds, round(process.ru_maxrss / 1024))


def of_unit(folder: Path) -> Cost:
    """What working on the unit of that folder took in all processes; nothing where no record is readable."""
    try:
        recorded = read_json(folder / COST)
        seconds, memory = float(recorded["cpu_seconds"]), int(recorded["peak_memory_mb"])
        return Cost(seconds, memory) if math.isfinite(seconds) else Cost()
    except (OSError, DprecError, TypeError, KeyError, ValueError, OverflowError):
        return Cost()


@contextmanager
def cost_added(folder: Path) -> Iterator[None]:
    """Adds what is done within to the cost of that folder's unit, be it interrupted or not."""
    began = of_this_process()
    try:
        yield
    finally:
        before, now = of_unit(folder), of_this_process()
        seconds = before.cpu_seconds + now.cpu_seconds - began.cpu_seconds
        write_json(folder / COST, Cost(seconds, max(before.peak_memory_mb, now.peak_memory_mb))._asdict())


def path(module: str, name: str) -> Path:
    """Where the record of what a module did lies, such as data/provenance/train/gerai-bpr.json."""
    return PROVENANCE / module.replace("_", "-") / f"{name}.json"


def record(stage: str, name: str, started: float, timings: dict[str, object]) -> None:
    """Write what there is to know of a stage that ended just now.

    Args:
        stage, name: which stage of the pipeline ran, and for what.
        started: `time.time()` at the start.
        timings: what the stage itself measured, such as the seconds of every epoch.
    """
    process = of_this_process()
    content = {
        "stage": stage,
        "name": name,
        "revision": git_revision(),
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - started, 1),
        "cpu_seconds": round(process.cpu_seconds, 1),
        "peak_memory_mb": process.peak_memory_mb,
        "processor": processor(accelerator(asked="epoch_seconds" in timings)),
        "cores": os.cpu_count(),
        "packages": {package: version(package) for package in PACKAGES},
    }
    target = path(stage, name)
    with atomic_write(target) as new:
        write_json(new, content | timings)


def processor(accelerator: str = "") -> str:
    """The model of the processor and what linear algebra runs on it, never the name of the machine.

    They decide how sums are rounded. Models of different generations have one name, and OPENBLAS_CORETYPE and
    ATEN_CPU_CAPABILITY have OpenBLAS and PyTorch compute as on another.

    accelerator: what else does, such as `cuda:0 (NVIDIA H100)`; a stage with units may have worked on it elsewhere.
    """
    blas = sorted({str(info["architecture"]) for info in threadpool_info() if info.get("architecture")})
    linear = f"BLAS for {' and '.join(blas)}" if blas else ""
    torch = f"ATen for {chosen}" if (chosen := os.environ.get("ATEN_CPU_CAPABILITY")) else ""
    return ", ".join(filter(None, (_processor(), linear, torch, accelerator)))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    wide = " with AVX-512" if "avx512f" in fields.get("flags", "").split() else ""
    return fields.get("model name", platform.machine()) + wide


def git(*arguments: str) -> str | None:
    """What git prints; None where it fails, as outside of a repository, or is not installed."""
    try:
        run = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return None if run.returncode else run.stdout


def git_revision() -> str:
    """The commit of the working tree, with `+changes` if tracked code differs from it; `unknown` outside git."""
    if (revision := git("rev-parse", "HEAD")) is None:
        return "unknown"
    code = ("tasks", "flows", "suites", "params.yaml", "dvc.yaml", ":!*.lock", ":!*code.json")
    return revision.strip() + ("" if git("diff", "--quiet", "HEAD", "--", *code) is not None else "+changes")
