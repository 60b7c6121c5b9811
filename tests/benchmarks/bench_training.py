"""Seconds per training step: `python -m tests.benchmarks.bench_training` (random graph of ML-100K's size).

GERAI's step is timed beside the literal transcription of equations 3-11 over the full graph, in turns within one run,
so that the ratio does not depend on how busy the machine is.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the train stage does

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from tasks.models.base import TrainingData
from tasks.models.bpr import BPR, BPRConfig
from tasks.models.gerai.gcn import GCN, GCNConfig
from tasks.models.gerai.gerai import GERAI, GERAIConfig
from tests.models import literal

N_USERS, N_ITEMS, N_INTERACTIONS, N_COLUMNS, DIMENSION = 943, 1682, 80_000, 44, 60


def data() -> TrainingData:
    """Interactions with a popularity tail like ML-100K's, each pair once."""
    rng = np.random.default_rng(0)
    popularity = 1 / (np.arange(N_ITEMS) + 20.0)
    keys = rng.exponential(size=(N_USERS, N_ITEMS)) / (popularity * rng.lognormal(size=(N_USERS, 1)))
    chosen = np.argpartition(keys.ravel(), N_INTERACTIONS)[:N_INTERACTIONS]
    features = rng.uniform(-1, 1, (N_USERS, N_COLUMNS)).astype(np.float32)
    users, items = np.divmod(np.sort(chosen), N_ITEMS)
    return TrainingData(N_USERS, N_ITEMS, users.astype(np.int32), items.astype(np.int32), features)


def in_turns(steps: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each step, taken in turns after one warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(repeats + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            if repeat:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def batch(interactions: TrainingData, size: int) -> list[torch.Tensor]:
    """Triples of training interactions with random items as negatives."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, N_INTERACTIONS, size)
    ids = interactions.users[rows], interactions.items[rows], rng.integers(0, N_ITEMS, size)
    return [torch.from_numpy(np.asarray(values, np.int64)) for values in ids]


def stepper(loss: Callable[[], torch.Tensor], network: torch.nn.Module) -> Callable[[], None]:
    """One gradient step with Adam."""
    optimiser = torch.optim.Adam(network.parameters(), lr=0.005)

    def step() -> None:
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()

    return step


def main() -> None:
    """Print the table."""
    interactions = data()
    common = {"epochs": 1, "learning_rate": 0.005, "dimension": DIMENSION}

    def built(model):  # type: ignore[no-untyped-def]
        model._rng = np.random.default_rng(0)
        model.network = model.build(interactions, model._rng)
        return model

    gcn = built(GCN(GCNConfig(**common, batch_size=64)))
    gerai = built(GERAI(GERAIConfig(**common, batch_size=64, epsilon=0.4)))
    oracle = built(GCN(GCNConfig(**common, batch_size=64)))
    small, large = batch(interactions, 64), batch(interactions, 2048)
    steps = {
        "literal equations 3-11, batch 64": stepper(
            lambda: literal.ranking_loss(oracle.network, oracle._neighbourhoods, *small), oracle.network
        ),
        "gcn, batch 64": stepper(lambda: gcn.loss(*small), gcn.network),
        "gerai, batch 64": stepper(lambda: gerai.loss(*small), gerai.network),
        "gerai, batch 2048": stepper(lambda: gerai.loss(*large), gerai.network),
    }
    bpr = built(BPR(BPRConfig(epochs=1, batch_size=2048, learning_rate=0.005, dimension=64)))
    steps["bpr, batch 2048, d = 64"] = stepper(lambda: bpr.loss(*large), bpr.network)
    seconds = in_turns(steps, repeats=15)
    slow = seconds["literal equations 3-11, batch 64"]
    for name, value in seconds.items():
        ratio = f"  {slow / value:5.1f} times as fast" if name.endswith("batch 64") else ""
        print(f"{name:34} {value * 1e3:8.2f} ms{ratio}")


if __name__ == "__main__":
    main()
