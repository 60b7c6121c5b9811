"""Random numbers that hide nothing: initial weights, the random part of an autoencoder's code, random vectors.

What hides something comes through `tasks.privacy.noise`; a test sees to it that private models draw from these alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def normal(rng: np.random.Generator, shape: tuple[int, ...], std: float = 1.0, *, single: bool = False) -> NDArray[Any]:
    """N(0, std²): float64, or float32 where they are drawn in `single` precision."""
    return std * (rng.standard_normal(shape, np.float32) if single else rng.standard_normal(shape))
