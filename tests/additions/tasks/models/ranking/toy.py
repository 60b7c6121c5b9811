"""A toy model: items that other users have together with a user's own."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, Progress, Recommender


class Toy(Recommender):
    """Scores are counts of pairs: what users who share an item with a user have as well."""

    config: ModelConfig
    rows: torch.Tensor
    """(n_users, n_items) float32: 1 at an interaction, else 0."""

    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Keep the interactions; see `Model.fit`."""
        del rng, progress
        self.rows = torch.zeros(data.n_users, data.n_items)
        self.rows[torch.from_numpy(data.users).long(), torch.from_numpy(data.items).long()] = 1
        return self

    def score(self, users: NDArray[np.int32]) -> torch.Tensor:
        """See `Recommender.score`."""
        return self.rows[torch.from_numpy(users).long()] @ (self.rows.T @ self.rows)

    def released(self) -> dict[str, torch.Tensor]:
        """See `Model.released`."""
        return {"rows": self.rows}

    def restore_released(self, tensors: dict[str, torch.Tensor]) -> None:
        """See `Model.restore_released`."""
        self.rows = tensors["rows"]
