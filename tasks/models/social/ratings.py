"""Ratings, their scale, and the sparse matrix that a full-batch gradient step needs."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator
from scipy.sparse import csr_array

from tasks.core.errors import DataError
from tasks.core.training_data import TrainingData
from tasks.models.social import passes


def check_scale(scale: tuple[float, float]) -> tuple[float, float]:
    """Refuse a scale of ratings without a range; otherwise give it back."""
    if not scale[0] < scale[1]:
        raise ValueError(f"scale: the lowest rating must be below the highest (are {list(scale)})")
    return scale


Scale = Annotated[tuple[float, float], AfterValidator(check_scale)]
"""Lowest and highest rating that there can be."""


def checked_ratings(data: TrainingData, scale: tuple[float, float]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(n_interactions,) ratings and which of them are sensitive.

    Raises:
        DataError: one of the two is missing, or a rating is outside the scale.
    """
    if data.ratings is None or data.sensitive is None:
        raise DataError("training data have no ratings, or do not say which are sensitive; this model needs both")
    low, high = scale
    outside = ~((data.ratings >= low) & (data.ratings <= high))
    if count := int(outside.sum()):
        first = int(outside.argmax())
        raise DataError(
            f"rating: {count} of {len(outside)} ratings are outside {low:g} to {high:g} (first: row {first}); "
            "sensitivities hold on that scale alone"
        )
    return data.ratings, data.sensitive


class RatingTable:
    """Some of the training ratings, in order of user and item.

    users, items: (n,) int32; values: (n,) float32.
    """

    def __init__(
        self,
        users: NDArray[np.int32],
        items: NDArray[np.int32],
        values: NDArray[np.float32],
        n_users: int,
        n_items: int,
    ) -> None:
        order = np.lexsort((items, users))
        self.users = users[order].astype(np.int32)
        self.items = items[order].astype(np.int32)
        self.values = values[order].astype(np.float32)
        self.shape = (n_users, n_items)
        self.of_user: NDArray[np.int64] = np.bincount(self.users, minlength=n_users)
        self.of_item: NDArray[np.int64] = np.bincount(self.items, minlength=n_items)
        self._rows = np.concatenate([[0], np.cumsum(self.of_user)]).astype(np.int32)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def columns(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Users, items and values."""
        return self.users, self.items, self.values

    def matrix(self, entries: NDArray[np.float32]) -> csr_array:
        """`entries`, one per rating, as a (n_users, n_items) matrix."""
        return csr_array((entries, self.items, self._rows), shape=self.shape)

    def errors(self, users: NDArray[np.float32], items: NDArray[np.float32]) -> NDArray[np.float32]:
        """uᵀv - r of every rating: (n,) float32."""
        out = np.empty(len(self), np.float32)
        passes.errors(*self.columns, users, items, out)
        return out
