"""EASE: a linear model from items to items in closed form (Steck, "Embarrassingly shallow autoencoders", WWW 2019)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csr_array
from torch import Tensor
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.evaluation.ranking import Seen
from tasks.models.base import SILENT, ModelConfig, Progress, Recommender

BLOCK = 512
"""Columns that are worked on at a time."""


class EASEConfig(ModelConfig):
    """Configuration of `EASE`."""

    regularization: float = Field(gt=0, allow_inf_nan=False)
    """λ, the weight of ‖B‖² next to the squared error summed over all users: of the order of an item's interactions."""


class EASE(Recommender):
    """Scores X B, with B = argmin ‖X - X B‖² + λ ‖B‖² under diag(B) = 0 (Eq. 3-8), X the binary interactions.

    Memory is quadratic in the items: `fit` holds half an (n_items, n_items) matrix of float64, the model one of float32
    (20,000 items: 1.6 GB each). Time is cubic in the items, and hardly depends on the users.
    """

    config: EASEConfig
    own_tensors: ClassVar[tuple[str, ...]] = ("indptr", "items")
    weights: NDArray[np.float32]
    """B, weight of an item a user has (row) for an item to be scored (column): (n_items, n_items)."""
    given: Seen
    """The training items of every user: what a score is made of."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Solve for B; nothing is random. See `Model.fit`."""
        self.given = Seen.from_pairs(data.users, data.items, data.n_users)
        self.weights = solve(_matrix(self.given, data.n_items, np.float64), self.config.regularization)
        return self

    def score(self, users: NDArray[np.int32]) -> Tensor:
        """See `Recommender.score`: zero for every item where a user has none."""
        rows, items = self.given.pairs(users)
        counts = np.bincount(rows, minlength=len(users))
        histories = Seen(np.concatenate([[0], np.cumsum(counts)]), items)
        return torch.from_numpy(_matrix(histories, len(self.weights), np.float32) @ self.weights)

    def released(self) -> dict[str, Tensor]:
        """See `Model.released`: B, and the users' training items, without which no one can be scored."""
        arrays = {"weights": self.weights, "indptr": self.given.indptr, "items": self.given.items}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        self.weights = tensors["weights"].numpy()
        self.given = Seen(tensors["indptr"].numpy(), tensors["items"].numpy())


def solve(interactions: csr_array, regularization: float) -> NDArray[np.float32]:
    """B_ij = -P_ij / P_jj off the diagonal and 0 on it, P = (XᵀX + λI)⁻¹ (Eq. 8): (n_items, n_items).

    XᵀX, its Cholesky factor and P are lower triangles, one in place of the other.

    Args:
        interactions: X, (n_users, n_items).
        regularization: λ > 0, which makes the inverse exist.
    """
    n_items = interactions.shape[1]
    blocks = [(start, min(start + BLOCK, n_items)) for start in range(0, n_items, BLOCK)]
    lower = np.empty((n_items, n_items), order="F")  # what is above the diagonal is never written, and takes no memory
    by_item = interactions.tocsc()
    for start, stop in blocks:
        lower[start:, start:stop] = (by_item[:, start:].T @ by_item[:, start:stop]).toarray()
    np.fill_diagonal(lower, lower.diagonal() + regularization)
    _, no_factor = dpotrf(lower, lower=True, clean=False, overwrite_a=True)
    _, no_inverse = dpotri(lower, lower=True, overwrite_c=True)
    assert not no_factor, "λ > 0 makes the matrix positive definite"
    assert not no_inverse, "so that its factor has an inverse"

    divisors = -lower.diagonal()
    weights = np.empty((n_items, n_items), np.float32)
    for start, stop in blocks:
        columns = lower[start:, start:stop]
        square = np.tril(columns[: stop - start])
        columns[: stop - start] = square + np.tril(square, -1).T
        weights[start:, start:stop] = columns / divisors[start:stop]
        weights[start:stop, start:] = columns.T / divisors[start:]
    np.fill_diagonal(weights, 0)
    return weights


def _matrix(items: Seen, n_items: int, dtype: type[np.floating]) -> csr_array:
    """Binary (n_users, n_items); products with it do not depend on which users are asked for together."""
    return csr_array((np.ones(len(items.items), dtype), items.items, items.indptr), shape=(items.n_users, n_items))
