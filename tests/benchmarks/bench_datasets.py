"""From raw files to checked contracts: seconds and peak memory of every stage, on synthetic replicas.

`python -m tests.benchmarks.bench_datasets` runs all at 5 % of the official sizes; `--scale 1 tmall` one at its official
size (tens of millions of rows, gigabytes of disk). Making the replica is shown and not counted: it stands in for a file
that a user has.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
# Data set: source, its options, format, its options, protocol, its options.
SUBJECTS = {
    "ml-20m": ("twin_movielens", {"layout": "ml-20m"}, "ml_20m", {}, "dpvae"),
    "netflix": ("twin_netflix", {"layout": "combined"}, "netflix", {}, "dpvae"),
    "tmall": ("twin_tmall", {}, "tmall", {"layout": "official"}, "dipsgnn"),
}
STAGES = ("download", "convert", "check raw/", "preprocess", "check processed/")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    parser.add_argument("--scale", type=float, default=0.05, help="share of the official size (default: 0.05)")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    given = parser.parse_args()
    if unknown := set(given.names) - set(SUBJECTS):
        parser.error(f"unknown data set {min(unknown)!r}; known: {', '.join(SUBJECTS)}")
    print(f"{'data set':<10}{'scale':>7}  {'stage':<18}{'seconds':>9}{'peak GB':>9}")
    for name in given.names or SUBJECTS:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            measure(name, given.scale, Path(folder))


def measure(name: str, scale: float, folder: Path) -> None:
    """Run the stages of one data set in `folder`."""
    params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    source, obtain, format_, read, protocol = SUBJECTS[name]
    params["datasets"][name] = {
        "source": source,
        "obtain": obtain | {"scale": scale, "seed": 1},
        "format": format_,
        "read": read,
    }
    options = next(
        processed["options"] for processed in params["processed"].values() if processed["protocol"] == protocol
    )
    params["processed"][name] = {"dataset": name, "protocol": protocol, "options": options | changes(name, scale)}
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    write = "from tasks.config.params import load; from tasks.stages import dvc_files; dvc_files.write(load())"
    for command in (["-c", write], ["-m", "tasks.stages.code"]):
        timed([sys.executable, *command], folder)
    total = 0.0
    for stage in STAGES:
        kind, _, layer = stage.partition(" ")
        seconds, gigabytes = timed([sys.executable, "-m", f"tasks.stages.{kind}", f"{layer}{name}"], folder)
        total += seconds if kind != "download" else 0
        note = " (making the replica: not counted)" if kind == "download" else ""
        print(f"{name:<10}{scale:>7g}  {stage.rstrip('/'):<18}{seconds:>9.1f}{gigabytes:>9.2f}{note}", flush=True)
    print(f"{name:<10}{scale:>7g}  {'raw to contracts':<18}{total:>9.1f}", flush=True)


def changes(name: str, scale: float) -> dict[str, Any]:
    """What the protocol's options in params.yaml become for this data set at this scale."""
    match name:
        case "netflix":
            return {"sample": round(70_000_000 * scale)}
        case "tmall":
            return {"keep": {"action": [0, 0], "day": [1101, 1107]}, "last": 50}
    return {"sample": None}


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall seconds and peak resident memory (GB) of a command."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    before = os.times().elapsed
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return os.times().elapsed - before, usage.ru_maxrss / (1 << 20)


if __name__ == "__main__":
    main()
