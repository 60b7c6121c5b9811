"""The one door for private randomness: whatever is drawn to hide something is drawn here, and nowhere else.

Every draw names the release that it belongs to, its law, its scale and its shape. `recording` tells a test what was
drawn. What hides nothing (initial weights, batches, the random part of an autoencoder) does not come through here.

Two modes, which the generator decides. `research`: numpy's generators, from seeds that the parameters name, so that
every number can be regenerated; whoever knows the seed knows the noise. `secure`: a generator keyed by the operating
system, and noise that is added on a grid, exactly (`tasks.privacy.secure`), for anyone who releases a model.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from tasks.core.hashing import digest
from tasks.privacy import controls, keyed, secure
from tasks.privacy.secure import SecureGenerator

if TYPE_CHECKING:
    import torch

Mode = Literal["research", "secure"]
Law = Literal["gaussian", "laplace", "discrete laplace", "exponential", "binomial", "uniform"]


@dataclass(frozen=True)
class Draw:
    """What was drawn once."""

    release: str
    """What the numbers hide, or decide about, e.g. `item counts`."""
    law: Law
    scale: float
    """σ of Gaussian, b of Laplace, 1/(1 − e^−rate) of discrete Laplace noise, the largest if numbers have their own.

    Of choices how many there are; of binomial counts n; otherwise 1.
    """
    shape: tuple[int, ...]
    values: NDArray[Any] = field(default_factory=lambda: np.empty(0), compare=False, repr=False)
    """The numbers; of Gaussian ones without their scale."""


_Number = TypeVar("_Number", bound=np.generic)
_Float = TypeVar("_Float", bound=np.floating[Any])
FINEST = 20
"""`on_grid` leaves this many binary digits below the largest number."""
NOISELESS = 1e3
"""A budget at which coins hide nothing."""
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


def generator(seed: int, epsilon: float, *release: str, secure: bool = False) -> np.random.Generator:
    """Noise of one release, from the seed and all 64 bits of the budget; of secure noise from neither.

    Every pair has its own stream, independent of which others are listed in params.yaml: two budgets under one seed
    must not share their noise, or their difference would reveal the features.

    Args:
        release: what else distinguishes the release from others of one seed and budget, if anything does: the entry of
            params.yaml, its setting, the network, the kind of data.
    """
    if secure:
        return secure_generator()
    entropy = [seed, int(np.float64(epsilon).view(np.uint64))]
    if release:
        entropy.append(int.from_bytes(_digest(release), "little"))
    return np.random.default_rng(entropy)


def secure_generator() -> np.random.Generator:
    """A generator of secure noise: the operating system's key, no seed, and a state that is never written down."""
    return SecureGenerator()


def state(rng: np.random.Generator) -> dict[str, object] | None:
    """What a checkpoint keeps of a generator of noise: nothing of a secure one.

    Training that goes on draws from a new one. Noise of later steps need only be independent of what was drawn before,
    which it is; steps after the checkpoint are run again and were released to no one.
    """
    return None if isinstance(rng, SecureGenerator) else dict(rng.bit_generator.state)


def key(rng: np.random.Generator) -> int:
    """A secret of 62 bits for `gaussian_by_key` and `gaussian_streams`, from the noise's own generator.

    No recorder is told: what is drawn by the key is recorded.

    Raises:
        ValueError: the generator is secure; the hash that makes noise of the key is not.
    """
    _refuse(rng)
    return int(rng.integers(2**62))


def gaussian(
    rng: np.random.Generator,
    release: str,
    std: float | np.floating | NDArray[np.floating],
    shape: tuple[int, ...] | int,
    *,
    single: bool = False,
) -> NDArray[np.floating]:
    """`std` x N(0, 1), of the precision of `std` and of what is drawn together.

    Args:
        std: one for all, or what broadcasts to `shape`.
        single: draw float32.

    Raises:
        ValueError: the generator is secure, and the noise would be added in floating point; see `add_gaussian`. `std`
            is above `tasks.privacy.secure.LARGEST_SCALE`, here and below.
    """
    _refuse(rng)
    secure.check_scale("gaussian", std)
    numbers: NDArray[np.floating] = rng.standard_normal(shape, np.float32) if single else rng.standard_normal(shape)
    return np.asarray(std * _record(release, "gaussian", std, numbers))


