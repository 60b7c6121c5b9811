"""DIPSGNN with a guarantee for what it releases: every visit is a noisy state, and all else is computed from those.

The published system hides sums over edges, and reads the items, their order, the last one and the next one in clear.
Here a visit is read twice, with Gaussian noise each time, and never otherwise:

* as an event: its state is y = v + N(0, σ²I), v a public random vector of its item. The readout is DIPSGNN's (Eq. 14):
  all states so far, the last one, and what precedes the last one (its A_in aggregate of one step), each scaled to
  length 1 (Eq. 6), next to the user's (perturbed) features. All lists are computed from it, those after every event
  too.
* as a label: the readout is linear, so the items that come next enter through the sum over examples of the
  readout's inputs times the next item's indicator, which gets noise once (GAP's way: aggregate once, then learn).

Weights are the ridge solution of the two. The guarantee is for one visit of one user replaced by a visit of another
item, towards everyone who sees the weights and all lists. Proof: the visit's state moves by no more than the largest
distance D of two public vectors, and no other state moves: every visit has noise of its own, also where the sequence
that is asked about begins as the user's training sequence does. Given all states, the readout's inputs, of length 1 or
less, are constants, and the visit is the label of one example: two columns of the sum move by 1 each at most, √2
together. These are two Gaussian mechanisms, the second adaptive, with noise multipliers σ/D and σ_labels/√2; weights
and lists are computed from their outputs. A visit that is no label (a tested one) spends less.
"""

from __future__ import annotations

import math
from functools import cache
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, NextItemRecommender, Progress
from tasks.models.draws import normal
from tasks.models.sessions.ledgers import KeyedModel
from tasks.models.sessions.sequential import ordered
from tasks.privacy import noise
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import FLOATS, ONCE
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.keyed import head_ids, prefix_ids
from tasks.privacy.mechanisms import dpsgd
from tasks.privacy.remarks import because, gap

Rows = NDArray[np.float64]


class ReleasedConfig(ModelConfig):
    """Configuration of `Released`."""

    dimension: int = Field(ge=1)
    """Length of the items' public vectors."""
    epsilon: float | None = Field(gt=0, allow_inf_nan=False)
    """Budget of a visit for all that is released; None draws no noise."""
    delta: float = Field(gt=0, lt=1)
    """Failure probability of the same guarantee."""
    label_share: float = Field(gt=0, lt=1)
    """Share of the budget (of 1/multiplier²) that a visit spends as a label, the rest as an event."""
    ridge: float = Field(gt=0, allow_inf_nan=False)
    """Penalty on all weights but the constant's."""


