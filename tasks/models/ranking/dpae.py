"""DPAE: an autoencoder recommender trained by differentially private SGD on users.

Source: Liu et al., "Differentially private recommender system with autoencoders" (iThings 2019), as GERAI sums it up:
Gaussian noise in the gradient descent of an autoencoder. The autoencoder reads a user's row of interactions, as AutoRec
does (Sedhain et al., WWW 2015), with the multinomial likelihood of Mult-DAE (Liang et al., WWW 2018). Noise grows with
the number of parameters, so there are few: one hidden layer, a decoder with the encoder's weights, item biases. The
records of the SGD are users (`tasks.privacy.mechanisms.dpsgd`), and noise is calibrated to the budget of all steps
together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.evaluation.ranking import Seen
from tasks.models.base import Recommender
from tasks.models.draws import normal
from tasks.models.training import DerivedModel, EpochConfig
from tasks.models.user_level import UserLevelModel
from tasks.privacy.accounting.gaps import BY_EPOCHS, FLOATS, OWN_LIST, PLACE
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import dpsgd

PIECE = 512  # users at a time when all are encoded


class DPAEConfig(EpochConfig):
    """Configuration of `DPAE`. An epoch is as many steps as take every user once on average."""

    batch_size: int = Field(ge=1)
    """Expected number of users in a step; the number of users, or more, puts all of them into every step."""
    learning_rate: float = Field(ge=0, allow_inf_nan=False)
    """Step size of SGD with momentum: noise is smaller than what is learned only where steps do not equalise sizes."""
    momentum: float = Field(ge=0, lt=1)
    """Share of the last step that is taken again."""
    dimension: int = Field(ge=1)
    """Length of the hidden layer."""
    init_std: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    """Standard deviation of the initial weights; item biases begin at 0."""
    epsilon: float = Field(gt=0)
    """Budget of a user for all steps of `epochs` epochs; infinity trains without noise."""
    delta: float = Field(gt=0, lt=1)
    """Failure probability of the guarantee; more than one in the number of users means little."""
    clip_norm: float = Field(gt=0)
    """Norm that no user's gradient exceeds, all parameters together; infinity only where `epsilon` is."""

    _noise_is_finite = model_validator(mode="after")(dpsgd.check_clip_norm)

    @property
    @override
    def plans_epochs(self) -> bool:
        return math.isfinite(self.epsilon)


class Gradients(NamedTuple):
    """Loss and gradients of users, whose parts multiply to a gradient per user that is never formed.

    User u's gradient is inputs_u ⊗ hidden_errors_u + errors_u ⊗ hidden_u for `items` (tied: encoder's plus decoder's
    share) and errors_u for `biases`.
    """

    losses: Tensor
    """(n,) negative log-likelihood of each user's interactions."""
    inputs: Tensor
    """(n, n_items) what the encoder reads."""
    hidden: Tensor
    """(n, d) activations."""
    errors: Tensor
    """(n, n_items) derivatives by the logits."""
    hidden_errors: Tensor
    """(n, d) derivatives by the hidden layer before tanh."""

    def squared_norms(self) -> Tensor:
        """(n,) squared norms of the users' gradients: a norm of an outer product is a product of norms."""
        inputs, hidden, errors, hidden_errors = (part.square().sum(1) for part in self[1:])
        shared = (self.inputs * self.errors).sum(1) * (self.hidden_errors * self.hidden).sum(1)
        return inputs * hidden_errors + errors * hidden + 2 * shared + errors

    def zero_infinite(self) -> tuple[Gradients, Tensor]:
        """The same gradients, zeros in place of those that are not finite, and the squared norms of all: (n,).

        An infinite gradient cannot be scaled down to any norm, so it must not enter a sum that is to be private.
        """
        norms = self.squared_norms()
        broken = ~norms.isfinite()
        if not broken.any():
            return self, norms
        parts = (part.masked_fill(broken[:, None], 0.0) for part in self[1:])
        return Gradients(self.losses, *parts), norms.masked_fill(broken, 0.0)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Sum over users of weight × gradient: (n_items, d) for `items`, (n_items,) for `biases`."""
        errors, hidden_errors = weights[:, None] * self.errors, weights[:, None] * self.hidden_errors
        return self.inputs.T @ hidden_errors + errors.T @ self.hidden, errors.sum(0)

    def inner(self, direction: Sequence[Tensor]) -> Tensor:
        """(n,) inner products of the users' gradients with a direction: (n_items, d) and (n_items,), in this order."""
        items, biases = direction
        by_input, by_output = (self.inputs @ items) * self.hidden_errors, (self.errors @ items) * self.hidden
        return (by_input + by_output).sum(1) + self.errors @ biases

    def scale(self, factors: Tensor) -> Gradients:
        """Each user's gradient times its factor, (n,): a gradient is linear in the errors."""
        errors, hidden_errors = factors[:, None] * self.errors, factors[:, None] * self.hidden_errors
        return self._replace(errors=errors, hidden_errors=hidden_errors)


