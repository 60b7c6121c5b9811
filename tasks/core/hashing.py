"""Uniform numbers by published ids: a user's draws stay as they are, whichever other users and records there are.

Dense ids shift when a user is taken away, and one stream of random numbers hands others to all who come after. So
whatever is drawn of one user's records (`Uniforms`) is a hash of seed, purpose, user and item as they were published.
These numbers hide nothing: what hides something comes through `tasks.privacy.noise`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
Ids = NDArray[np.uint64]


@dataclass(frozen=True)
class Uniforms:
    """u(seed, purpose, user, item) in [0, 1), of dense ids that stand for published ones.

    users, items: (n_users,) and (n_items,) `keys` of the published ids.
    """

    seed: int
    users: Ids
    items: Ids

    @classmethod
    def of(cls, seed: int, users: Iterable[object], items: Iterable[object]) -> Uniforms:
        """users, items: published ids, in the order of the dense ones."""
        return cls(seed, keys(users), keys(items))

    def of_pairs(
        self, purpose: str, users: NDArray[np.integer], items: NDArray[np.integer], *more: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """For each (user, item), and what else distinguishes draws; the arrays broadcast."""
        return uniform(self.seed, purpose, self.users[users], self.items[items], *more)

    def of_users(self, purpose: str) -> NDArray[np.float64]:
        """(n_users,)."""
        return uniform(self.seed, purpose, self.users)

    def of_items(self, purpose: str) -> NDArray[np.float64]:
        """(n_items,)."""
        return uniform(self.seed, purpose, self.items)


def uniform(seed: int, purpose: str, *ids: NDArray[np.integer]) -> NDArray[np.float64]:
    """Numbers of 53 bits in [0, 1), a function of seed, purpose and ids alone; the arrays broadcast."""
    start = np.array([digest(b"%d" % seed, purpose.encode())], np.uint64)
    return (mix(start, *ids) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def keys(published: Iterable[object]) -> Ids:
    """64 bits for each id, by its text: 7 and "7" are one id, as they are in the tables of ids."""
    return np.fromiter((digest(str(name).encode()) for name in published), np.uint64)


def mix(*parts: NDArray[np.integer]) -> Ids:
    """An id of several numbers from 0, in their order; the arrays broadcast."""
    state = np.zeros(1, np.uint64)
    for part in parts:
        state = scramble(state + GOLDEN * (part.astype(np.uint64) + np.uint64(1)))
    return state


def scramble(values: Ids) -> Ids:
    """SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def digest(*parts: bytes) -> int:
    """64 bits that name some data."""
    total = blake2b(digest_size=8)
    for part in parts:
        total.update(len(part).to_bytes(8, "little") + part)
    return int.from_bytes(total.digest(), "little")
