"""What factorisations by perturbed least squares share: user vectors by truncated SVD, scores, the published ledger."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from typing_extensions import override

from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.models.base import ModelConfig, Recommender
from tasks.privacy.accounting.ledger import Event, LedgerEntry, unbounded_entry
from tasks.privacy.mechanisms import objective
from tasks.privacy.remarks import Explanation, KnownGap, gap
from tasks.privacy.terms import Mechanism, Neighbouring, Unit

NOTHING = 1e-9
"""A projection this short, relative to the longest, is rounding and has no direction."""
NON_PRIVATE = Event(kind="non-private")


Solve = Callable[[NDArray[np.float64], csr_array, NDArray[np.float64], float], NDArray[np.float64]]


class FactorConfig(ModelConfig):
    """Configuration of a `FactorModel`."""

    dimension: int = Field(ge=1)
    """Length of user and item vectors."""
    epsilon: float = Field(gt=0)
    """Budget for one interaction; infinity draws no noise."""
    ridge: float = Field(gt=0, allow_inf_nan=False)
    """Weight of the squared norms of item vectors."""


class FactorModel(Recommender):
    """Scores are inner products of user and item vectors, (n_users, d) and (n_items, d) float32."""

    kept_tensors: ClassVar[tuple[str, ...]] = ("users", "items")
    own_tensors: ClassVar[tuple[str, ...]] = ("users",)
    users: torch.Tensor
    items: torch.Tensor

    def _keep(self, users: NDArray[np.float64], items: NDArray[np.float64]) -> Self:
        self.users, self.items = (torch.from_numpy(vectors.astype(np.float32)) for vectors in (users, items))
        return self

    def _keep_perturbed(
        self,
        users: NDArray[np.float64],
        ratings: csr_array,
        data: TrainingData,
        rng: np.random.Generator,
        *,
        sensitivity: float = 1.0,
        solve: Solve = objective.perturbed_least_squares,
    ) -> Self:
        """Keep user vectors and, of (n_users, n_items) cells of at most `sensitivity`, perturbed item vectors."""
        config = self.config
        scale = objective.noise_scale(config.dimension, config.epsilon, sensitivity)
        noise = objective.draw(data.n_items, config.dimension, scale, self.noise_stream(data, rng))
        return self._keep(users, solve(users, ratings, noise, config.ridge))

    @override
    def score(self, users: NDArray[np.int32]) -> torch.Tensor:
        return self.users[torch.from_numpy(users).long()] @ self.items.T


def cells(data: TrainingData, values: NDArray[np.float64] | None = None) -> csr_array:
    """The sparse (n_users, n_items) matrix of `values` at the interactions, 1 each by default."""
    values = np.ones(len(data.users)) if values is None else values
    return csr_array((values, (data.users, data.items)), shape=(data.n_users, data.n_items))


def unit_user_vectors(matrix: csr_array, dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows of `matrix` projected on its leading right singular vectors, each scaled to length 1.

    Without the scaling these are PureSVD's user vectors (Cremonesi, Koren and Turrin, RecSys 2010). Vectors as long as
    the unit ball allows keep the noise of `tasks.privacy.mechanisms.objective` small next to the data, and ranking
    items for one user does not ask for its length. A row without any direction (no interactions) stays 0.

    Args:
        matrix: (n_users, n_items).
        dimension: number of singular vectors.
        rng: where the iterations start.

    Returns:
        (n_users, dimension) float64; of each singular vector the sign makes its largest component positive.

    Raises:
        ConfigurationError: dimension is not below both sides of the matrix.
    """
    if dimension >= min(matrix.shape):
        users, items = matrix.shape
        raise ConfigurationError(
            f"dimension: {dimension} singular vectors need more than {dimension} users and items (there are {users} "
            f"and {items}); set a smaller one"
        )
    start = rng.uniform(-1, 1, min(matrix.shape))
    _, strengths, right = svds(matrix, k=dimension, v0=start, rng=rng)
    right = right[np.argsort(-strengths, kind="stable")]
    right *= np.sign(right[np.arange(dimension), np.abs(right).argmax(1)])[:, None]
    projected = matrix @ right.T
    lengths = np.linalg.norm(projected, axis=1, keepdims=True)
    directed = lengths > NOTHING * lengths.max(initial=0)
    return np.where(directed, projected / np.where(directed, lengths, 1), 0.0)


def published_entry(
    epsilon: float,
    unit: Unit,
    mechanism: Mechanism,
    reason: Explanation,
    gaps: tuple[KnownGap, ...],
    neighbouring: Neighbouring = "add-or-remove",
) -> LedgerEntry:
    """The ledger of a perturbed factorisation with user vectors that no noise protects: a claim, and no finite ε."""
    infinite = math.isinf(epsilon)
    perturbed = () if infinite else (Event(kind="laplace", parameters={"noise_multiplier": 1 / epsilon}),)
    return unbounded_entry(
        "interaction",
        unit,
        mechanism,
        reason,
        neighbouring=neighbouring,
        claimed=(None if infinite else epsilon, 0.0),
        gaps=(*gaps, gap("exact-users"), gap("n-users-items-public")),
        events=(*perturbed, NON_PRIVATE),
    )
