"""What privacy adds to a training step on users: time and memory of private and plain steps of one network.

The network is that of Mult-VAE on MovieLens 1M (3,706 items, 600-200), with 256 users in a step. Steps of all kinds
alternate, so that all see the same machine.

    python -m tests.benchmarks.bench_user_sgd
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from tasks.models.vae.autoencoder import VAE, VAEConfig
from tasks.training_data import TrainingData

N_USERS, N_ITEMS, BATCH, STEPS = 512, 3_706, 256, 12
COMMON = {
    "epochs": 1, "batch_size": BATCH, "learning_rate": 0.001, "optimiser": "adam", "values": "binary",
    "dimension": 200, "hidden": 600, "beta": 0.2, "prior": "standard",
}  # fmt: skip
PRIVACY = {
    "plain": {"privacy": "none"},
    "constant clip": {"privacy": "dpsgd", "clip_norm": 1.0, "epsilon_max": 1.0, "delta": 1e-4},
    "optimal clip": {"privacy": "dpsgd-optimal-clip", "epsilon_max": 1.0, "delta": 1e-4},
}
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
"""glibc: what is freed leaves the process at once, so that what is resident is what is held."""


def model(kind: str) -> VAE:
    """Ready for steps."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.03)
    data = TrainingData(N_USERS, N_ITEMS, users.astype(np.int32), items.astype(np.int32))
    made = VAE(VAEConfig.model_validate(COMMON | PRIVACY[kind]))
    made._data, made._rng = data, rng
    made.network = made.build(data, rng)
    made._optimiser = made.optimiser()
    return made


def step(made: VAE) -> None:
    users = np.sort(made._rng.permutation(N_USERS)[:BATCH])
    (made.private_step if made.network.private else made.public_step)(users)


def memory(name: str) -> float:
    """A line of /proc/self/status, MiB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(rf"{name}:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def peak(kind: str) -> None:
    """Prints what steps of a fresh process hold at most, gradients too, in MiB above what its data, weights and the
    optimiser's moments hold, and these (Linux)."""
    made = model(kind)
    step(made)  # the optimiser's moments are there
    made._optimiser.zero_grad()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak so far
    before = memory("VmRSS")
    for _ in range(3):
        step(made)
    print(memory("VmHWM") - before, before)


def main() -> None:
    torch.set_num_threads(1)
    models = {kind: model(kind) for kind in PRIVACY}
    seconds: dict[str, list[float]] = {kind: [] for kind in PRIVACY}
    for _ in range(STEPS):
        for kind, made in models.items():
            started = time.perf_counter()
            step(made)
            seconds[kind].append(time.perf_counter() - started)
    plain = float(np.median(seconds["plain"]))
    held, transient = {}, {}
    for kind in PRIVACY:
        command = [sys.executable, "-m", "tests.benchmarks.bench_user_sgd", kind]
        said = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **GIVEN_BACK}
        ).stdout
        more, before = map(float, said.split())
        held[kind], transient[kind] = more + before, more
    for kind, times in seconds.items():
        median = float(np.median(times))
        print(
            f"{kind:15} {1000 * median:7.1f} ms a step ({median / plain:.2f} x), "
            f"{transient[kind]:5.1f} MiB for the step alone ({transient[kind] / transient['plain']:.2f} x), "
            f"{held[kind]:5.0f} MiB of the process at its peak ({held[kind] / held['plain']:.2f} x)"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        torch.set_num_threads(1)
        peak(sys.argv[1])
    else:
        main()
