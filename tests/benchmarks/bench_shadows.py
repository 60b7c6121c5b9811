"""Shadow runs of BPR side by side and one after another, on data of MovieLens 100K's size, in CPU seconds:

python -m tests.benchmarks.bench_shadows
"""

from __future__ import annotations

import time

import numpy as np
import torch

from tasks.models.ranking.bpr import BPR, BPRConfig
from tasks.models.ranking.many import fit_many
from tasks.training_data import TrainingData

N_USERS, N_ITEMS, N = 943, 1682, 60_000


def data(seed: int) -> TrainingData:
    """About as many interactions as a run of the suite has, on items of unequal popularity."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, N_ITEMS + 1) ** 0.8
    items = rng.choice(N_ITEMS, 2 * N, p=popularity / popularity.sum())
    codes = np.sort(rng.permutation(np.unique(rng.integers(0, N_USERS, 2 * N) * N_ITEMS + items))[:N])
    return TrainingData(N_USERS, N_ITEMS, (codes // N_ITEMS).astype(np.int32), (codes % N_ITEMS).astype(np.int32))


def main() -> None:
    """One line for each size of batch, vector and number of runs."""
    torch.set_num_threads(1)
    for batch_size, dimension, runs in ((1024, 64, 8), (1024, 16, 8), (256, 16, 13), (256, 16, 32), (128, 16, 16)):
        config = BPRConfig(
            epochs=1, batch_size=batch_size, learning_rate=0.005, regularization=1e-5, dimension=dimension
        )
        datas = [data(seed) for seed in range(runs)]
        start = time.process_time()
        for seed, of in enumerate(datas):
            BPR(config).fit(of, rng=np.random.default_rng(seed))
        middle = time.process_time()
        fit_many(BPR, config, datas, [np.random.default_rng(seed) for seed in range(runs)])
        alone, together = middle - start, time.process_time() - middle
        print(
            f"batches of {batch_size}, vectors of {dimension}, {runs} runs: {alone / runs:.3f} s each alone, "
            f"{together / runs:.3f} s side by side, {alone / together:.1f} times faster"
        )


if __name__ == "__main__":
    main()
