"""Time and memory of embedding large social networks: `python -m tests.benchmarks.bench_networks [n_users]`.

Generated networks of a million users each (or as many as said): ten friends, three posts of eight words and 56
attributes per user. Each line is a fresh process that takes a few gradient steps, on a tenth as many friendships as
there are users, and embeds everyone; the peak is all that the process held (Linux), data included. At a million users
R-GCN held 7.3 GiB, and the cross-network GCN 10.1 GiB for both networks of a million together.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the train stage does

import re
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tasks.models.training import EpochModel
from tasks.models.user_networks.base import NetworkData, PairData, Posts, undirected_pairs
from tasks.models.user_networks.crosue import CroGCN
from tasks.models.user_networks.rgcn import RGCN
from tasks.models.user_networks.skipgram import DeepWalk, DeepWalkConfig, Word2Vec, Word2VecConfig
from tasks.models.user_networks.sne import SNE

N_USERS, FRIENDS, POSTS, WORDS, N_WORDS, N_COLUMNS = 1_000_000, 10, 3, 8, 20_000, 56
STEPS = 3
MODELS = ("data", "rgcn", "crogcn", "sne", "word2vec", "deepwalk")
SMALL = {"deepwalk": 10, "sne": 4}
"""What is measured on a network so many times smaller."""


def network(n_users: int, rng: np.random.Generator) -> NetworkData:
    """Friends drawn uniformly, words by Zipf's law."""
    n_posts = n_users * POSTS
    posts = Posts(
        np.repeat(np.arange(n_users, dtype=np.int32), POSTS),
        np.arange(n_posts + 1, dtype=np.int64) * WORDS,
        (rng.zipf(1.3, n_posts * WORDS) % N_WORDS).astype(np.int32),
        N_WORDS,
    )
    return NetworkData(
        n_users,
        undirected_pairs(rng.integers(0, n_users, (n_users * FRIENDS // 2, 2))),
        rng.uniform(-1, 1, (n_users, N_COLUMNS)).astype(np.float32),
        posts,
        rng.standard_normal((N_WORDS, 128), np.float32),
    )


class Enough(Exception):
    """Raised when enough steps were taken."""


def few_steps(model: EpochModel, data: NetworkData | PairData, rng: np.random.Generator) -> float:
    """Seconds per step, the first of which is the warm-up."""
    ends: list[float] = []
    step = model.step

    def timed(loss: Tensor) -> float:
        value = step(loss)
        ends.append(time.perf_counter())
        if len(ends) > STEPS:
            raise Enough
        return value

    model.step = timed  # type: ignore[method-assign]
    with suppress(Enough):
        model.fit(data, rng=rng)  # type: ignore[arg-type]
    model.weights_changed()
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def measure(name: str, n_users: int) -> None:
    """Prints seconds and peak memory of one model, in this process."""
    rng = np.random.default_rng(0)
    n_users //= SMALL.get(name, 1)
    data = network(n_users, rng)
    epoch = {"epochs": 1, "learning_rate": 0.001, "batch_size": max(n_users // 10, 1)}
    seconds, per, began = 0.0, "fit", time.perf_counter()
    if name in ("word2vec", "deepwalk"):
        plain = (
            DeepWalk(DeepWalkConfig(walks=2, length=20, window=5)) if name == "deepwalk" else Word2Vec(Word2VecConfig())
        )
        plain.fit(replace(data, word_vectors=None), rng=rng).embed()
        seconds = time.perf_counter() - began
    elif name != "data":
        networks: NetworkData | PairData = data
        if name == "crogcn":
            first = rng.standard_normal((n_users, 128), np.float32)
            anchors = np.stack([np.arange(n_users // 2, dtype=np.int32)] * 2, axis=1)
            networks = PairData((data, network(n_users, rng)), anchors, (first, first[::-1].copy()))
        cls: Any = {"rgcn": RGCN, "crogcn": CroGCN, "sne": SNE}[name]
        model = cls(cls.Config.model_validate(epoch))
        seconds, per = few_steps(model, networks, rng), "step"
        model.embed()
    held = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    print(f"{name:10} {n_users:10,} users {seconds:8.2f} s/{per:4} {int(held[1]) / 1024**2:6.2f} GiB", flush=True)  # type: ignore[index]


def main() -> None:
    """Each model in a process of its own."""
    n_users = int(sys.argv[1]) if len(sys.argv) > 1 else N_USERS
    if len(sys.argv) > 2:
        measure(sys.argv[2], n_users)
        return
    for name in MODELS:
        subprocess.run([sys.executable, "-m", "tests.benchmarks.bench_networks", str(n_users), name], check=True)


if __name__ == "__main__":
    main()
