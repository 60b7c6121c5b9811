"""A user's own data at the size of a shop: seconds and peak memory of every stage, as the stages record them.

`python -m tests.benchmarks.bench_scale` makes 5 million synthetic ratings of 200,000 users and 50,000 items as a CSV
file and runs the pipeline on it in a copy of the project: tables, checks, popularity, DPALS and the report. DPALS has
no noise here: its audit takes as long on any data. What it must not exceed: 20 s and 1 GB from the file to the data
contracts (`convert` and `preprocess`), 16 GB anywhere.
`--rows 100000 --users 2000 --items 500` is a rehearsal.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from tasks.config.params import OWN_FILES
from tests.parameters import ROOT

TREE = ("data/reference", "flows", "tasks", "params.yaml", "pyproject.toml", "requirements.lock")
CONTRACTS = ("convert", "preprocess")
SETTINGS = {
    "popularity": {"model": "popularity"},
    "dpals": {
        "model": "dpals",
        "config": {
            **{
                "epsilon": math.inf,
                "delta": 1e-6,
                "dimension": 8,
                "iterations": 2,
                "user_ridge": 0.1,
                "item_ridge": 100.0,
            },
            **{"clip": 1.0, "lengthen": True, "contribution": 10.0, "denoise": True, "head": 5000},
            **{"counts_share": 0.4, "gramian_share": 0.02},
        },
    },
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        root = Path(folder) / "project"
        copy(root)
        write_ratings(root / "own.csv", given.rows, given.users, given.items)
        run(root, "own")
        compare_with_limits(show(root))


def copy(root: Path) -> None:
    """The project with one data set and one suite."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    read = {"separator": ",", "interactions": {"user": "user", "item": "item", "rating": "rating", "timestamp": None}}
    dataset = {
        "source": "custom",
        "obtain": {"interactions": "own.csv", "synthetic": True, "licence": "Generated."},
        "format": "custom",
        "read": read | {"rating_scale": {"low": 1, "high": 5, "step": 1}, "time": "none"},
    }
    options = params["processed"]["dpvae-ml-20m-twin"]["options"]  # which take no list of users: own data have none
    params |= {"datasets": {"own": dataset}, "perturbed": {}, "words": {}}
    params["processed"] = {"own": {"dataset": "own", "protocol": "dpvae", "options": options | {"sample": None}}}
    make(root, params, "own", {name: _own(name) for name in OWN_FILES})


def make(root: Path, params: dict[str, Any], suite: str, files: dict[str, Any]) -> None:
    """A copy of the project under git and DVC, with these parameters and the files of one suite."""
    for name in TREE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, root / name)
    (root / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    (root / "suites" / suite).mkdir(parents=True)
    for name, table in files.items():
        (root / "suites" / suite / name).write_text(yaml.safe_dump(table), encoding="utf-8")
    for command in (("git", "init", "-q"), (sys.executable, "-m", "dvc", "init", "-q")):
        subprocess.run(command, cwd=root, check=True)


def _own(name: str) -> Any:
    """A file of the suite: those of `dpvae-ml-20m-twin`, which attacks nothing, with other data and systems."""
    table = yaml.safe_load((ROOT / "suites/dpvae-ml-20m-twin" / name).read_text(encoding="utf-8"))
    if "experiments" in table:
        experiments = {"data": "own", "features": "processed/own", "seeds": [0]}
        table |= {
            "title": "Own data",
            "paper": None,
            "data": "own",
            "ceilings": {},
            "defaults": {"experiments": experiments},
        }
        table |= {"experiments": {f"own-{system}": setting for system, setting in SETTINGS.items()}}
    if "tuning" in table:
        table["tuning"] = {"seed": table["tuning"]["seed"], "grid": {}}
    return table


def write_ratings(path: Path, rows: int, users: int, items: int) -> None:
    """Ratings of which no two are of one user and one item; popular items have most of them."""
    rng = np.random.default_rng(0)
    pairs = np.empty(0, dtype=np.int64)
    while len(pairs) < rows:
        more = rng.integers(users, size=rows) * items + (items * rng.random(rows) ** 3).astype(np.int64)
        pairs = np.unique(np.concatenate([pairs, more]))
    pairs = rng.permutation(pairs)[:rows]
    columns = {"user": pairs // items + 1, "item": pairs % items + 1, "rating": rng.integers(1, 6, size=rows)}
    pl.DataFrame(columns).write_csv(path)


def run(root: Path, suite: str) -> None:
    """The pipeline of a suite, one stage at a time."""
    environment = os.environ | {"PYTHONPATH": str(root)}
    subprocess.run(
        [sys.executable, "-c", "from tasks.config.params import load; from tasks.pipeline import dvc_files; "
         "dvc_files.write(load())"], cwd=root, env=environment, check=True
    )  # fmt: skip
    subprocess.run([sys.executable, "-m", "flows", "run", suite, "-j", "1"], cwd=root, env=environment, check=True)


def show(root: Path) -> list[dict[str, Any]]:
    """Print what the stages recorded of themselves; returns it."""
    records = [json.loads(path.read_text()) for path in (root / "data/provenance").rglob("*.json")]
    records.sort(key=lambda record: record["started"])
    print(f"{'stage':<60}{'seconds':>9}{'peak MB':>9}")
    for record in records:
        name = f"{record['stage']}@{record['name']}"
        print(f"{name:<60}{record['seconds']:>9.1f}{record['peak_memory_mb']:>9}")
    return records


def compare_with_limits(records: list[dict[str, Any]]) -> None:
    """Print what must not exceed a limit next to it."""
    contracts = [record for record in records if record["stage"] in CONTRACTS]
    seconds, peak = (
        sum(record["seconds"] for record in contracts),
        max(record["peak_memory_mb"] for record in contracts),
    )
    print(f"from the file to contracts: {seconds:.1f} s, {peak} MB at most (20 s, 1024 MB)")
    print(f"anywhere: {max(record['peak_memory_mb'] for record in records)} MB at most (16384 MB)")


if __name__ == "__main__":
    main()
