"""KNN: what the users nearest to a user have, by the Euclidean distance between their rows of interactions.

Source: the baseline of Fang et al., "Differentially private recommender system with variational autoencoders" (2022),
Table 4: k in [1, 40], Euclidean distance between input tuples.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor
from typing_extensions import override

from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, Progress, Recommender
from tasks.models.ranking.factors import cells

BLOCK = 2**22
"""Distances looked at together (32 MiB, and a few times that while the smallest are found)."""


class KNNConfig(ModelConfig):
    """Configuration of `KNN`."""

    k: int = Field(ge=1)
    """Neighbours of each user; fewer than there are users."""
    values: Literal["binary", "ratings"]
    """What a row holds at an interaction, 0 elsewhere: 1, or the rating."""
    scaled: bool = False
    """Whether rows are scaled to length 1 before distances are taken (a row of zeros stays one).

    Unscaled, a user's nearest are those with the shortest rows, whatever is in them; scaled, nearest by Euclidean
    distance is nearest by cosine."""


class KNN(Recommender):
    """Scores are the mean of the rows of a user's k nearest other users, all of them weighing the same.

    Memory is linear in users · k and in the interactions; time is that of the product of all rows with all rows.
    """

    config: KNNConfig
    uses_ratings: ClassVar[bool] = True
    own_tensors: ClassVar[tuple[str, ...]] = ("indptr", "items", "values")
    neighbours: NDArray[np.int64]
    """The k nearest of every user, ascending: (n_users, k)."""
    rows: csr_array
    """What every user has: (n_users, n_items) float32."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Find neighbours; `rng` decides who comes first at equal distance. See `Model.fit`."""
        config = self.config
        if config.k >= data.n_users:
            raise ConfigurationError(
                f"k: {config.k} neighbours need more than {config.k} users (there are {data.n_users}); set a smaller k"
            )
        values = None
        if config.values == "ratings":
            if data.ratings is None:
                raise ConfigurationError("values: the data has no ratings; set values: binary")
            values = data.ratings.astype(np.float64)
        rows = cells(data, values)
        self.neighbours = nearest_rows(rows, config.k, rng, scaled=config.scaled)
        self.rows = rows.astype(np.float32)
        return self

    @override
    def score(self, users: NDArray[np.int32]) -> Tensor:
        k, near = self.config.k, self.neighbours[users].ravel()
        ones, indptr = np.ones(len(near), np.float32), np.arange(len(users) + 1) * k
        chosen = csr_array((ones, near, indptr), shape=(len(users), len(self.neighbours)))
        # Sums of integers or halves are exact, so that equal means are equal numbers.
        return torch.from_numpy((chosen @ self.rows).toarray()) / k

    def released(self) -> dict[str, Tensor]:
        """See `Model.released`: who is near whom, and the users' rows, without which no one can be scored."""
        rows = self.rows
        arrays = {"neighbours": self.neighbours, "indptr": rows.indptr, "items": rows.indices, "values": rows.data}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return tensors | {"n_items": torch.tensor(rows.shape[1])}

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        self.neighbours = arrays["neighbours"]
        shape = (len(self.neighbours), int(arrays["n_items"]))
        self.rows = csr_array((arrays["values"], arrays["items"], arrays["indptr"]), shape=shape)


def nearest_rows(rows: csr_array, k: int, rng: np.random.Generator, *, scaled: bool = False) -> NDArray[np.int64]:
    """The k rows nearest to each row, itself left out, by Euclidean distance; ties by one random order of the rows.

    Distances come from inner products of `rows` as they are, and of integers or halves these are exact, so that equal
    distances are found equal.

    Args:
        rows: (n_rows, n_columns), k < n_rows.
        scaled: whether each row that is not zero is divided by its length first.

    Returns:
        (n_rows, k) ids, ascending: equal in whatever order `rows` are looked at.
    """
    n = rows.shape[0]
    order = rng.permutation(n)
    shuffled = rows[order]
    squares = np.asarray(shuffled.multiply(shuffled).sum(1)).ravel()
    transposed = shuffled.T.tocsr()
    neighbours = np.empty((n, k), np.int64)
    size = max(1, BLOCK // n)
    for start in range(0, n, size):
        block = slice(start, min(start + size, n))
        products = (shuffled[block] @ transposed).toarray()
        distances = _squared_distances(products, squares[block], squares, scaled)
        np.fill_diagonal(distances[:, block], np.inf)
        neighbours[order[block]] = order[_smallest_columns(distances, k)]
    return np.sort(neighbours, 1)


def _squared_distances(
    products: NDArray[np.float64], left: NDArray[np.float64], right: NDArray[np.float64], scaled: bool
) -> NDArray[np.float64]:
    """(n_left, n_right) from inner products and squared lengths; see `nearest_rows` for `scaled`."""
    if not scaled:
        return left[:, None] + right - 2 * products
    lengths = np.sqrt(np.multiply.outer(left, right))
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return (left > 0)[:, None].astype(float) + (right > 0) - 2 * cosines


def _smallest_columns(values: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Columns of the k smallest of each row, (n, k); of equal ones the first."""
    largest = np.partition(values, k - 1, axis=1)[:, k - 1, None]
    below, equal = values < largest, values == largest
    free = k - below.sum(1, keepdims=True)
    return np.nonzero(below | (equal & (equal.cumsum(1) <= free)))[1].reshape(-1, k)
