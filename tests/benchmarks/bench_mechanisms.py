"""How long the top-m filter and word substitution take, and how much memory: large graphs and texts, synthetic.

    python -m tests.benchmarks.bench_mechanisms

Each case runs in a process of its own, so that its peak memory is its own (input included).
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from tasks.privacy.mechanisms import edges, words
from tests.benchmarks.bench_perturb import peak_mb

N_NODES, N_EDGES, EDGES_EPSILON = 1_000_000, 10_000_000, 10.0
N_TOKENS, N_WORDS, WORDS_EPSILON = 10_000_000, 50_000, 7.5
DISTANCE = 3.0
"""About the distance of two words."""
CASES = ("rigorous", "published", "100", "300")
"""Modes of the filter, dimensions of the vectors."""


def filtering(mode: str) -> None:
    """Print seconds and peak memory of filtering 10 million edges."""
    rng = np.random.default_rng(0)
    steps = np.arange(N_EDGES, dtype=np.int32)
    rows = rng.permutation(
        np.stack([steps % N_NODES, (steps % N_NODES + 1 + steps // N_NODES * 997) % N_NODES], axis=1)
    )
    before, start, used = peak_mb(), time.perf_counter(), time.process_time()
    released = edges.release(rows, N_NODES, EDGES_EPSILON, 0.1, rng, mode)  # type: ignore[arg-type]
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(
        f"top-m filter, {mode:9} {len(rows):,} edges of {N_NODES:,} nodes (epsilon {EDGES_EPSILON:g}), "
        f"{len(released.edges):,} come out: {seconds:.1f} s ({used:.1f} s of processors); {peaks(before)}"
    )


def substituting(dimension: int) -> None:
    """Print seconds and peak memory of substituting 10 million words, frequencies as Zipf has them."""
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(N_WORDS, dimension)) * (DISTANCE / np.sqrt(2 * dimension))).astype(np.float32)
    shares = np.cumsum(1 / np.arange(1, N_WORDS + 1))
    tokens = np.searchsorted(shares, shares[-1] * rng.random(N_TOKENS)).astype(np.int32)
    distinct = len(np.unique(tokens))
    before, start, used = peak_mb(), time.perf_counter(), time.process_time()
    drawn = words.substitute(tokens, vectors, WORDS_EPSILON, rng)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(
        f"words, {dimension} dimensions: {N_TOKENS:,} tokens, {distinct:,} of {N_WORDS:,} words (epsilon "
        f"{WORDS_EPSILON:g}), {np.mean(drawn == tokens):.0%} stay: {seconds:.0f} s ({used:.0f} s of processors); "
        f"{peaks(before)}"
    )


def peaks(before: float) -> str:
    return f"peak memory {peak_mb():,.0f} MB, {before:,.0f} MB of it before"


def main() -> None:
    for case in CASES:
        subprocess.run([sys.executable, "-m", "tests.benchmarks.bench_mechanisms", case], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1].isdigit():
        substituting(int(sys.argv[1]))
    else:
        filtering(sys.argv[1])
