"""iALS: implicit alternating least squares (Hu, Koren and Volinsky, ICDM 2008), by the library `implicit`.

Minimises Σ_u Σ_{j∈Ω_u} α (1 - u·v_j)² + Σ_u Σ_{j∉Ω_u} (u·v_j)² + λ (Σ_u ‖u‖² + Σ_j ‖v_j‖²); the library takes three
steps of conjugate gradients for each vector and half sweep (Takács, Pilászy and Tikk, RecSys 2011).
"""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from implicit.cpu.als import AlternatingLeastSquares
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array, csr_matrix
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, Progress
from tasks.models.ranking.factors import FactorModel, cells

PIECE = 4096
"""Users solved at a time."""


class IALSConfig(ModelConfig):
    """Configuration of `IALS`."""

    dimension: int = Field(ge=1)
    """Length of user and item vectors."""
    iterations: int = Field(ge=1)
    """Sweeps: all users, then all items."""
    alpha: float = Field(gt=0, allow_inf_nan=False)
    """α: weight of the cells of a user's items; all other cells have weight 1."""
    regularization: float = Field(gt=0, allow_inf_nan=False)
    """λ, weight of the squared norms of all vectors."""


class IALS(FactorModel):
    """User vectors are solved exactly from the final item vectors, as those of strangers are."""

    config: IALSConfig

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        rows = csr_matrix(cells(data).astype(np.float32))
        library = self._library(rng)
        library.fit(rows, show_progress=False)
        self.items = torch.from_numpy(library.item_factors)
        self.users = torch.from_numpy(self.vectors_of(csr_array(rows)))
        return self

    def vectors_of(self, rows: csr_array) -> NDArray[np.float32]:
        """Vectors, (n, d), of users with these rows of ones, (n, n_items), by the item vectors; 0 for an empty row."""
        library = self._library(None)
        library.item_factors = self.items.numpy()
        parts = [csr_matrix(rows[start : start + PIECE]) for start in range(0, rows.shape[0], PIECE)]
        solved = [library.recalculate_user(np.arange(part.shape[0]), part) for part in parts]
        return np.concatenate([np.empty((0, self.config.dimension), np.float32), *solved])

    def _library(self, rng: np.random.Generator | None) -> AlternatingLeastSquares:
        config = self.config
        return AlternatingLeastSquares(
            factors=config.dimension, regularization=config.regularization, alpha=config.alpha,
            iterations=config.iterations, num_threads=1, random_state=rng,
        )  # fmt: skip