class Released(KeyedModel, NextItemRecommender):
    """DIPSGNN's readout of noisy states; see the module."""

    noise_key = "Released"
    config: ReleasedConfig
    uses_features: ClassVar[bool] = True
    vectors: Rows
    """(n_items, dimension) of the items, of length 1, public."""
    weights: Rows
    """(1 + 3 dimension + n_columns, n_items) from the readout's inputs to scores."""
    features: Rows
    """(n_users, n_columns) features."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        prefixes = ordered(data).without_last()
        assert data.features is not None
        secret = self.noise_stream(data, rng)
        self.key = noise.key(secret)
        self.vectors = normalise_rows(normal(rng, (data.n_items, self.config.dimension)))
        self.features = data.features.astype(np.float64)
        inputs = self.inputs(prefixes)
        labels: Rows = np.zeros((data.n_items, inputs.shape[1]))
        np.add.at(labels, ordered(data).next_items, inputs)
        if multiplier := self.multipliers[1]:
            labels = labels + noise.gaussian(secret, "labels", multiplier * math.sqrt(2), labels.shape)
        self.weights = np.asarray(np.linalg.solve(self.gram(inputs), labels.T), np.float64)
        return self

    @property
    def multipliers(self) -> tuple[float, float]:
        """Noise multipliers of a visit's state and of its label; 0 without a budget."""
        config = self.config
        if config.epsilon is None:
            return 0.0, 0.0
        total = _multiplier(config.epsilon, config.delta)
        return total / math.sqrt(1 - config.label_share), total / math.sqrt(config.label_share)

    @property
    def distance(self) -> float:
        """D, how far two items' vectors lie apart at most."""
        products = np.clip(self.vectors @ self.vectors.T, -1.0, 1.0)
        return math.sqrt(2 - 2 * float(products.min()))

    def states(self, sequences: Sequences, draws: NDArray[np.int64] | None = None, *, tested: bool = False) -> Rows:
        """What is released of every event: (n_events, dimension).

        It is a function of the secret, the user, the part and the items so far. draws: (n_sequences,); tested: which
        part, see `tasks.models.sessions.gated.Queries`.
        """
        true = self.vectors[sequences.items]
        multiplier = self.multipliers[0]
        if not multiplier:
            return true
        named = head_ids(sequences, np.zeros(1, np.int64) if draws is None else draws, tested=tested)
        visits = prefix_ids(named, sequences.items, sequences.indptr)
        std = multiplier * self.distance
        return (
            true + noise.gaussian_by_key((self.secret,), "visits", std, visits, self.config.dimension).double().numpy()
        )

    def inputs(self, sequences: Sequences, draws: NDArray[np.int64] | None = None, *, tested: bool = False) -> Rows:
        """What the readout is given after every event, of `states` alone: (n_events, width), of length 1 or less."""
        states = self.states(sequences, draws, tested=tested)
        total = np.cumsum(states, axis=0)
        start = sequences.indptr[sequences.owners]
        total = total - (total[start] - states[start])
        before = np.where(sequences.positions[:, None] > 0, np.roll(states, 1, axis=0), 0.0)
        users = self.features[sequences.users][sequences.owners]
        parts = [np.ones((len(states), 1)), *(normalise_rows(part) for part in (total, states, before, users))]
        return np.concatenate(parts, axis=1) / math.sqrt(len(parts))

    def gram(self, inputs: Rows) -> Rows:
        """The readout inputs' products with one another, and the ridge: (width, width)."""
        penalty = np.full(inputs.shape[1], self.config.ridge)
        penalty[0] = 0.0
        return inputs.T @ inputs + np.diag(penalty)

    @override
    def score_next(self, sequences: Sequences) -> Tensor:
        return self.score_again(sequences, None)

    def score_again(self, sequences: Sequences, draws: NDArray[np.int64] | None) -> Tensor:
        """As `score_next`, but sequence s gets draw draws[s] of its user's noise, all of them independent."""
        return torch.from_numpy(self.inputs(sequences, draws, tested=True) @ self.weights).float()

    @override
    def released(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(getattr(self, name)) for name in ("vectors", "weights", "features")}

    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        """See `Model.restore_released`. What is noisy can be scored once `key` is given back."""
        for name, tensor in tensors.items():
            setattr(self, name, tensor.numpy())

    def ledger(self) -> list[LedgerEntry]:
        """One line for a visit, as an event and as a label, for everything that is released."""
        if self.config.epsilon is None:
            return []
        return [
            accounted_entry(
                [Event(kind="gaussian", parameters={"noise_multiplier": value}) for value in self.multipliers],
                self.config.delta,
                (because("weights-and-lists"),),
                protects="interaction",
                unit="visit",
                neighbouring="replace",
                mechanism="visits-gaussian",
                claimed_epsilon=self.config.epsilon,
                gaps=(
                    gap("visits-public"), gap("one-sequence"), gap("lists-read-history"), gap("features-apart"),
                    *ONCE, FLOATS,
                ),
            )
        ]  # fmt: skip


@cache
def _multiplier(epsilon: float, delta: float) -> float:
    return dpsgd.noise_multiplier(epsilon, delta, 1.0, 1)


def normalise_rows(rows: Rows) -> Rows:
    """Rows of length 1 (Eq. 6); a row of zeros stays."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
