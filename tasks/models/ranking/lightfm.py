"""LightFM: a factorisation whose users are the sum of what is known of them, trained on the WARP loss.

Sources: Kula, "Metadata embeddings for user and item cold-start recommendations" (CBRecSys 2015), for the model: a
vector is the sum of the vectors of its features (§3.2). Weston, Bengio and Usunier, "WSABIE: scaling up to large
vocabulary image annotation" (IJCAI 2011), for the loss. Where the two are silent: the released package LightFM.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.compiled import compiled
from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.models.base import Recommender
from tasks.models.training import DerivedModel, EpochConfig, NegativeSampler


class LightFMConfig(EpochConfig):
    """Configuration of `LightFM`."""

    batch_size: int = Field(ge=1)
    """Positives per step. Their gradients are added up, so that steps of one positive each are those of the package;
    ranks are looked for among the scores before the step."""
    learning_rate: float = Field(gt=0, allow_inf_nan=False)
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
        """(n,) ids -> (n, d)."""
        return self.users[users] + self.features[users] @ self.columns


class LightFM(DerivedModel, Recommender):
    """Scores s_uv = p_u·q_v + b_v; loss log(rank) · (1 - s_uv + s_uv') for the first v' of several that violates."""

    config: LightFMConfig
    uses_features: ClassVar[bool] = True
    figures = ("violated",)
    """Share of an epoch's positives for which a violating negative was found."""
    network: LightFMNetwork
    _updated = 0.0

    def __init__(self, config: LightFMConfig) -> None:
        """See `Model`. Steps are compiled loops over NumPy's arrays: on the CPU."""
        super().__init__(config)
        self.device = torch.device("cpu")

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """Vectors uniform in ±1/(2d), as the package's, and biases 0."""
        width = self.config.dimension
        features = np.zeros((data.n_users, 0), np.float32)
        if self.config.metadata:
            if data.features is None or not data.features.shape[1]:
                raise ConfigurationError("metadata: the data has no user features; set metadata: false")
            features = data.features
        self._sampler = NegativeSampler(data.users, data.items, data.n_users, data.n_items)

        def vectors(rows: int) -> Tensor:
            return torch.from_numpy((rng.random((rows, width)) - 0.5) / width).float()

        users, items = vectors(data.n_users), torch.cat([vectors(data.n_items), torch.zeros(data.n_items, 1)], 1)
        return LightFMNetwork(users, items, vectors(features.shape[1]), torch.from_numpy(features))

    def optimiser(self) -> torch.optim.Optimizer:
        """Adagrad; the penalty is part of the loss, for the rows of a step only."""
        parameters = list(self.network.parameters())
        self._gradients = [torch.zeros_like(parameter) for parameter in parameters]
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
            total += self.train_batch(users, items, negatives)
        self._noted["violated"].append(self._updated / len(order))
        return total / len(order)

    def train_batch(self, users: NDArray[np.int32], items: NDArray[np.int32], negatives: NDArray[np.int32]) -> float:
        """A step of Adagrad on a batch of positives; returns their summed loss.

        Weights of the loss are constants of its gradient, as in both sources.

        Args:
            users, items: (batch,) ids.
            negatives: (batch, max_sampled) ids of items that the user does not have, in the order they were drawn.
        """
        network = self.network
        parameters = tuple(network.parameters())
        arrays = (tensor.detach().numpy() for tensor in (*parameters, network.features, *self._gradients))
        penalty, rate = np.float32(self.config.regularization), np.float32(self.config.learning_rate)
        taken = np.empty_like(items)
        loss, updated = _add_gradients(users, items, negatives, taken, penalty, *arrays)
        self._updated += updated
        rows = users, np.concatenate([items, taken]), np.arange(len(network.columns), dtype=np.int32)
        for ids, weights, gradient in zip(rows, parameters, self._gradients, strict=True):
            sums = self._optimiser.state[weights]["sum"]
            _take_step(ids, rate, *(tensor.detach().numpy() for tensor in (weights, gradient, sums)))
        return loss

    @override
    def reads_features(self) -> bool:
        return self.config.metadata

    def derived(self) -> dict[str, Tensor]:
        """What scoring needs: users' sums (n_users, d), items (n_items, d + 1)."""
        users = self.network.user_vectors(torch.arange(self._data.n_users, device=self.device))
        return {"users": users, "items": self.network.items.detach().clone()}

    @override
    def score(self, users: NDArray[np.int32]) -> Tensor:
        scoring = self.released()
        items = scoring["items"]
        return torch.addmm(items[:, -1], scoring["users"][torch.from_numpy(users).long()], items[:, :-1].T)


@compiled
def _add_gradients(
    users: Any,
    items: Any,
    negatives: Any,
    taken: Any,
    penalty: Any,
    vectors: Any,
    item_vectors: Any,
    columns: Any,
    features: Any,
    of_vectors: Any,
    of_items: Any,
    of_columns: Any,
) -> tuple[float, int]:
    """Add up the gradients of a batch; its loss, and how many positives take part.

    A positive does by its first trial that scores above it less 1, which `taken` gets, otherwise the positive itself;
    its weight is log ⌊(n_items - 1) / number of trials until then⌋, the estimated rank, or 0 where that is below 1.
    """
    d, loss, updated = vectors.shape[1], 0.0, 0
    p, unit, two = np.empty(d, vectors.dtype), np.float32(1), np.float32(2)
    for n in range(len(users)):
        user, q, taken[n] = users[n], item_vectors[items[n]], items[n]
        p[:] = vectors[user]
        for f in range(len(columns)):
            if features[user, f] != 0:
                p += features[user, f] * columns[f]
        score = q[d]
        for k in range(d):
            score += p[k] * q[k]
        for trial in range(negatives.shape[1]):
            r = item_vectors[negatives[n, trial]]
            other = r[d]
            for k in range(d):
                other += p[k] * r[k]
            if other > score - unit:
                break
        if not other > score - unit:
            continue
        updated += 1
        taken[n] = negatives[n, trial]
        weight = np.float32(np.log(max((len(item_vectors) - 1) // (trial + 1), 1)))
        slope, of_q, of_r = of_vectors[user], of_items[items[n]], of_items[taken[n]]
        norms = q[d] * q[d] + r[d] * r[d]
        for k in range(d):
            norms += p[k] * p[k] + q[k] * q[k] + r[k] * r[k]
            of_q[k] += two * penalty * q[k] - weight * p[k]
            of_r[k] += two * penalty * r[k] + weight * p[k]
            p[k] = weight * (r[k] - q[k]) + two * penalty * p[k]
            slope[k] += p[k]
        of_q[d] += two * penalty * q[d] - weight
        of_r[d] += two * penalty * r[d] + weight
        for f in range(len(columns)):
            if features[user, f] != 0:
                of_columns[f] += features[user, f] * p
        loss += weight * (unit + other - score) + penalty * norms
    return loss, updated


@compiled
def _take_step(rows: Any, rate: Any, weights: Any, gradient: Any, sums: Any) -> None:
    """Adagrad's step of these rows, whose gradient is 0 after it, so that a row may be there twice."""
    for row in rows:
        for k in range(weights.shape[1]):
            sums[row, k] += gradient[row, k] * gradient[row, k]
            weights[row, k] -= rate * gradient[row, k] / (np.sqrt(sums[row, k]) + np.float32(1e-10))
            gradient[row, k] = 0
