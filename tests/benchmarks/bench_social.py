"""An iteration of PrivSR at the size of all of Epinions: 900,000 ratings, 300,000 links, K = 10, noise included.

Times are those of one process and one thread, whatever else the machine does.

python -m tests.benchmarks.bench_social
"""

from __future__ import annotations

import time

import numpy as np

from tasks.models.social.privsr import DPMF, DPMFConfig, PrivSR, PrivSRConfig
from tasks.training_data import TrainingData

N_USERS, N_ITEMS, N_RATINGS, N_LINKS = 22_000, 296_000, 900_000, 300_000
ITERATIONS = 20
BASE = {
    "epochs": 1, "learning_rate": 1e-4, "regularization": 1e-3, "iterations_per_epoch": ITERATIONS, "dimension": 10,
    "initial_spread": 0.1, "scale": (1, 5),
}  # fmt: skip
PUBLISHED = {"alpha": 1e-2, "epsilon": 0.1, "beta": 0.1, "accounting": "published"}
RIGOROUS = {"alpha": 1e-2, "epsilon": 1.0, "delta": 1e-6, "towards": "sums", "accounting": "rigorous"}


def popular(n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Ids of which some come much more often than others."""
    return np.minimum((size * rng.random(n) ** 3).astype(np.int64), size - 1)


def data(share: float) -> TrainingData:
    rng = np.random.default_rng(0)
    pairs = np.unique(popular(2 * N_RATINGS, N_USERS, rng) * N_ITEMS + popular(2 * N_RATINGS, N_ITEMS, rng))
    pairs = rng.permutation(pairs)[:N_RATINGS]
    links = np.unique(popular(2 * N_LINKS, N_USERS, rng) * N_USERS + popular(2 * N_LINKS, N_USERS, rng))
    links = rng.permutation(links)[:N_LINKS]
    return TrainingData(
        N_USERS,
        N_ITEMS,
        (pairs // N_ITEMS).astype(np.int32),
        (pairs % N_ITEMS).astype(np.int32),
        ratings=rng.integers(1, 6, len(pairs)).astype(np.float32),
        sensitive=rng.random(len(pairs)) < share,
        links=np.stack([links // N_USERS, links % N_USERS], axis=1).astype(np.int32),
    )


def main() -> None:
    for share in (0.1, 0.5):
        ratings = data(share)
        models = {
            "published": PrivSR(PrivSRConfig.model_validate(BASE | PUBLISHED)),
            "rigorous": PrivSR(PrivSRConfig.model_validate(BASE | RIGOROUS)),
            "DPMF": DPMF(DPMFConfig.model_validate(BASE | {"epsilon": 0.1})),
        }
        for name, model in models.items():
            started = time.process_time()
            model.network = model.build(ratings, np.random.default_rng(0))
            built = time.process_time() - started
            times = []
            for _ in range(ITERATIONS):
                started = time.process_time()
                model.iterate()
                times.append(time.process_time() - started)
            print(
                f"{100 * share:.0f} % of {len(ratings.users)} ratings sensitive, {len(ratings.links)} links, {name}: "
                f"start {built:.1f} s of CPU, then {1000 * float(np.median(times)):.0f} ms of CPU an iteration"
            )


if __name__ == "__main__":
    main()
