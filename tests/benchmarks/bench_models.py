"""Processor seconds of every model, an epoch or a fit, as the first suite that has it configures it, on random data.

`python -m tests.benchmarks.bench_models` has as many users, items and interactions as MovieLens 100K; `--scale 0.02` is
a rehearsal, names of models are a selection. Times are of one thread. The memory is the most that the process has held:
of one model if it is the only one.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the train stage does
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import statistics
import time
from typing import Any

import numpy as np
import torch

from tasks.config.params import load
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models import MODELS, model_class
from tasks.models.base import Progress
from tasks.models.training import EpochModel
from tasks.models.user_networks.base import Embedder, NetworkData, PairData, PairEmbedder, Posts, undirected_pairs
from tests.parameters import ROOT

N_USERS, N_ITEMS, N_INTERACTIONS, N_COLUMNS = 943, 1682, 80_000, 40
REPEATS, ENOUGH = 5, 4.0
"""Measurements of one model after a warm-up: at most so many, and no more once so many seconds have passed."""


def main() -> None:
    """Print a line for every model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MODELS, []], help="models (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of users, items and interactions")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data, pair = interactions(arguments.scale), networks(arguments.scale)
    print(f"{data.n_users} users, {data.n_items} items, {len(data.users)} interactions; one thread")
    params = load(ROOT / "params.yaml")
    entries = [*params.embeddings.values(), *params.experiments.values()]
    for name in arguments.names or MODELS:
        cls = model_class(name)
        config = next((entry.config for entry in entries if entry.model == name), None)
        if config is None:
            print(f"{name:20} is in no suite")
            continue
        config = {key: value for key, value in config.items() if key in cls.Config.model_fields}
        if "batch_size" in config:
            config["batch_size"] = min(config["batch_size"], data.n_users)
        of: Any = data if not issubclass(cls, Embedder) else pair if issubclass(cls, PairEmbedder) else pair.networks[0]
        seconds = measured(cls(cls.Config.model_validate(config)), of)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        unit = "epoch" if issubclass(cls, EpochModel) else "fit"
        print(f"{name:20} {statistics.median(seconds[1:] or seconds):9.4f} s per {unit:5} {memory:7.0f} MB", flush=True)


def interactions(scale: float) -> TrainingData:
    """All that any model may read; popularity has a tail like ML-100K's, and each pair is there once."""
    rng = np.random.default_rng(0)
    n_users, n_items = max(round(N_USERS * scale), 40), max(round(N_ITEMS * scale), 60)
    keys = rng.exponential(size=(n_users, n_items)) * (np.arange(n_items) + 20.0) / rng.lognormal(size=(n_users, 1))
    n = min(round(N_INTERACTIONS * scale), n_users * n_items // 4)
    users, items = np.divmod(np.sort(np.argpartition(keys.ravel(), n)[:n]), n_items)
    items = items[np.lexsort((rng.random(n), users))].astype(np.int32)
    return TrainingData(
        n_users, n_items, users.astype(np.int32), items,
        features=rng.random((n_users, N_COLUMNS), np.float32),
        attributes={name: rng.integers(0, classes, n_users) for name, classes in (("gender", 2), ("occupation", 21))},
        ratings=rng.integers(1, 6, n).astype(np.float32),
        sequences=Sequences.from_events(users.astype(np.int32), items),
        sensitive=rng.random(n) < 0.3,
        links=undirected_pairs(rng.integers(0, n_users, (5 * n_users, 2))),
    )  # fmt: skip


def networks(scale: float) -> PairData:
    """Friends drawn uniformly, ten for each user; three posts of eight words, by Zipf's law; half are in both."""
    rng, n = np.random.default_rng(0), max(round(N_USERS * scale), 40)

    def network() -> NetworkData:
        writers, bounds = np.repeat(np.arange(n, dtype=np.int32), 3), np.arange(3 * n + 1) * 8
        posts = Posts(writers, bounds, (rng.zipf(1.3, bounds[-1]) % 2000).astype(np.int32), 2000)
        links = undirected_pairs(rng.integers(0, n, (5 * n, 2)))
        return NetworkData(n, links, rng.random((n, 56), np.float32), posts, rng.random((2000, 128), np.float32))

    anchors = np.stack([np.arange(n // 2, dtype=np.int32)] * 2, axis=1)
    return PairData((network(), network()), anchors, (rng.random((n, 128), np.float32),) * 2)


class Clock(Progress):
    """Takes the time of every epoch and ends training when it has enough."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def restore(self, model: Any) -> bool:
        """The first epoch begins."""
        self._began = time.process_time()
        return super().restore(model)

    def epoch(self, model: Any, loss: float) -> bool:
        """Also whether there are too few epochs yet."""
        del model, loss
        now = time.process_time()
        self.seconds.append(now - self._began)
        self._began = now
        return len(self.seconds) <= REPEATS and (len(self.seconds) < 2 or sum(self.seconds) < ENOUGH)


def measured(model: Any, data: Any) -> list[float]:
    """Seconds of each epoch, or of a single fit."""
    clock, began = Clock(), time.process_time()
    model.fit(data, rng=np.random.default_rng(0), progress=clock)
    return clock.seconds or [time.process_time() - began]


if __name__ == "__main__":
    main()
