"""Gaussian noise by key: the same (key, id) always gives the same numbers, whichever others are asked for next to it.

A release that is read piece by piece (a user's sequence today, another user's tomorrow) gets its noise so: asking twice
for the same piece tells no more than asking once, and no table of what was drawn has to be kept. An id that is made of
what is hidden (`prefix_ids`, `digest`) gives other data other noise: what two releases share would cancel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tasks.core.hashing import GOLDEN, Ids, mix, scramble
from tasks.core.sequences import Sequences


def normals(key: tuple[int, ...], ids: NDArray[np.integer], width: int) -> NDArray[np.float32]:
    """(n, width) independent standard normal numbers for each of (n,) ids; a larger width only adds columns.

    SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) of a counter made of key, id and column; two hashes of 53 bits give
    two normals (Box and Muller 1958), so that the tails reach 8.5 standard deviations.

    Args:
        key: names the release by numbers from 0, e.g. secret, epoch and matrix; different keys give independent noise.
        ids: (n,) from 0, what within the release.
    """
    pairs = (width + 1) // 2
    start = scramble(_state(key) + GOLDEN * (ids.astype(np.uint64) + np.uint64(1)))
    hashes = scramble(start[:, None] + GOLDEN * np.arange(1, 2 * pairs + 1, dtype=np.uint64))
    uniform = (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
    radius, angle = np.sqrt(-2 * np.log1p(-uniform[:, ::2])), 2 * np.pi * uniform[:, 1::2]
    table = np.empty((len(ids), 2 * pairs), np.float32)
    table[:, ::2], table[:, 1::2] = radius * np.cos(angle), radius * np.sin(angle)
    return table[:, :width]


def streams(key: tuple[int, ...], ids: Ids, counts: NDArray[np.integer], width: int) -> NDArray[np.float32]:
    """(Σ counts, width) independent standard normal numbers: counts[i] rows of the stream of id i, id after id.

    Philox (Salmon et al., SC 2011) with (key, id) as its key: for many numbers of few ids, ten times as fast as
    `normals`.
    """
    secret = int(_state(key)[0])
    chunks = [
        np.random.Generator(np.random.Philox(key=(secret, int(stream)))).standard_normal((count, width), np.float32)
        for stream, count in zip(ids, counts, strict=True)
    ]
    return np.concatenate(chunks) if chunks else np.empty((0, width), np.float32)


def prefix_ids(heads: Ids, items: NDArray[np.integer], indptr: NDArray[np.int64]) -> Ids:
    """(n_events,) an id of every prefix: of its sequence's head and of all items so far, in their order.

    Args:
        heads: (n_sequences,) what else distinguishes sequences, e.g. the user.
        items, indptr: see `tasks.core.sequences.Sequences`.
    """
    ids, state, lengths = np.empty(len(items), np.uint64), heads.copy(), np.diff(indptr)
    for position in range(lengths.max(initial=0)):
        rows = np.flatnonzero(lengths > position)
        events = indptr[rows] + position
        ids[events] = state[rows] = mix(state[rows], items[events])
    return ids


def head_ids(sequences: Sequences, draws: NDArray[np.int64], *, tested: bool) -> Ids:
    """(n_sequences,) ids to name prefixes by, see `prefix_ids`: whose, which draw, and whether trained on or asked.

    A user's training sequence and the one asked about hold different visits. Where both begin with the same items, they
    would otherwise have one noise, and two releases with one noise show their difference without any.

    Args:
        draws: (n_sequences,) which of a user's independent draws.
        tested: whether the sequences are asked about; those of training are not.
    """
    parts = (sequences.users, draws)
    return mix(*parts, np.ones(1, np.int64)) if tested else mix(*parts)


def _state(key: tuple[int, ...]) -> Ids:
    state = np.zeros(1, np.uint64)
    for part in key:
        state = scramble(state + GOLDEN + np.uint64(part))
    return state
