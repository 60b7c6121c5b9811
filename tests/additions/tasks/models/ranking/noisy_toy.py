"""A private toy model: the same with Laplace noise on every cell of the matrix of interactions."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from pydantic import Field

from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, Progress
from tasks.models.ranking.toy import Toy
from tasks.privacy import noise
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry


class NoisyToyConfig(ModelConfig):
    """Configuration of `NoisyToy`."""

    epsilon: float = Field(gt=0, allow_inf_nan=False)
    """Budget of one interaction."""


class NoisyToy(Toy):
    """`Toy` on cells with noise of scale 1/ε."""

    config: NoisyToyConfig
    noise_key = "NoisyToy"

    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Keep the noisy interactions; see `Model.fit`."""
        super().fit(data, rng=rng, progress=progress)
        drawn = noise.laplace(self.noise_stream(data, rng), "cells", 1 / self.config.epsilon, tuple(self.rows.shape))
        self.rows += torch.from_numpy(drawn.astype(np.float32))
        return self

    def ledger(self) -> list[LedgerEntry]:
        """One release of all cells."""
        events = (Event(kind="laplace", parameters={"noise_multiplier": 1 / self.config.epsilon}),)
        return [
            LedgerEntry(
                protects="interaction",
                unit="toy-cell",  # type: ignore[arg-type]  # the project has neither id
                neighbouring="add-or-remove",
                mechanism="toy-cells",  # type: ignore[arg-type]
                accounting="rigorous",
                claimed_epsilon=self.config.epsilon,
                claimed_delta=0.0,
                accounted_epsilon=account(events).epsilon,
                accounted_delta=0.0,
                events=events,
            )
        ]
