"""`dprec release` from a CSV to model and ledger, then lists: time and memory at three sizes.

python -m tests.benchmarks.bench_release [INTERACTIONS ...]
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

SIZES = (1_000_000, 5_000_000, 20_000_000)
PER_USER, N_ITEMS, SERVED = 144, 20_000, 10_000


def table(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """(n,) pairs of users and items, popular ones first, as ids of text."""
    items = (N_ITEMS * rng.random(n) ** 3).astype(np.int32)
    return pl.DataFrame({"user": rng.integers(n // PER_USER, size=n), "item": items}).select(
        pl.format("u{}", "user").alias("user"), pl.format("i{}", "item").alias("item")
    )


def run(*arguments: str) -> str:
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "flows", "release", *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        f"{time.perf_counter() - started:.1f} s ({used:.1f} s of processors), at most {after.ru_maxrss / 2**20:.2f} GiB"
    )


def main() -> None:
    for n in [int(size) for size in sys.argv[1:]] or SIZES:
        with tempfile.TemporaryDirectory() as folder:
            ratings, served, out = (str(Path(folder) / name) for name in ("ratings.csv", "for.csv", "out"))
            rows = table(n, np.random.default_rng(0))
            rows.write_csv(ratings)
            rows.filter(pl.col("user").is_in(rows["user"].unique().sort().head(SERVED).implode())).write_csv(served)
            del rows
            print(f"{n:,} interactions: {run(ratings, '--epsilon', '1', '--out', out)}", flush=True)
            lists = run("recommend", out, "--for", served, "--out", str(Path(folder) / "lists.csv"))
            print(f"  lists of {min(SERVED, n // PER_USER):,} users among {N_ITEMS:,} items: {lists}", flush=True)


if __name__ == "__main__":
    main()
