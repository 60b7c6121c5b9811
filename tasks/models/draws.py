"""Random numbers that hide nothing: initial weights, the random part of an autoencoder's code, random vectors.

What hides something comes through `tasks.privacy.noise`; a test sees to it that private models draw from these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class OwnDraws:
    """Numbers that every user draws alone: a user's rows are the same whoever else is there.

    A step of private SGD may be moved by one user's gradient alone. A generator for all rows together would hand other
    numbers to everyone after a user who is in the step, or whose rows are more: what moves then are others' gradients.
    """

    def __init__(self, key: Sequence[int], users: NDArray[np.integer], rows: NDArray[np.integer] | int) -> None:
        """Generators of the users.

        Args:
            key: of the step, numbers from 0 that nothing private decides.
            users: (n,) distinct ids.
            rows: how many each has, one user's after another's: (n,), or one number for all.
        """
        self._key = key
        self._rows = np.broadcast_to(np.asarray(rows), len(users)).tolist()
        self._generators = [np.random.default_rng([*key, user, 1]) for user in users.tolist()]

    def of(self, users: NDArray[np.integer]) -> OwnDraws:
        """What these users draw in the same step, of one row each, whether they are in it or not."""
        return OwnDraws(self._key, users, 1)

    def random(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Uniform in [0, 1): `shape`, of which the first number is that of all rows."""
        return self._draw(shape, [rng.random((n, *shape[1:])) for rng, n in self._each()])

    def standard_normal(self, shape: tuple[int, ...], dtype: type[np.floating] = np.float64) -> NDArray[np.floating]:
        """N(0, 1): `shape`, of which the first number is that of all rows."""
        return self._draw(shape, [rng.standard_normal((n, *shape[1:]), dtype) for rng, n in self._each()])

    def _each(self) -> zip[tuple[np.random.Generator, int]]:
        return zip(self._generators, self._rows, strict=True)

    def _draw(self, shape: tuple[int, ...], parts: list[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(parts) if parts else np.empty(shape)


Draws = np.random.Generator | OwnDraws
"""What numbers that hide nothing are drawn from: one generator for all rows, or one for each user's."""


def normal(rng: Draws, shape: tuple[int, ...], std: float = 1.0, *, single: bool = False) -> NDArray[Any]:
    """N(0, std²): float64, or float32 where they are drawn in `single` precision."""
    return std * (rng.standard_normal(shape, np.float32) if single else rng.standard_normal(shape))
