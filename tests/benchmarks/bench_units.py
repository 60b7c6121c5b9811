"""One experiment of eight equal units with `--jobs 2` against `--jobs 1`: `python -m tests.benchmarks.bench_units`.

Both run the suite `own` of `tests.benchmarks.bench_scale` with one system, BPR with eight seeds, in the same project:
`dprec run own --force`, in turns, with every epoch trained. What is compared are the seconds of the stage `train`, as
it records them, and of the whole run. The ratio of the stage is to be at least 1.8. A unit elsewhere costs a process,
one or two seconds, and the first two more: `--epochs` says how long a unit is. What these cores can do at most is
measured, too: two projects at once, each with `--jobs 1`, do twice the work of one and have nothing to share.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from tests.benchmarks import bench_scale


def main() -> None:
    """Print a row for every run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--ratings", type=int, default=100_000)
    given = parser.parse_args()
    bench_scale.SETTINGS.clear()
    config = {"epochs": given.epochs, "batch_size": 256, "learning_rate": 0.005, "dimension": 32}
    bench_scale.SETTINGS["bpr"] = {"model": "bpr", "config": config | {"regularization": 0.00005}}
    with tempfile.TemporaryDirectory() as folder:
        root, other = Path(folder) / "project", Path(folder) / "other"
        bench_scale.copy(root)
        bench_scale.write_ratings(root / "own.csv", given.ratings, 1000, 1500)
        suite = root / "suites/own/params.yaml"
        table = yaml.safe_load(suite.read_text(encoding="utf-8"))
        table["defaults"]["experiments"]["seeds"] = list(range(given.seeds))
        table["training"]["patience"] = given.epochs
        for epochs in (1, given.epochs):  # the first prepares the data
            table["experiments"]["own-bpr"]["config"]["epochs"] = epochs
            suite.write_text(yaml.safe_dump(table), encoding="utf-8")
            if epochs == 1:
                bench_scale.run(root, "own")
        shutil.copytree(root, other, symlinks=True)
        print(f"{'':<20}{'train':>9}{'all':>9} seconds")
        for _ in range(given.rounds):
            for jobs in (1, 2):
                _print(f"--jobs {jobs}", _timed(root, jobs))
            with ThreadPoolExecutor() as pool:
                both = list(pool.map(_timed, (root, other), (1, 1)))
            _print("two projects at once", (max(first for first, _ in both), max(last for _, last in both)))


def _print(what: str, seconds: tuple[float, float]) -> None:
    print(f"{what:<20}{''.join(f'{each:>9.1f}' for each in seconds)}", flush=True)


def _timed(root: Path, jobs: int) -> tuple[float, float]:
    """Seconds of the stage and of the run."""
    start = time.monotonic()
    command = [sys.executable, "-m", "flows", "run", "own", "--force", "--jobs", str(jobs)]
    subprocess.run(command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, check=True, stdout=subprocess.DEVNULL)
    record = json.loads((root / "data/provenance/train/own-bpr.json").read_text(encoding="utf-8"))
    return record["seconds"], time.monotonic() - start


if __name__ == "__main__":
    main()
