"""Speed of full-ranking evaluation at MovieLens-1M size: `python -m tests.benchmarks.bench_ranking [ROUNDS]`.

Prints users per second of `top_k` (masking and top-20 of a dot-product scorer, d = 64) against a bare matrix product
and `torch.topk` in the same process; best of several alternating rounds, so that other load hits both alike.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.evaluation.ranking import Seen, tie_order, top_k

USERS, ITEMS, DIMENSION, RATINGS, K, BATCH, ROUNDS, TARGET = 6_040, 3_706, 64, 1_000_209, 20, 512, 15, 25_000


def main(rounds: int = ROUNDS) -> None:
    torch.set_num_threads(2)
    rng = np.random.default_rng(0)
    user_vectors = torch.from_numpy(rng.standard_normal((USERS, DIMENSION), dtype=np.float32))
    item_vectors = torch.from_numpy(rng.standard_normal((ITEMS, DIMENSION), dtype=np.float32))
    pairs = rng.choice(USERS * ITEMS, RATINGS, replace=False)
    seen = Seen.from_pairs(pairs // ITEMS, pairs % ITEMS, USERS)
    order, users = tie_order(ITEMS, 0), np.arange(USERS, dtype=np.int32)

    def score(batch: NDArray[np.int32]) -> torch.Tensor:
        return user_vectors[torch.from_numpy(batch)] @ item_vectors.T

    def bare(size: int) -> Callable[[], None]:
        def run() -> None:
            for start in range(0, USERS, size):
                (user_vectors[start : start + size] @ item_vectors.T).topk(K)

        return run

    contestants: dict[str, Callable[[], object]] = {
        f"top_k: masking and top-{K}, batches of {BATCH}": lambda: top_k(score, users, seen, K, order, BATCH),
        f"bare matmul + topk, batches of {BATCH}": bare(BATCH),
        "bare matmul + topk, all users at once": bare(USERS),
    }
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    print(f"{USERS} users x {ITEMS} items, d = {DIMENSION}, {RATINGS} seen, {torch.get_num_threads()} threads")
    for name, seconds in best.items():
        print(f"{USERS / seconds:10,.0f} users/s  {name}")
    print(f"{TARGET:10,.0f} users/s  target")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
