"""Gaussian noise by key: the same (key, id) always gives the same numbers, whichever others are asked for beside it.

A release that is read piece by piece (a user's sequence today, another user's tomorrow) gets its noise so: asking twice
for the same piece tells no more than asking once, and no table of what was drawn has to be kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def normals(key: tuple[int, ...], ids: NDArray[np.integer], width: int) -> NDArray[np.float32]:
    """(n, width) independent standard normal numbers for each of (n,) ids; a larger width only adds columns.

    SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) of a counter made of key, id and column; two hashes of 53 bits give
    two normals (Box and Muller 1958), so that the tails reach 8.5 standard deviations.

    Args:
        key: names the release by numbers from 0, e.g. secret, epoch and matrix; different keys give independent noise.
        ids: (n,) from 0, what within the release.
    """
    pairs = (width + 1) // 2
    state = np.zeros(1, np.uint64)
    for part in key:
        state = _hashed(state + _GOLDEN + np.uint64(part))
    start = _hashed(state + _GOLDEN * (ids.astype(np.uint64) + np.uint64(1)))
    hashes = _hashed(start[:, None] + _GOLDEN * np.arange(1, 2 * pairs + 1, dtype=np.uint64))
    uniform = (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
    radius, angle = np.sqrt(-2 * np.log1p(-uniform[:, ::2])), 2 * np.pi * uniform[:, 1::2]
    table = np.empty((len(ids), 2 * pairs), np.float32)
    table[:, ::2], table[:, 1::2] = radius * np.cos(angle), radius * np.sin(angle)
    return table[:, :width]


def _hashed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
