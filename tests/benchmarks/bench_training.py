"""Seconds per epoch, fit and step of every model: `python -m tests.benchmarks.bench_training`.

Data are random and of ML-100K's size. Every registered model runs with the configuration that params.yaml gives it in
the suite `gerai`. What is compared is timed in turns within one run, so that ratios do not depend on how busy the
machine is: GERAI's step with the literal transcription of equations 3-11 over the full graph, and an epoch of BPR with
one of the library `implicit`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the train stage does
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from implicit.cpu.bpr import BayesianPersonalizedRanking
from scipy.sparse import csr_matrix

from tasks.config.params import Params, load
from tasks.models import MODELS, model_class
from tasks.models.base import Recommender
from tasks.models.ranking.bpr import BPR, BPRConfig
from tasks.models.ranking.gerai.gcn import GCN, GCNConfig
from tasks.models.ranking.gerai.gerai import GERAI, GERAIConfig
from tasks.models.training import EpochModel
from tasks.training_data import TrainingData
from tests.models import literal

ROOT = Path(__file__).resolve().parents[2]
SUITE = "gerai"
N_USERS, N_ITEMS, N_INTERACTIONS, N_COLUMNS, DIMENSION = 943, 1682, 80_000, 44, 60
CLASSES = {"gender": 2, "age": 3, "occupation": 21}
REPEATS, ENOUGH = 5, 4.0
"""Measurements of one model after a warm-up: at most so many, and no more once so many seconds have passed."""
RECBOLE = "RecBole on two cores: 4.6 ms"


def data() -> TrainingData:
    """Interactions with a popularity tail like ML-100K's, each pair once."""
    rng = np.random.default_rng(0)
    popularity = 1 / (np.arange(N_ITEMS) + 20.0)
    keys = rng.exponential(size=(N_USERS, N_ITEMS)) / (popularity * rng.lognormal(size=(N_USERS, 1)))
    chosen = np.argpartition(keys.ravel(), N_INTERACTIONS)[:N_INTERACTIONS]
    features = rng.uniform(-1, 1, (N_USERS, N_COLUMNS)).astype(np.float32)
    attributes = {name: rng.integers(0, classes, N_USERS) for name, classes in CLASSES.items()}
    users, items = np.divmod(np.sort(chosen), N_ITEMS)
    return TrainingData(N_USERS, N_ITEMS, users.astype(np.int32), items.astype(np.int32), features, attributes)


class Clock:
    """A `Progress` that takes the time of every epoch and ends training when it has enough."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def restore(self, model: EpochModel) -> bool:
        del model
        self._began = time.perf_counter()
        return True

    def epoch(self, model: EpochModel, loss: float) -> bool:
        del model, loss
        now = time.perf_counter()
        self.seconds.append(now - self._began)
        self._began = now
        return not enough(self.seconds)

    def finish(self, model: EpochModel) -> None:
        del model


def enough(seconds: list[float]) -> bool:
    """Whether there are enough measurements, the first of which is the warm-up."""
    return len(seconds) > REPEATS or (len(seconds) > 1 and sum(seconds) > ENOUGH)


def built(name: str, params: Params, **override: object) -> tuple[Recommender, str] | None:
    """A registered model as the suite has it, and the experiment's name; None if no experiment of the suite has it."""
    for experiment_name, experiment in params.experiments.items():
        if experiment.suite == SUITE and experiment.model == name:
            cls = model_class(name)
            config = {key: value for key, value in experiment.config.items() if key != "features_epsilon"}
            override = override if issubclass(cls, EpochModel) else {}
            return cls(cls.Config.model_validate(config | override)), experiment_name
    return None


def every_model(interactions: TrainingData, params: Params) -> None:
    """Print seconds per epoch, or per fit where there are no epochs, of every registered model."""
    for name in MODELS:
        result = built(name, params, epochs=REPEATS + 1)
        if result is None:
            print(f"{name:34} no experiment of suite {SUITE!r} in params.yaml")
            continue
        model, experiment = result
        if isinstance(model, EpochModel):
            clock = Clock()
            model.fit(interactions, rng=np.random.default_rng(0), progress=clock)
            seconds, unit = clock.seconds, "epoch"
        else:
            seconds, unit = [], "fit"
            while not enough(seconds):
                started = time.perf_counter()
                model.fit(interactions, rng=np.random.default_rng(0))
                seconds.append(time.perf_counter() - started)
        config = model.config.model_dump()
        sizes = [f"{key} {config[key]}" for key in ("dimension", "batch_size") if key in config]
        print(f"{name:34} {statistics.median(seconds[1:]):8.4f} s per {unit:5}  {', '.join([experiment, *sizes])}")


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