def add_gaussian(
    rng: np.random.Generator, release: str, value: NDArray[_Float], std: float, *, sensitivity: float
) -> NDArray[_Float]:
    """`value` + N(0, std²), in the precision of `value`.

    Args:
        sensitivity: in L2, of all that is released together; see `tasks.privacy.secure.add`.
    """
    if _is_secure(rng):
        if not std:
            return value
        total, numbers = secure.add(rng, "gaussian", value, std, sensitivity)
        _record(release, "gaussian", std, numbers / std)
        return total.astype(value.dtype)
    return np.asarray(value + gaussian(rng, release, std, value.shape).astype(value.dtype, copy=False))


def add_laplace(
    rng: np.random.Generator, release: str, value: NDArray[np.float64], scale: float, *, sensitivity: float
) -> NDArray[np.float64]:
    """`value` + Laplace(`scale`); sensitivity: in L1, see `tasks.privacy.secure.add`."""
    if _is_secure(rng):
        total, numbers = secure.add(rng, "laplace", value, scale, sensitivity)
        _record(release, "laplace", scale, numbers)
        return total
    return value + laplace(rng, release, scale, value.shape)


def add_symmetric_gaussian(
    rng: np.random.Generator, release: str, value: NDArray[np.float64], std: float, *, sensitivity: float
) -> NDArray[np.float64]:
    """Symmetric (..., d, d) + symmetric noise: `std` on the diagonal, std/√2 off it, as Frobenius norms need."""
    if isinstance(rng, SecureGenerator):
        noisy = add_gaussian(rng, release, value, std, sensitivity=sensitivity)
        return (noisy + np.swapaxes(noisy, -1, -2)) / 2
    numbers = gaussian(rng, release, std, value.shape)
    return np.asarray(value + (numbers + np.swapaxes(numbers, -1, -2)) / 2)


def on_grid(rng: np.random.Generator, values: NDArray[np.float64], largest: float) -> NDArray[np.float64]:
    """Numbers that are noisy by themselves, in secure mode rounded, so that their low bits show nothing.

    Args:
        largest: of the numbers' sizes; public. The step is 2^-20 of it or less, a power of two.
    """
    if not isinstance(rng, SecureGenerator):
        return values
    step = 2.0 ** (np.floor(np.log2(largest)) - FINEST)
    return np.asarray((np.rint(values / step) + 0.0) * step)  # never -0, whose sign would show


def gaussian_by_key(
    key: tuple[int, ...], release: str, std: float, ids: NDArray[np.integer], width: int
) -> torch.Tensor:
    """(n, width) float32, a function of release, key and (n,) ids alone: see `tasks.privacy.keyed`."""
    import torch  # who draws into arrays need not load it

    secure.check_scale("gaussian", std)
    numbers = keyed.normals((_release_key(release), *key), ids, width)
    return torch.from_numpy(_record(release, "gaussian", std, numbers)) * std


def gaussian_streams(
    key: tuple[int, ...], release: str, std: float, ids: NDArray[np.uint64], counts: NDArray[np.integer], width: int
) -> torch.Tensor:
    """(Σ counts, width) float32: counts[i] rows for each of (n,) ids, a function of release, key and id alone."""
    import torch  # who draws into arrays need not load it

    secure.check_scale("gaussian", std)
    numbers = keyed.streams((_release_key(release), *key), ids, counts, width)
    return torch.from_numpy(_record(release, "gaussian", std, numbers)) * std


