"""Generators of the noise of releases: a stream of its own for each."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, epsilon: float, *release: str) -> np.random.Generator:
    """Noise of one release, from the seed and all 64 bits of the budget.

    Every pair has its own stream, independent of which others are listed in params.yaml: two budgets under one seed
    must not share their noise, or their difference would reveal the features.

    Args:
        release: what else tells the release from others of the same seed and budget, if anything does: the entry of
            params.yaml, its setting, the network, the kind of data.
    """
    entropy = [seed, int(np.float64(epsilon).view(np.uint64))]
    if release:
        named = "".join(f"{len(name)} {name} " for name in release)  # no two lists of names give the same text
        entropy.append(int.from_bytes(hashlib.sha256(named.encode()).digest(), "little"))
    return np.random.default_rng(entropy)
