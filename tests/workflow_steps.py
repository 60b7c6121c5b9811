"""The steps of a workflow, one after another in a fresh clone, as far as they can run away from GitHub.

    python -m tests.workflow_steps .github/workflows/results.yml [JOB] [--set matrix.suite=demo]... [--clone FOLDER]

Of a matrix the first entries are taken, unless `--set` names others. Steps of others (`uses:`) are left out, and so are
those that need what is not known here, such as a secret that `--set` does not give. Exit code 1 if a step fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")


def main(arguments: list[str]) -> int:
    """Run the steps of one job, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.workflow_steps")
    parser.add_argument("file", type=Path)
    parser.add_argument("job", nargs="?")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="such as vars.DVC_REMOTE=...")
    parser.add_argument("--clone", type=Path, help="of an earlier call, to be used again with all that is in it")
    asked = parser.parse_args(arguments)
    workflow = yaml.safe_load(asked.file.read_text(encoding="utf-8"))
    jobs = {name: job for name, job in workflow["jobs"].items() if asked.job in (None, name)}
    with tempfile.TemporaryDirectory() as scratch:
        clone = asked.clone or Path(scratch, "clone")
        if not clone.exists():
            subprocess.run(["git", "clone", "--quiet", Path.cwd(), clone], check=True)
        for name, job in jobs.items():
            matrix = {f"matrix.{key}": str(rows[0]) for key, rows in job.get("strategy", {}).get("matrix", {}).items()}
            values = matrix | dict(entry.split("=", 1) for entry in asked.set)
            env = workflow.get("env", {}) | job.get("env", {})
            for step in job["steps"]:
                if _run(name, step, env | step.get("env", {}), values, clone):
                    return 1
    return 0


def _run(job: str, step: Mapping[str, Any], env: Mapping[str, Any], values: Mapping[str, str], clone: Path) -> int:
    """The exit code of one step; 0 where it is left out."""
    command = step.get("run", f"uses {step.get('uses')}")
    texts = [command, *map(str, env.values())]
    missing = [each for text in texts for each in EXPRESSION.findall(text) if each not in values]
    if "run" not in step or missing:
        print(f"{job}: left out{f' for want of {missing}' if missing else ''}: {command.strip()}", flush=True)
        return 0
    filled, *settings = (EXPRESSION.sub(lambda match: values[match[1]], text) for text in texts)
    print(f"{job}: {filled.strip()}", flush=True)
    start = time.monotonic()
    path = [folder for folder in os.environ["PATH"].split(os.pathsep) if not folder.startswith(sys.prefix)]
    environment = os.environ | {"CI": "true", "PATH": os.pathsep.join(path)} | dict(zip(env, settings, strict=True))
    code = subprocess.run(["bash", "-e", "-c", filled], cwd=clone, env=environment, check=False).returncode
    print(f"{job}: exit code {code} after {time.monotonic() - start:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
