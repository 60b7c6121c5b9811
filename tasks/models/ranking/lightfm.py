"""LightFM: a factorisation whose users are the sum of what is known of them, trained on the WARP loss.

Sources: Kula, "Metadata embeddings for user and item cold-start recommendations" (CBRecSys 2015), for the model: a
vector is the sum of the vectors of its features (§3.2). Weston, Bengio and Usunier, "WSABIE: scaling up to large
vocabulary image annotation" (IJCAI 2011), for the loss. Where the two are silent: the released package LightFM.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import embedding
from typing_extensions import override

from tasks.errors import ConfigurationError
from tasks.models.base import Recommender
from tasks.models.sampling import NegativeSampler
from tasks.models.training import DerivedModel, EpochConfig
from tasks.training_data import TrainingData


class LightFMConfig(EpochConfig):
    """Configuration of `LightFM`."""

    batch_size: int = Field(ge=1)
    """Positives per step. Their gradients are added up, so that steps of one positive each are those of the package;
    ranks are looked for among the scores before the step."""
    learning_rate: float = Field(gt=0)
    """Step size of Adagrad, whose sums of squares begin at 1; the package's default is 0.05."""
    regularization: float = Field(default=0.0, ge=0)
    """Weight of the squared norms of the three vectors and two biases of a triple that takes part in a step."""
    dimension: int = Field(ge=1)
    """Length of user and item vectors."""
    max_sampled: int = Field(default=10, ge=1)
    """Negatives drawn for a positive, at most; a positive above all of them has no part in the step."""
    metadata: bool
    """Whether a user is the sum of an own vector and those of the user's features, or the own vector alone."""


class LightFMNetwork(nn.Module):
    """A user's vector is the own one plus the features times the columns' vectors; items have a vector and a bias.

    Users have no bias: it would be added to all scores of a user alike, which changes no rank and no difference.
    """

    features: Tensor

    def __init__(self, users: Tensor, items: Tensor, columns: Tensor, features: Tensor) -> None:
        """users: (n_users, d), items: (n_items, d + 1), biases last; columns: (n_columns, d).

        features: (n_users, n_columns), not learned.
        """
        super().__init__()
        self.users = nn.Parameter(users)
        self.items = nn.Parameter(items)
        self.columns = nn.Parameter(columns)
        self.register_buffer("features", features, persistent=False)

    def user_vectors(self, users: Tensor) -> Tensor:
        """(n,) ids -> (n, d); the gradient by own vectors is sparse."""
        return embedding(users, self.users, sparse=True) + self.features[users] @ self.columns

    def item_vectors(self, items: Tensor) -> Tensor:
        """Ids of any shape -> (..., d + 1), the bias last; the gradient is sparse."""
        return embedding(items, self.items, sparse=True)


class Violations(NamedTuple):
    """Positives that are not a margin of 1 above all their trials."""

    rows: Tensor
    """(n,) position of the positive in the batch, ascending."""
    trials: Tensor
    """(n,) position from 0 of its first trial that scores above the positive less 1."""
    weights: Tensor
    """(n,) float32 log ⌊(n_items - 1) / number of trials until then⌋, the estimated rank; 0 where that is below 1."""


def violations(positives: Tensor, trials: Tensor, n_items: int) -> Violations:
    """The negative that WARP takes for each positive, as if its trials were made one at a time.

    Args:
        positives: (n,) scores.
        trials: (n, max_sampled) scores of negatives in the order in which they were drawn.
        n_items: what the rank is estimated from.
    """
    violating = trials > positives[:, None] - 1
    rows = violating.any(1).nonzero()[:, 0]
    first = violating[rows].int().argmax(1)
    ranks = torch.div(n_items - 1, first + 1, rounding_mode="floor").clamp(min=1)
    return Violations(rows, first, ranks.float().log())


