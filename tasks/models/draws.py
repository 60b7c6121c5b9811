"""Random numbers that hide nothing: initial weights, the random part of an autoencoder's code, random vectors.

What hides something comes through `tasks.privacy.noise`; a test sees to it that private models draw from these alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tasks.models.own_draws import Draws


def normal(rng: Draws, shape: tuple[int, ...], std: float = 1.0, *, single: bool = False) -> NDArray[Any]:
    """N(0, std²): float64, or float32 where they are drawn in `single` precision."""
    return std * (rng.standard_normal(shape, np.float32) if single else rng.standard_normal(shape))