class DPAENetwork(nn.Module):
    """h = tanh(Wᵀ x/‖x‖), logits W h + b; the likelihood of x is multinomial.

    Buffers keep the last step taken, for momentum.
    """

    velocity_items: Tensor
    velocity_biases: Tensor

    def __init__(self, items: Tensor) -> None:
        """items: W, (n_items, d)."""
        super().__init__()
        self.items = nn.Parameter(items)
        self.biases = nn.Parameter(torch.zeros(len(items)))
        self.register_buffer("velocity_items", torch.zeros_like(items))
        self.register_buffer("velocity_biases", torch.zeros(len(items)))

    def encode(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of interactions (n, n_items) scaled to norm 1 (zeros stay), and their hidden layer (n, d)."""
        inputs = rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)
        return inputs, torch.tanh(inputs @ self.items)

    def gradients(self, rows: Tensor) -> Gradients:
        """Of the loss of each user; rows: (n, n_items) of 0 and 1."""
        inputs, hidden = self.encode(rows)
        log_shares = torch.log_softmax(torch.addmm(self.biases, hidden, self.items.T), 1)
        errors = log_shares.exp() * rows.sum(1, keepdim=True) - rows
        hidden_errors = (errors @ self.items) * (1 - hidden.square())
        return Gradients(-(rows * log_shares).sum(1), inputs, hidden, errors, hidden_errors)


class DPAE(UserLevelModel, DerivedModel, Recommender):
    """Autoencoder recommender with user-level differential privacy."""

    noise_key = "DPAE"
    config: DPAEConfig
    own_tensors: ClassVar[tuple[str, ...]] = ("codes",)
    network: DPAENetwork
    _multiplier: float | None = None

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """Weights N(0, init_std²), biases 0; and the noise that all epochs together may need."""
        config = self.config
        self._seen = Seen.from_pairs(data.users, data.items, data.n_users)
        self._multiplier = self.plan(data.n_users)
        weights = normal(rng, (data.n_items, config.dimension), config.init_std)
        return DPAENetwork(torch.from_numpy(weights).float())

    def train_epoch(self) -> float:
        """One step per Poisson sample of users; returns the mean loss of a user."""
        total = sum(self.private_step(self._sample()) for _ in range(self._plan.steps_per_epoch))
        return total / self._plan.steps_per_epoch

    def private_step(self, users: NDArray[np.int64]) -> float:
        """One step on a sample of users, possibly empty; returns its summed loss over the expected batch."""
        network, config, expected = self.network, self.config, self._plan.expected
        with torch.no_grad():
            gradients, norms = network.gradients(self.rows(users)).zero_infinite()
            factors = dpsgd.clip_factors(norms, config.clip_norm)
            sums, multiplier = gradients.weighted_sum(factors), self._multiplier or 0.0
            released = [dpsgd.add_noise(total, multiplier, config.clip_norm, self.noise_rng) for total in sums]
            if self.watch is not None:
                self.watch(released, self._plan.probability)
            self._noted["clipped"].append(float((factors < 1).sum()) / expected)
            parameters = (network.items, network.biases)
            velocities = (network.velocity_items, network.velocity_biases)
            for parameter, velocity, total in zip(parameters, velocities, released, strict=True):
                velocity.mul_(config.momentum).add_(total / expected + 2 * config.regularization * parameter)
                parameter.sub_(config.learning_rate * velocity)
        return float(gradients.losses.sum()) / expected

    def rows(self, users: NDArray[np.integer]) -> Tensor:
        """Training interactions of `users`: (len(users), n_items) of 0 and 1."""
        row, item = self._seen.pairs(users)
        rows = torch.zeros(len(users), self._data.n_items, device=self.device)
        rows[torch.from_numpy(row), torch.from_numpy(item).long()] = 1.0
        return rows

    def losses(self, rows: Tensor) -> Tensor:
        """Of users with these rows under the present weights: (n,), from rows (n, n_items) of 0 and 1."""
        with torch.no_grad():
            return self.network.gradients(rows.to(self.device)).losses

    def clipped_gradients(self, rows: Tensor, users: NDArray[np.integer]) -> Gradients:  # noqa: ARG002  # the contract
        """What users with these rows, (n, n_items) of 0 and 1, would add to the sums of the next step: any users."""
        with torch.no_grad():
            gradients, norms = self.network.gradients(rows.to(self.device)).zero_infinite()
            return gradients.scale(dpsgd.clip_factors(norms, self.config.clip_norm))

    def derived(self) -> dict[str, Tensor]:
        """What scoring needs: the decoder, which may be published, and `codes`, (n_users, d), one for each user's eyes.

        A code is computed from the user's own row and is not private towards whoever sees it.
        """
        network = self.network
        pieces = np.split(np.arange(self._data.n_users), range(PIECE, self._data.n_users, PIECE))
        return {
            "codes": torch.cat([network.encode(self.rows(users))[1] for users in pieces]),
            "items": network.items.detach().clone(),
            "biases": network.biases.detach().clone(),
        }

    @override
    def score(self, users: NDArray[np.int32]) -> Tensor:
        scoring = self.released()
        return torch.addmm(scoring["biases"], scoring["codes"][torch.from_numpy(users).long()], scoring["items"].T)

    @override
    def ledger(self) -> list[LedgerEntry]:
        planned = None if self._multiplier is None else (self._multiplier, self._plan.probability, self._plan.steps)
        return [
            self.steps_entry(
                planned,
                self._data.n_users if planned else 0,
                gaps=(*BY_EPOCHS, PLACE, *OWN_LIST, FLOATS),
            )
        ]

    def _sample(self) -> NDArray[np.int64]:
        return dpsgd.poisson_sample(self._data.n_users, self._plan.probability, self.noise_rng)
