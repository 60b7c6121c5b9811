"""DPNE: network embedding with objective perturbation (Xu, Yuan, Wu and Phan, PAKDD 2018), for top-K recommendation.

Network embeddings factorise a matrix of shifted positive pointwise mutual information (Levy and Goldberg, NeurIPS 2014;
Qiu et al., WSDM 2018). In the bipartite graph of users and items an edge of user u and item v has

    M_uv = log(Σ_w d_w^s / (d_u d_v^s)) - log shift, clipped to [0, cap],

with degrees d and smoothed contexts (Levy, Goldberg and Dagan, TACL 2015); s = 1 is log(|E| / (d_u d_v)) - log shift.
Other cells are 0. Users' vectors are a truncated SVD of M, scaled to length 1; items' vectors are the least squares
perturbed for cells that change by at most `cap`, a bound that no data decide (`tasks.privacy.mechanisms.objective`). A
link is scored by the inner product.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from tasks.models.base import SILENT, Progress
from tasks.models.ranking.factors import FactorConfig, FactorModel, cells, published_entry, unit_user_vectors
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import objective
from tasks.privacy.terms import because, gap
from tasks.training_data import TrainingData


class DPNEConfig(FactorConfig):
    """Configuration of `DPNE`."""

    smoothing: float = Field(ge=0, le=1)
    """Power s of item degrees: at 1 rare items are favoured most, at 0 all items count as equally frequent."""
    shift: float = Field(gt=0, allow_inf_nan=False)
    """Negative samples per edge in the embedding that is factorised; log shift is taken off every cell."""
    cap: float = Field(gt=0, allow_inf_nan=False)
    """Largest value of a cell, and so the sensitivity of one: noise grows with it, detail is lost without it."""


class DPNE(FactorModel):
    """Embedding of the user-item graph whose item vectors are perturbed."""

    noise_key = "DPNE"
    config: DPNEConfig
    insecurity = objective.INSECURE

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Solve for item vectors; see `Model.fit`."""
        config = self.config
        matrix = cells(data, mutual_information(data, config.smoothing, config.shift, config.cap))
        users = unit_user_vectors(matrix, config.dimension, rng)
        return self._keep_perturbed(users, matrix, data, rng, sensitivity=config.cap)

    def ledger(self) -> list[LedgerEntry]:
        """The claim per edge, and why it does not hold for what is released."""
        return [
            published_entry(
                self.config.epsilon,
                "interaction",
                "objective-graph",
                because("users-and-graph"),
                (gap("degrees-change"),),
            )
        ]


def mutual_information(data: TrainingData, smoothing: float, shift: float, cap: float) -> NDArray[np.float64]:
    """Shifted positive pointwise mutual information of every interaction, within [0, cap]: (n_interactions,)."""
    user_degrees = np.bincount(data.users, minlength=data.n_users)
    item_degrees = np.bincount(data.items, minlength=data.n_items)
    contexts = np.where(item_degrees > 0, item_degrees.astype(np.float64) ** smoothing, 0.0)
    expected = user_degrees[data.users] * contexts[data.items] / contexts.sum()
    return np.clip(-np.log(expected) - math.log(shift), 0.0, cap)
