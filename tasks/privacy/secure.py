"""Noise for a release that is meant to be kept secret: the system's randomness, and no telling low bits.

A double that noise was added to shows in its low bits what it was added to (Mironov, CCS 2012; Jin et al., "Are we
there yet?", IEEE S&P 2022). So the value is rounded to a grid, the noise is drawn as a multiple of the grid's step, and
both are added as integers. The noise is the continuous law's, rounded to the nearest multiple: the value is one
already, so the sum is the continuous mechanism's output, rounded. That is post-processing, and whatever an accountant
says of the continuous mechanism holds, subsampled or not.

Rounding moves each of d numbers by at most half a step g, and a sensitivity by at most g √d (L2) or g d (L1). `GROWTH`
more noise pays for that; `add` refuses what it would not pay for, see `SHARE`.

Drawing is exact, up to the generator's bits: X is the quantile of a uniform number V, of which as many bits are drawn
as decide the rounding of X. 63 bits and double precision decide all but about one number in a thousand; what is left is
decided by comparing V with the law's tail in as many digits as it takes (the idea of Karney, "Sampling exactly from the
normal distribution", ACM TOMS 2016: nothing is rounded before it is known). Time depends on what is drawn: this is no
protection from someone who measures it.
"""

from __future__ import annotations

import math
import secrets
from typing import Literal, NoReturn

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray
from scipy.special import ndtri

Law = Literal["gaussian", "laplace"]

GRID_BITS = 36
"""A grid's step is the largest power of two of which 2^36 are at most the noise's scale."""
GROWTH = 2.0**-10
"""So much larger than asked for is the scale of the noise, relatively."""
SHARE = 2.0**-14
"""Of the sensitivity, the most that rounding one array may add: `GROWTH` pays for 16 arrays in L1, 256 in L2."""
LARGEST_SCALE = {"gaussian": 2.0**100, "laplace": 2.0**100, "discrete laplace": 2.0**40}
"""Of a law, the scale up to which its noise keeps it in any mode, and so a smallest budget. Beyond, floats of single
precision would soon be infinite. Integers would come in steps, which show an exact count, and at last all be equal."""
_LARGEST = 2.0**62
"""Of a value, in steps of the grid; what is farther out is cut off there before noise is added. Noise stays below 2^44
steps, so that sums are whole numbers of 64 bits; beyond 2^53 they are rounded afterwards, to double precision."""
_DIGITS = 63
_FEWEST = 1 << 40
"""Numbers whose 63 bits are below this, deep in the tail, are decided by comparison alone."""
_MARGIN = 2.0**-48
"""Relative error allowed for a quantile in double precision: 32 times a rounding; scipy and numpy stay below 4."""


class SecureGenerator(np.random.Generator):
    """A generator keyed by the operating system that is never written down: ChaCha with 20 rounds, a key of 256 bits.

    Raises:
        TypeError: it is copied or pickled.
    """

    def __init__(self) -> None:
        """Draw a key of its own; no seed has a part in it."""
        from randomgen import ChaCha  # who does not ask for secure noise need not load it

        super().__init__(ChaCha(key=secrets.randbits(256), rounds=20))

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """As many with keys of their own."""
        return [SecureGenerator() for _ in range(n_children)]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a generator of secure noise is neither copied nor saved: its state would undo the noise")

    def __deepcopy__(self, _: object) -> NoReturn:
        self.__reduce__()


def check_scale(law: Literal[Law, "discrete laplace"], scale: float | np.floating | NDArray[np.floating]) -> None:
    """Refuse noise that is too large for its arithmetic.

    Args:
        scale: one for all numbers, or one for each.

    Raises:
        ValueError: the scale, or one of them, is NaN or above `LARGEST_SCALE`.
    """
    if not np.all(np.asarray(scale) <= LARGEST_SCALE[law]):
        raise ValueError(
            f"the budget is too small: {law} noise of scale {np.max(scale):.3g} is above {LARGEST_SCALE[law]:.3g}"
        )


