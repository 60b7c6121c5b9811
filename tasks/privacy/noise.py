"""The one door for private randomness: whatever is drawn to hide something is drawn here, and nowhere else.

Every draw names the release that it belongs to, its law, its scale and its shape. `recording` tells a test what was
drawn. What hides nothing (initial weights, batches, the random part of an autoencoder) does not come through here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.privacy import keyed

Law = Literal["gaussian", "laplace", "discrete laplace", "exponential", "binomial", "uniform"]


@dataclass(frozen=True)
class Draw:
    """What was drawn once."""

    release: str
    """What the numbers hide, or decide about, e.g. `item counts`."""
    law: Law
    scale: float
    """Of the law; where numbers have scales of their own, the largest. 1 of uniform numbers."""
    shape: tuple[int, ...]
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0), compare=False, repr=False)
    """The numbers; of Gaussian ones without their scale."""


_Number = TypeVar("_Number", bound=np.generic)
_recorder: ContextVar[list[Draw] | None] = ContextVar("recorder", default=None)


@contextmanager
def recording() -> Iterator[list[Draw]]:
    """Yield a list to which everything drawn meanwhile is added, in order."""
    draws: list[Draw] = []
    token = _recorder.set(draws)
    try:
        yield draws
    finally:
        _recorder.reset(token)


def stream(rng: np.random.Generator, *names: str) -> np.random.Generator:
    """A generator for the noise of one fit, which shares nothing with `rng` and leaves what `rng` draws as it is.

    Fits that differ in their seed, or in any name, have independent noise; so have two fits with the same `rng`.

    Args:
        rng: of everything else that the fit draws; one more child of its seed is spawned.
        names: what else the noise must not be shared between: data, experiment, setting, configuration.
    """
    (child,) = rng.bit_generator.seed_seq.spawn(1)  # type: ignore[attr-defined]  # numpy's types say ISeedSequence
    return np.random.default_rng(int.from_bytes(child.generate_state(8).tobytes() + _digest(names), "little"))


def _digest(names: tuple[str, ...]) -> bytes:
    """No two lists of names give the same text."""
    return hashlib.sha256("".join(f"{len(name)} {name} " for name in names).encode()).digest()


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
        entropy.append(int.from_bytes(_digest(release), "little"))
    return np.random.default_rng(entropy)


def key(rng: np.random.Generator) -> int:
    """A secret of 62 bits for `gaussian_by_key` and `gaussian_streams`, from the noise's own generator.

    No recorder is told: what is drawn by the key is recorded.
    """
    return int(rng.integers(2**62))


def gaussian(
    rng: np.random.Generator,
    release: str,
    std: float | np.floating[Any] | NDArray[np.floating],
    shape: tuple[int, ...] | int,
    *,
    single: bool = False,
) -> NDArray[Any]:
    """`std` x N(0, 1), of the precision of `std` and of what is drawn together.

    Args:
        std: one for all, or what broadcasts to `shape`.
        single: draw float32.
    """
    drawn: NDArray[Any] = rng.standard_normal(shape, np.float32) if single else rng.standard_normal(shape)
    return np.asarray(std * _recorded(release, "gaussian", std, drawn))


def gaussian_by_key(
    key: tuple[int, ...], release: str, std: float, ids: NDArray[np.integer], width: int
) -> torch.Tensor:
    """(n, width) float32, a function of release, key and (n,) ids alone: see `tasks.privacy.keyed`."""
    drawn = keyed.normals((_named(release), *key), ids, width)
    return torch.from_numpy(_recorded(release, "gaussian", std, drawn)) * std


def gaussian_streams(
    key: tuple[int, ...], release: str, std: float, ids: NDArray[np.uint64], counts: NDArray[np.integer], width: int
) -> torch.Tensor:
    """(Σ counts, width) float32: counts[i] rows for each of (n,) ids, a function of release, key and id alone."""
    drawn = keyed.streams((_named(release), *key), ids, counts, width)
    return torch.from_numpy(_recorded(release, "gaussian", std, drawn)) * std


def laplace(rng: np.random.Generator, release: str, scale: float, shape: tuple[int, ...] | int) -> NDArray[np.float64]:
    """Laplace(`scale`), of variance 2 scale²."""
    return _recorded(release, "laplace", scale, rng.laplace(0.0, scale, shape))


def discrete_laplace(
    rng: np.random.Generator, release: str, success: float, shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """P[k] proportional to (1 - success)^|k|: the difference of two geometric variables."""
    drawn = rng.geometric(success, shape) - rng.geometric(success, shape)
    return _recorded(release, "discrete laplace", 1 / success, drawn)


def exponential(rng: np.random.Generator, release: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Exp(1)."""
    return _recorded(release, "exponential", 1.0, rng.standard_exponential(shape))


def binomial(rng: np.random.Generator, release: str, n: int, probability: float) -> int:
    """How many of n coins fall on their face."""
    return int(_recorded(release, "binomial", float(n), np.array(rng.binomial(n, probability))))


def uniform(rng: np.random.Generator, release: str, shape: tuple[int, ...] | int) -> NDArray[np.float64]:
    """Uniform in [0, 1): what randomised response, sampling and permutation are made of."""
    return _recorded(release, "uniform", 1.0, np.asarray(rng.random(shape)))


def integers(rng: np.random.Generator, release: str, below: int, size: int) -> NDArray[np.int64]:
    """Uniform in 0..below-1."""
    return _recorded(release, "uniform", float(below), rng.integers(0, below, size))


def subset(rng: np.random.Generator, release: str, of: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """`count` of the given ones, every set equally likely."""
    return _recorded(release, "uniform", float(len(of)), rng.choice(of, count, replace=False, shuffle=False))


def order(rng: np.random.Generator, release: str, n: int) -> NDArray[np.int64]:
    """0..n-1 in random order."""
    return _recorded(release, "uniform", float(n), rng.permutation(n))


def _named(release: str) -> int:
    """A release's name as part of a key: no two releases share noise."""
    return keyed.digest(release.encode())


def _recorded(
    release: str, law: Law, scale: float | np.floating[Any] | NDArray[np.floating], drawn: NDArray[_Number]
) -> NDArray[_Number]:
    """What was drawn, of which the recorder keeps a copy."""
    recorder = _recorder.get()
    if recorder is not None:
        largest = float(np.max(scale)) if np.size(scale) else 0.0
        recorder.append(Draw(release, law, largest, drawn.shape, drawn.copy()))
    return drawn
