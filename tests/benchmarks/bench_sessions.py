"""Seconds per epoch of the models of next items: `python -m tests.benchmarks.bench_sessions`.

Sequences are random and of ML-100K's size after DIPSGNN's protocol. Next to the models runs the same network with a
dense graph for every prefix, batches of 100 made in Python: some such steps, timed in turns with the epochs, and
extrapolated to an epoch. Times are of the processor, so that ratios do not depend on how busy the machine is.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the train stage does
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from tasks.models import model_class
from tasks.models.sessions.sequential import SequenceModel
from tasks.sequences import Sequences
from tasks.training_data import TrainingData
from tests.models.naive_sessions import padded_loss

N_USERS, N_ITEMS, N_EVENTS, LONGEST, N_COLUMNS = 798, 822, 31_743, 80, 30
EXAMPLES, REPEATS = 100, 3
COMMON = {"epochs": 1, "batch_size": 100, "learning_rate": 0.001, "dimension": 100}
GRAPH = COMMON | {"steps": 1}
NOISY = GRAPH | {"user_dimension": 50, "clip": 0.4, "epsilon": 5.0, "delta": 1e-6, "accounting": "published"}
CONFIGS: dict[str, dict[str, object]] = {
    "dipsgnn": NOISY,
    "dipsgnn, rigorous": NOISY | {"accounting": "rigorous"},
    "dipsgnn, cached": NOISY | {"accounting": "cached"},
    "srgnn": GRAPH,
    "edgerand": NOISY,
    "sasrec": COMMON | {"heads": 1},
    "hrnn": COMMON | {"session_length": 20},
}
RECBOLE = {"srgnn": 172.0, "sasrec": 356.0}
"""Milliseconds per 100 prefixes, two cores, another machine."""


def data() -> TrainingData:
    """Distinct items in random order for each user, popularity with a tail like ML-100K's; lengths 8 to 80."""
    rng = np.random.default_rng(0)
    lengths = np.clip(np.round(rng.lognormal(3.5, 0.7, N_USERS)), 8, LONGEST).astype(np.int64)
    while lengths.sum() != N_EVENTS:
        change = int(np.sign(N_EVENTS - lengths.sum()))
        free = np.flatnonzero((lengths + change >= 8) & (lengths + change <= LONGEST))
        few = min(abs(N_EVENTS - int(lengths.sum())), len(free))
        lengths[rng.choice(free, few, replace=False)] += change
    popularity = 1 / (np.arange(N_ITEMS) + 20.0)
    keys = rng.exponential(size=(N_USERS, N_ITEMS)) / popularity
    items = np.concatenate([row.argsort()[:length] for row, length in zip(keys, lengths, strict=True)]).astype(np.int32)
    users = np.repeat(np.arange(N_USERS, dtype=np.int32), lengths)
    shuffled = np.lexsort((rng.random(N_EVENTS), users))
    sequences = Sequences.from_events(users, items[shuffled])
    features = rng.uniform(-1, 1, (N_USERS, N_COLUMNS)).astype(np.float32)
    return TrainingData(N_USERS, N_ITEMS, users, sequences.items, features, sequences=sequences)


def ready(name: str, known: TrainingData) -> SequenceModel:
    """A model that has trained for an epoch, which is the warm-up."""
    cls = model_class(name.partition(",")[0])
    model = cls(cls.Config.model_validate(CONFIGS[name])).fit(known, rng=np.random.default_rng(0))
    assert isinstance(model, SequenceModel)
    model.network.train()
    return model


def naive_step(known: TrainingData) -> Callable[[], None]:
    """A gradient step of DIPSGNN's network, without noise, on `EXAMPLES` random prefixes."""
    model = ready("dipsgnn", known)
    optimiser = torch.optim.Adam(model.network.parameters(), lr=0.001)
    sequences, rng = known.sequences, np.random.default_rng(1)
    assert sequences is not None
    ends = np.flatnonzero(sequences.has_next)

    def step() -> None:
        examples = []
        for end in rng.choice(ends, EXAMPLES, replace=False):
            row = sequences.owners[end]
            examples.append((int(sequences.users[row]), sequences.items[sequences.indptr[row] : end + 2].tolist()))
        optimiser.zero_grad()
        padded_loss(model.network, examples, steps=1, clip=0.4).backward()
        optimiser.step()

    return step


def main() -> None:
    """Print seconds per epoch and what a hundred prefixes take, against one graph per prefix."""
    torch.set_num_threads(1)
    known = data()
    assert known.sequences is not None
    n_examples = known.sequences.n_events - len(known.sequences)
    print(f"{N_USERS} sequences, {N_EVENTS} events, {N_ITEMS} items; d = 100, d' = 50, T = 1; one thread")
    naive = naive_step(known)
    naive()
    for name in CONFIGS:
        model = ready(name, known)
        epochs, steps = [], []
        for _ in range(REPEATS):
            epochs.append(cpu_seconds(model.train_epoch))
            steps.append(cpu_seconds(naive))
        epoch, slow = statistics.median(epochs), statistics.median(steps) * n_examples / EXAMPLES
        each = 1e3 * epoch * EXAMPLES / n_examples
        note = f"{slow / epoch:6.1f} times as fast as a dense graph per prefix ({slow:.0f} s per epoch)"
        if name in RECBOLE:
            note += f"; {RECBOLE[name] / each:.0f} times as fast as RecBole's {RECBOLE[name]:.0f} ms on two cores"
        print(f"{name:18} {epoch:7.2f} s per epoch {each:7.2f} ms per {EXAMPLES} prefixes {note}", flush=True)


def cpu_seconds(run: Callable[[], object]) -> float:
    """Processor time: what other programs do meanwhile does not count."""
    began = time.process_time()
    run()
    return time.process_time() - began


if __name__ == "__main__":
    main()