def against_implicit(interactions: TrainingData, params: Params) -> None:
    """Print seconds per epoch of BPR here and in `implicit`, one sampled triple per interaction in both.

    `implicit` takes a step of plain gradient descent per triple in compiled code and drops triples whose negative the
    user has; BPR here draws such negatives again, and takes a step of Adam per batch.
    """
    result = built("bpr", params, epochs=1)
    if result is None:
        return
    ours = result[0].fit(interactions, rng=np.random.default_rng(0))
    assert isinstance(ours, BPR)
    config = ours.config
    ones = np.ones(N_INTERACTIONS, np.float32)
    matrix = csr_matrix((ones, (interactions.users, interactions.items)), shape=(N_USERS, N_ITEMS))
    # Fitting again goes on from the factors that there are.
    theirs = BayesianPersonalizedRanking(
        factors=config.dimension, learning_rate=config.learning_rate, iterations=1, num_threads=1, random_state=0
    )
    names = f"bpr, d = {config.dimension}, batch {config.batch_size}", f"implicit's BPR, d = {config.dimension}"
    steps = {names[0]: ours.train_epoch, names[1]: lambda: theirs.fit(matrix, show_progress=False)}
    seconds = in_turns(steps, repeats=15)
    for name, value in seconds.items():
        print(f"{name:34} {value:8.4f} s per epoch, one thread")
    print(f"{'bpr / implicit':34} {seconds[names[0]] / seconds[names[1]]:8.2f}")


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


def single_steps(interactions: TrainingData) -> None:
    """Print milliseconds per gradient step, GERAI's against the literal equations."""
    common = {"epochs": 1, "learning_rate": 0.005, "dimension": DIMENSION}

    def initial(model):  # type: ignore[no-untyped-def]
        model._rng = np.random.default_rng(0)
        model.network = model.build(interactions, model._rng)
        return model

    gcn = initial(GCN(GCNConfig(**common, batch_size=64)))
    gerai = initial(GERAI(GERAIConfig(**common, batch_size=64, epsilon=0.4)))
    oracle = initial(GCN(GCNConfig(**common, batch_size=64)))
    bpr = initial(BPR(BPRConfig(epochs=1, batch_size=2048, learning_rate=0.005, dimension=64)))
    small, large = batch(interactions, 64), batch(interactions, 2048)
    steps = {
        "literal equations 3-11, batch 64": stepper(
            lambda: literal.ranking_loss(oracle.network, oracle._neighbourhoods, *small), oracle.network
        ),
        "gcn, batch 64": stepper(lambda: gcn.loss(*small), gcn.network),
        "gerai, batch 64": stepper(lambda: gerai.loss(*small), gerai.network),
        "gerai, batch 2048": stepper(lambda: gerai.loss(*large), gerai.network),
        "bpr, batch 2048, d = 64": stepper(lambda: bpr.loss(*large), bpr.network),
    }
    seconds = in_turns(steps, repeats=15)
    slow = seconds["literal equations 3-11, batch 64"]
    for name, value in seconds.items():
        note = f"  {slow / value:5.1f} times as fast" if name.endswith("batch 64") else ""
        note += f"  ({RECBOLE})" if name.startswith("bpr") else ""
        print(f"{name:34} {value * 1e3:8.2f} ms per step{note}")


def main() -> None:
    """Print the three tables."""
    torch.set_num_threads(1)
    interactions, params = data(), load(ROOT / "params.yaml")
    print(f"{N_USERS} users, {N_ITEMS} items, {N_INTERACTIONS} interactions; one thread")
    every_model(interactions, params)
    against_implicit(interactions, params)
    single_steps(interactions)


if __name__ == "__main__":
    main()