class LightFM(DerivedModel, Recommender):
    """Scores s_uv = p_u·q_v + b_v; loss log(rank) · (1 - s_uv + s_uv') for the first v' of several that violates."""

    config: LightFMConfig
    uses_features: ClassVar[bool] = True
    network: LightFMNetwork

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """Vectors uniform in ±1/(2d), as the package's, and biases 0."""
        width = self.config.dimension
        features = np.zeros((data.n_users, 0), np.float32)
        if self.config.metadata:
            if data.features is None or not data.features.shape[1]:
                raise ConfigurationError("metadata: the data has no user features; set metadata: false")
            features = data.features
        self._sampler = NegativeSampler(data.users, data.items, data.n_users, data.n_items)
        self._updated = 0.0

        def vectors(rows: int) -> Tensor:
            return torch.from_numpy((rng.random((rows, width)) - 0.5) / width).float()

        users, items = vectors(data.n_users), torch.cat([vectors(data.n_items), torch.zeros(data.n_items, 1)], 1)
        return LightFMNetwork(users, items, vectors(features.shape[1]), torch.from_numpy(features))

    def optimiser(self) -> torch.optim.Optimizer:
        """Adagrad; the penalty is part of the loss, for the rows of a step only."""
        parameters = self.network.parameters()
        return torch.optim.Adagrad(parameters, lr=self.config.learning_rate, initial_accumulator_value=1.0)

    def train_epoch(self) -> float:
        """One pass over the interactions in random order, fresh negatives for each; returns the mean loss."""
        data, trials = self._data, self.config.max_sampled
        order = self._rng.permutation(len(data.users))
        total = 0.0
        self._updated = 0.0
        for batch in np.split(order, range(self.config.batch_size, len(order), self.config.batch_size)):
            users, items = data.users[batch], data.items[batch]
            negatives = self._sampler.draw(np.repeat(users, trials), self._rng).reshape(-1, trials)
            ids = (torch.from_numpy(ids.astype(np.int64)).to(self.device) for ids in (users, items, negatives))
            total += self.step(self.loss(*ids))
        self._updated /= len(order)
        return total / len(order)

    @override
    def step(self, loss: Tensor) -> float:
        with torch.sparse.check_sparse_tensor_invariants(False):  # the default, of which torch warns if it is not said
            return super().step(loss)

    def loss(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        """Summed loss of a batch of positives; weights are constants of the gradient, as in both sources.

        Args:
            users, items: (batch,) int64 ids.
            negatives: (batch, max_sampled) int64 ids of items that the user does not have.
        """
        network = self.network
        with torch.no_grad():
            vectors = network.user_vectors(users)
            positives, trials = network.item_vectors(items), network.item_vectors(negatives)
            positive = (vectors * positives[:, :-1]).sum(1) + positives[:, -1]
            trial = torch.einsum("bd,bnd->bn", vectors, trials[..., :-1]) + trials[..., -1]
            violated = violations(positive, trial, self._data.n_items)
        self._updated += len(violated.rows)
        user = network.user_vectors(users[violated.rows])
        item = network.item_vectors(items[violated.rows])
        other = network.item_vectors(negatives[violated.rows, violated.trials])
        difference = other - item
        margins = 1 + (user * difference[:, :-1]).sum(1) + difference[:, -1]
        norms = user.square().sum() + item.square().sum() + other.square().sum()
        return (violated.weights * margins).sum() + self.config.regularization * norms

    @override
    def reads_features(self) -> bool:
        return self.config.metadata

    def diagnostics(self) -> dict[str, float]:
        """Share of the positives for which a violating negative was found."""
        return {"violated": self._updated}

    def derived(self) -> dict[str, Tensor]:
        """What scoring needs: users' sums (n_users, d), items (n_items, d + 1)."""
        users = self.network.user_vectors(torch.arange(self._data.n_users, device=self.device))
        return {"users": users, "items": self.network.items.detach().clone()}

    def score(self, users: NDArray[np.int32]) -> Tensor:
        """See `Recommender.score`: one matrix product."""
        scoring = self.released()
        items = scoring["items"]
        return torch.addmm(items[:, -1], scoring["users"][torch.from_numpy(users).long()], items[:, :-1].T)