def laplace(rng: np.random.Generator, release: str, scale: float, shape: tuple[int, ...] | int) -> NDArray[np.float64]:
    """Laplace(`scale`), of variance 2 scale².

    Raises:
        ValueError: the generator is secure, and the noise would be added in floating point; see `add_laplace`. `scale`
            is above `tasks.privacy.secure.LARGEST_SCALE`.
    """
    _refuse(rng)
    secure.check_scale("laplace", scale)
    return _record(release, "laplace", scale, rng.laplace(0.0, scale, shape))


def discrete_laplace(rng: np.random.Generator, release: str, rate: float, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """P[k] proportional to exp(-rate |k|): the difference of two geometric variables."""
    rate = budget(rng, rate)
    success = -math.expm1(-rate)
    secure.check_scale("discrete laplace", 1 / rate if rate else math.inf)
    if isinstance(rng, SecureGenerator):
        first, second = secure.geometric(rng, rate, 2 * math.prod(shape)).reshape(2, *shape)
        return _record(release, "discrete laplace", 1 / success, first - second)
    numbers = rng.geometric(success, shape) - rng.geometric(success, shape)
    return _record(release, "discrete laplace", 1 / success, numbers)


def budget(rng: np.random.Generator, epsilon: float) -> float:
    """The ε that coins of a mechanism of `epsilon` are tossed with: more in the control of an audit (`controls`).

    Raises:
        ValueError: the generator is secure, in a control.
    """
    _is_secure(rng)
    share = controls.share.get()
    return epsilon / share if share else NOISELESS


def exponential(rng: np.random.Generator, release: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Exp(1)."""
    _refuse(rng)
    return _record(release, "exponential", 1.0, rng.standard_exponential(shape))


def binomial(rng: np.random.Generator, release: str, n: int, probability: float) -> int:
    """How many of n coins fall on their face."""
    return int(_record(release, "binomial", float(n), np.array(rng.binomial(n, probability))))


def uniform(rng: np.random.Generator, release: str, shape: tuple[int, ...] | int) -> NDArray[np.float64]:
    """Uniform in [0, 1): what randomised response, sampling and permutation are made of."""
    return _record(release, "uniform", 1.0, np.asarray(rng.random(shape)))


def integers(rng: np.random.Generator, release: str, below: int, size: int) -> NDArray[np.int64]:
    """Uniform in 0..below-1."""
    return _record(release, "uniform", float(below), rng.integers(0, below, size))


def subset(rng: np.random.Generator, release: str, ids: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """`count` of the given ones, every set equally likely."""
    return _record(release, "uniform", float(len(ids)), rng.choice(ids, count, replace=False, shuffle=False))


def order(rng: np.random.Generator, release: str, n: int) -> NDArray[np.int64]:
    """0..n-1 in random order."""
    return _record(release, "uniform", float(n), rng.permutation(n))


def _is_secure(rng: np.random.Generator) -> TypeGuard[SecureGenerator]:
    """Whether noise is secure, which is never scaled (ValueError in the control of an audit)."""
    if not isinstance(rng, SecureGenerator):
        return False
    if controls.share.get() != 1:
        raise ValueError("secure noise is never scaled: the control of an audit takes research noise")
    return True


def _refuse(rng: np.random.Generator) -> None:
    if isinstance(rng, SecureGenerator):
        raise ValueError("what is drawn here has no secure form; a model that draws it says so in `insecure`")


def _release_key(release: str) -> int:
    """A release's name as part of a key: no two releases share noise."""
    return digest(release.encode())


def _record(
    release: str, law: Law, scale: float | np.floating | NDArray[np.floating], numbers: NDArray[_Number]
) -> NDArray[_Number]:
    """What was drawn, of additive noise the share that a control leaves; the recorder keeps a copy."""
    if law in ("gaussian", "laplace") and (share := controls.share.get()) != 1:
        numbers = np.multiply(numbers, share, dtype=numbers.dtype)
    recorder = _recorder.get()
    if recorder is not None:
        largest = float(np.max(scale)) if np.size(scale) else 0.0
        recorder.append(Draw(release, law, largest, numbers.shape, numbers.copy()))
    return numbers