def add(
    rng: SecureGenerator, law: Law, value: NDArray[np.floating], scale: float, sensitivity: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Value + noise, both on the grid of `scale`, and the noise alone; the shape of `value`.

    Args:
        law: `gaussian`, where `scale` is the standard deviation and `sensitivity` in L2; `laplace`, in L1.
        value: finite, any shape; cut off at 2^62 steps of the grid, which no sensitivity grows by.
        scale: of the noise, before `GROWTH`; public, as is the shape.
        sensitivity: of all arrays that are released together.

    Raises:
        ValueError: scale or sensitivity is not a positive finite number, the scale is above `LARGEST_SCALE`, a value is
            not finite, or rounding so many numbers would add more to the sensitivity than `SHARE` of it.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale of secure noise must be a positive finite number (is {scale})")
    check_scale(law, scale)
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise ValueError(f"sensitivity must be a positive finite number (is {sensitivity})")
    step = grid(scale)
    moved = step * (math.sqrt(value.size) if law == "gaussian" else value.size)
    if moved > SHARE * sensitivity:
        raise ValueError(
            f"secure noise: {value.size} numbers are too many for noise of {scale / sensitivity:.3g} times their "
            f"sensitivity: rounding them to its grid would add {moved / sensitivity:.2g} of that"
        )
    exact = np.asarray(value, np.float64)
    if not np.isfinite(exact).all():
        raise ValueError("values that noise is added to must be finite")
    multiples = np.clip(np.rint(exact / step), -_LARGEST, _LARGEST).astype(np.int64)
    noise = draw_rounded(rng, law, scale * (1 + GROWTH) / step, value.size).reshape(value.shape)
    return np.float64(step) * (multiples + noise), np.float64(step) * noise


def grid(scale: float) -> float:
    """The step of the grid on which noise of this scale lies: a power of two."""
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - GRID_BITS)


def draw_rounded(rng: SecureGenerator, law: Law, scale: float, n: int) -> NDArray[np.int64]:
    """(n,) numbers of N(0, scale²) or Laplace(scale), each rounded to the nearest integer."""
    words = rng.bit_generator.random_raw(n)
    sizes = _floors(rng, law, words >> np.uint64(1), scale, 0.5)
    return np.where(words & np.uint64(1), -sizes, sizes)


def geometric(rng: SecureGenerator, rate: float, n: int) -> NDArray[np.int64]:
    """(n,) numbers from 0, P[k] proportional to exp(-rate k): an exponential variable, rounded down."""
    return _floors(rng, "laplace", rng.bit_generator.random_raw(n) >> np.uint64(1), 1 / rate, 0.0)


def _floors(
    rng: SecureGenerator, law: Law, digits: NDArray[np.uint64], scale: float, offset: float
) -> NDArray[np.int64]:
    """floor(scale × X + offset), X being |N(0, 1)| or Exp(1): the quantile of a tail probability.

    Args:
        digits: (n,) its first 63 bits; more are drawn where they do not decide.
        offset: 0 or 1/2.
    """
    tail = (digits + 0.5) * 2.0**-_DIGITS
    size = -ndtri(tail / 2) if law == "gaussian" else -np.log(tail)
    error = _MARGIN * (1 + size) + 2 / np.maximum(digits, 1)
    low: NDArray[np.int64] = np.floor(scale * np.maximum(size - error, 0.0) + offset).astype(np.int64)
    high = np.floor(scale * (size + error) + offset).astype(np.int64)
    for index in np.flatnonzero((low != high) | (digits < _FEWEST)):
        deep = digits[index] < _FEWEST
        bounds = (0, None) if deep else (int(low[index]), int(high[index]) + 1)
        low[index] = _floor_by_comparison(rng, law, int(digits[index]), scale, offset, *bounds)
    return low


def _floor_by_comparison(
    rng: SecureGenerator, law: Law, digits: int, scale: float, offset: float, low: int, high: int | None
) -> int:
    """The floor of one number by comparison: the largest k whose tail probability is not below V.

    Args:
        digits: the first 63 bits of V.
        low, high: a k that is reached, and one that is not (None: not known).
    """
    n_bits = _DIGITS

    def reached(multiple: int) -> bool:
        nonlocal digits, n_bits
        while True:
            with mpmath.workprec(n_bits + 64):
                at = (mpf(multiple) - offset) / scale
                chance = mpmath.erfc(at / mpmath.sqrt(2)) if law == "gaussian" else mpmath.exp(-at)
                low_bound, high_bound = (
                    mpmath.ldexp(chance * (1 + sign * mpf(2) ** -(n_bits + 40)), n_bits) for sign in (-1, 1)
                )
                if digits + 1 <= low_bound:
                    return True
                if digits >= high_bound:
                    return False
            digits = digits << 64 | int(rng.bit_generator.random_raw())
            n_bits += 64

    if high is None:
        high = 1
        while reached(high):
            low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) else (low, middle)
    return low
