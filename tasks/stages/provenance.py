"""Where a result comes from: revision, parameters, packages, time and memory (`run.json`)."""

from __future__ import annotations

import resource
import subprocess
import time
from importlib.metadata import version
from typing import Any

PACKAGES = ("torch", "dgl", "numpy", "scikit-learn", "polars", "pyarrow", "dp-accounting", "great-expectations")


def provenance(
    stage: str,
    name: str,
    *,
    parameters: dict[str, Any],
    seeds: list[int],
    checks: list[dict[str, Any]],
    dataset: str,
    synthetic: bool,
    started: float,
) -> dict[str, Any]:
    """The content of `run.json`.

    Args:
        stage, name: which stage of the pipeline ran, and for what.
        parameters: the part of the parameters that decided the result.
        seeds: every seed that was used.
        checks: summaries of the checks the inputs passed (`require_passed`).
        dataset: key of the processed data set.
        synthetic: whether the data were generated.
        started: `time.monotonic()` at the start.
    """
    return {
        "stage": stage,
        "name": name,
        "git_revision": git_revision(),
        "parameters": parameters,
        "seeds": seeds,
        "checks": checks,
        "dataset": dataset,
        "synthetic": synthetic,
        "packages": {package: version(package) for package in PACKAGES},
        "wall_seconds": round(time.monotonic() - started, 1),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


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
