"""The audit of the private toy model: one user and one item, with and without the interaction."""

from __future__ import annotations

import numpy as np

from tasks.audits import Samples
from tasks.core.training_data import TrainingData
from tasks.models.ranking.noisy_toy import NoisyToy, NoisyToyConfig


def cells(seed: int, n_samples: int = 2_000, epsilon: float = 1.0) -> Samples:
    """The only cell, which tells best by being above 1/2."""
    model, rng = NoisyToy(NoisyToyConfig(epsilon=epsilon)), np.random.default_rng(seed)
    worlds = [TrainingData(1, 1, np.zeros(n, np.int32), np.zeros(n, np.int32)) for n in (0, 1)]
    without, present = (
        np.array([float(model.fit(data, rng=rng).rows[0, 0] > 0.5) for _ in range(n_samples)]) for data in worlds
    )
    return Samples(without, present, model.ledger()[0])
