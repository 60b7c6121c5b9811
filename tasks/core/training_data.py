"""What a recommender learns from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tasks.core.errors import DataError
from tasks.core.sequences import Sequences


@dataclass(frozen=True)
class TrainingData:
    """Training interactions as parallel arrays, and what else is known of the users.

    users, items: (n_interactions,) int32 ids, every interaction once.
    features: (n_users, n_columns) float32, raw or perturbed; None for models that use no features.
    attributes: sensitive attribute -> class of every user, (n_users,) int64 from 0, -1 where no one knows it;
        empty for models that use none.
    ratings: (n_interactions,) float32, next to users and items; None for models that use none.
    sensitive: (n_interactions,) bool, next to users and items: ratings that their users keep to themselves, all others
        being published; None where ratings are not distinguished.
    links: (n_links, 2) int32, a user and one whom that user trusts, each pair once; None for models that use none.
    sequences: the same interactions as every user's events in their order; None where the order is not known. A user
        may then have an item several times.

    Raises:
        DataError: an interaction is there more than once.
    """

    n_users: int
    n_items: int
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    features: NDArray[np.float32] | None = None
    attributes: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    ratings: NDArray[np.float32] | None = None
    sequences: Sequences | None = None
    sensitive: NDArray[np.bool_] | None = None
    links: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        """Refuse repeats: `digest` names the noise, and models differ in what a repeat adds."""
        pairs = np.sort(self.users.astype(np.int64) * 2**32 + self.items)
        if len(repeated := pairs[1:][pairs[1:] == pairs[:-1]]):
            user, item = divmod(int(repeated[0]), 2**32)
            times = f"{len(repeated)} repeated interactions"
            raise DataError(f"training data: {times}, the first of user {user}, item {item}")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything above, regardless of the order of interactions: hexadecimal digits."""
        order = np.lexsort((self.items, self.users))
        pairs = np.column_stack([self.users[order], self.items[order]])
        values = (None if array is None else array[order] for array in (self.ratings, self.sensitive))
        events = () if self.sequences is None else (self.sequences.items, self.sequences.indptr)
        attributes = (self.attributes[name] for name in sorted(self.attributes))
        digest = hashlib.sha256(f"{self.n_users} {self.n_items} {sorted(self.attributes)}".encode())
        for array in (pairs, *values, self.features, self.links, *attributes, *events):
            digest.update(b"-" if array is None else f"{array.dtype} {array.shape}".encode())
            digest.update(b"" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()
