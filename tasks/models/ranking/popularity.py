"""Most-rated items, and the same with noise: the yardsticks that every private recommender must beat."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, Progress, Recommender
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import ONCE
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import laplace
from tasks.privacy.remarks import gap


class PrivatePopularityConfig(ModelConfig):
    """Configuration of `PrivatePopularity`."""

    epsilon: float = Field(gt=0, allow_inf_nan=False)
    """Budget per user for the whole release (add or remove everything one user did)."""
    contribution: int = Field(ge=1)
    """Interactions counted per user, at most; a random choice of them where a user has more."""


class Popularity(Recommender):
    """Every user is offered the items with most training interactions."""

    config: ModelConfig
    kept_tensors: ClassVar[tuple[str, ...]] = ("counts",)
    counts: torch.Tensor
    """Interactions per item, noisy or not: (n_items,) float32."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        self.counts = torch.from_numpy(self.count(data, rng).astype(np.float32))
        return self

    def count(self, data: TrainingData, rng: np.random.Generator) -> NDArray[np.int64]:
        """Interactions per item: (n_items,) int64."""
        del rng
        return np.bincount(data.items, minlength=data.n_items)

    @override
    def score(self, users: NDArray[np.int32]) -> torch.Tensor:
        return self.counts.expand(len(users), -1)


class PrivatePopularity(Popularity):
    """`Popularity` on counts with noise: ε-differentially private for everything one user did (docs/methods.md §8)."""

    noise_key = "PrivatePopularity"
    config: PrivatePopularityConfig
    insecurity = ""

    def count(self, data: TrainingData, rng: np.random.Generator) -> NDArray[np.int64]:
        """Counts of at most `contribution` interactions per user, with discrete Laplace noise."""
        rng = self.noise_stream(data, rng)
        kept = laplace.cap(data.users, data.items, self.config.contribution, rng)
        counts = np.bincount(data.items[kept], minlength=data.n_items)
        return laplace.noisy_counts(counts, self.config.epsilon, self.config.contribution, rng)

    def ledger(self) -> list[LedgerEntry]:
        """One release of noisy counts; everything offered afterwards is post-processing."""
        return [
            accounted_entry(
                [laplace.counts_event(self.config.epsilon, self.config.contribution)],
                protects="interaction",
                unit="user",
                neighbouring="add-or-remove",
                mechanism="counts-discrete-laplace",
                claimed_epsilon=self.config.epsilon,
                gaps=(*ONCE, gap("own-list-counts")),
            )
        ]
