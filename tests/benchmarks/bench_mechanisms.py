"""How long mechanisms on large data take, and how much memory: graphs, texts and features of users, all synthetic.

`python -m tests.benchmarks.bench_mechanisms` has a million users; `--scale 0.001` is a rehearsal. Each case runs in a
process of its own, so that its peak memory is its own (input included).
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from tasks.core.contracts import Feature
from tasks.privacy.mechanisms import edges, multidimensional, words

CASES = ("edges rigorous", "edges published", "words 100", "words 300", "features 20")
"""Modes of the top-m filter, dimensions of the words' vectors, the budget of a user's features."""
DISTANCE = 3.0
"""About how far two words are apart."""
NUMERIC, CATEGORIES = 18, (2, 3, 21)
"""GERAI's 21 features: 44 columns."""


def prepared(case: str, n_users: int, rng: np.random.Generator) -> tuple[str, Callable[[], object]]:
    """What a case is, and what is to be timed of it."""
    kind, _, how = case.partition(" ")
    if kind == "edges":
        steps = np.arange(10 * n_users, dtype=np.int64)
        ends = (steps % n_users, (steps % n_users + 1 + steps // n_users * 997) % n_users)
        rows = rng.permutation(np.stack(ends, axis=1).astype(np.int32))
        return f"{len(rows):,} edges", lambda: edges.release(rows, n_users, 10.0, 0.1, rng, how)  # type: ignore[arg-type]
    if kind == "words":
        n_words = n_users // 20
        vectors = (rng.normal(size=(n_words, int(how))) * (DISTANCE / np.sqrt(2 * int(how)))).astype(np.float32)
        shares = np.cumsum(1 / np.arange(1, n_words + 1))
        tokens = np.searchsorted(shares, shares[-1] * rng.random(10 * n_users)).astype(np.int32)
        return f"{len(tokens):,} words", lambda: words.substitute(tokens, vectors, 7.5, rng)
    numeric = [Feature(name=f"n{i}", kind="numeric", low=-1, high=1) for i in range(NUMERIC)]
    blocks = [
        Feature(name=f"c{width}", kind="categorical", categories=tuple(map(str, range(width)))) for width in CATEGORIES
    ]
    one_hot = [np.eye(width, dtype=np.float32)[rng.integers(width, size=n_users)] for width in CATEGORIES]
    matrix = np.hstack([rng.uniform(-1, 1, (n_users, NUMERIC)).astype(np.float32), *one_hot])
    return f"{n_users:,} users", lambda: multidimensional.perturb(matrix, (*numeric, *blocks), float(how), rng)


def measure(case: str, n_users: int) -> None:
    """Print seconds and peak memory, in this process."""
    what, run = prepared(case, n_users, np.random.default_rng(0))
    before, start, used = peak_mb(), time.perf_counter(), time.process_time()
    run()
    seconds, used = time.perf_counter() - start, time.process_time() - used
    memory = f"at most {peak_mb():,.0f} MB, {before:,.0f} MB of it before"
    print(f"{case:16} {what:18} {seconds:8.2f} s ({used:.2f} s of processors), {memory}", flush=True)


def peak_mb() -> float:
    """Peak resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        measure(arguments.case, round(1_000_000 * arguments.scale))
        return
    for case in CASES:
        command = [sys.executable, "-m", __spec__.name, "--scale", str(arguments.scale), "--case", case]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
