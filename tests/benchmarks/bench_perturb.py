"""How long the multidimensional mechanism takes, and how much memory: `python -m tests.benchmarks.bench_perturb`."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from tasks.contracts import Feature
from tasks.privacy.mechanisms import multidimensional

NUMERIC, CATEGORIES = 18, (2, 3, 21)  # GERAI's 21 features: 44 columns


def features() -> tuple[Feature, ...]:
    """Features of GERAI's shape."""
    numeric = [Feature(name=f"n{i}", kind="numeric", low=-1, high=1) for i in range(NUMERIC)]
    blocks = [
        Feature(name=f"c{width}", kind="categorical", categories=tuple(map(str, range(width)))) for width in CATEGORIES
    ]
    return (*numeric, *blocks)


def users(n_users: int, rng: np.random.Generator) -> np.ndarray:
    """Random feature vectors: (n_users, 44) float32."""
    matrix = np.zeros((n_users, NUMERIC + sum(CATEGORIES)), dtype=np.float32)
    matrix[:, :NUMERIC] = rng.uniform(-1, 1, (n_users, NUMERIC))
    start = NUMERIC
    for width in CATEGORIES:
        matrix[np.arange(n_users), start + rng.integers(width, size=n_users)] = 1
        start += width
    return matrix


def peak_mb() -> float:
    """Peak resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(n_users: int = 1_000_000, epsilon: float = 20.0) -> None:
    """Print seconds and peak memory of perturbing `n_users` users."""
    rng = np.random.default_rng(0)
    matrix = users(n_users, rng)
    before = peak_mb()
    start = time.perf_counter()
    result = multidimensional.perturb(matrix, features(), epsilon, rng)
    seconds = time.perf_counter() - start
    sampled = multidimensional.sampled_features(epsilon, len(features()))
    print(
        f"{n_users:,} users x 21 features (epsilon {epsilon:g}, zeta {sampled}): {seconds:.2f} s; "
        f"peak memory {peak_mb():,.0f} MB, {before:,.0f} MB of it before; "
        f"input and output {result.nbytes >> 20} MB each"
    )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
