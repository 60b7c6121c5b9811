"""User-level private SGD on whole sequences, whatever network reads them.

Source of the training: Abadi et al., "Deep learning with differential privacy" (CCS 2016). A record is a user with the
whole training sequence: items, their order, and the next items that the loss reads. Every user's gradient is clipped,
and sums get noise, in all parameters; it is calibrated to the budget of all steps together.

A record's loss is the mean of its examples', so that one clip norm fits long sequences and short ones. Without clipping
and noise this is ordinary training in which users, not examples, weigh the same.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from typing_extensions import override

from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.draws import OwnDraws
from tasks.models.sessions.sequential import SequenceModel, inputs_and_targets
from tasks.models.training import EpochConfig
from tasks.models.user_level import UserLevelModel
from tasks.privacy.accounting.gaps import BY_EPOCHS, FLOATS, PLACE
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.accounting.per_record import copies, weighted_sums, zero_infinite
from tasks.privacy.mechanisms import dpsgd
from tasks.privacy.remarks import KnownGap, because, gap

PIECE, EVENTS = 32, 8192
"""Users whose gradients are held at a time, and events up to which so many are; how many does not change a step but for
rounding."""
COUNTED = ("noise_multiplier", "sampling_probability", "planned_steps")
"""Buffers of the network with what the ledger must know of a loaded model, too; none depends on who has a sequence."""
GAPS = (*BY_EPOCHS, PLACE, gap("own-recommendations"), FLOATS)


class PrivateConfig(EpochConfig):
    """What private steps are configured by. An epoch is as many steps as take every user once on average."""

    batch_size: int = Field(ge=1)
    """Expected number of users in a step; their number, or more, puts all of them into every step."""
    clip_norm: float = Field(gt=0)
    """Norm that no user's gradient exceeds, all parameters together; infinity only where `epsilon` is."""
    epsilon: float = Field(gt=0)
    """Budget of a user for all steps of `epochs` epochs; infinity trains without noise."""
    delta: float = Field(gt=0, lt=1)
    """Failure probability of the guarantee; more than one in the number of users means little."""

    _noise_is_finite = model_validator(mode="after")(dpsgd.check_clip_norm)

    @property
    @override
    def plans_epochs(self) -> bool:
        return math.isfinite(self.epsilon)


class UserDropout:
    """Dropout of a private step, in which a user's masks are drawn for that user alone (`OwnDraws`)."""

    def __init__(self, share: float, key: tuple[int, ...] = ()) -> None:
        """share: of values that become 0, while the others grow so that the expectation stays. key: of the step."""
        self._share, self._key = share, key

    def __call__(self, values: Tensor, users: NDArray[np.integer], owners: Tensor) -> Tensor:
        """(n, d) `values` without a random share of them; users: ids; owners: (n,) ascending places in `users`."""
        if self._share == 0:
            return values
        rows = np.bincount(owners.cpu().numpy(), minlength=len(users))
        uniform = OwnDraws(self._key, users, rows).random(tuple(values.shape))
        return values * torch.from_numpy(uniform >= self._share).to(values.device) / (1 - self._share)


KEPT = UserDropout(0.0)
"""Every value is kept."""


class PrivateSequences(UserLevelModel, SequenceModel):
    """A model of sequences with user-level differential privacy."""

    config: Any
    gaps: ClassVar[tuple[KnownGap, ...]] = GAPS
    counted: ClassVar[tuple[str, ...]] = COUNTED

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The network, with the noise that all epochs together may need in its buffers."""
        network = super().build(data, rng)  # type: ignore[safe-super]  # what it is mixed into builds one
        multiplier = self.plan(data.n_users)
        self._places = np.full(data.n_users, -1)
        self._places[self._sequences.users] = np.arange(len(self._sequences))
        for name, value in zip(COUNTED, (multiplier, self._plan.probability, self._plan.steps), strict=True):
            network.register_buffer(
                name, torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
            )
        return network

    def train_epoch(self) -> float:
        """One step per Poisson sample of users; returns the mean loss of a user."""
        key, total = int(self._rng.integers(2**63)), 0.0
        for step in range(self._plan.steps_per_epoch):
            users = dpsgd.poisson_sample(len(self._places), self._plan.probability, self.noise_rng)
            total += self.private_step(self.sequences_of(users), UserDropout(self.config.dropout, (key, step)))
        return total / self._plan.steps_per_epoch

    def sequences_of(self, users: NDArray[np.int64]) -> Sequences:
        """The training sequences of these users; whoever has no event keeps a place in samples, and adds nothing."""
        places = self._places[users]
        return self._sequences.take(places[places >= 0])

    def private_step(self, sequences: Sequences, dropout: UserDropout = KEPT) -> float:
        """One step on a sample of users, possibly none; returns its summed loss over the expected batch.

        A user of one event gives no example, and so no gradient.
        """
        expected = self._plan.expected
        total, clipped, sums = self.clipped_sum(sequences, dropout)
        self._noted["clipped"].append(clipped / expected)
        multiplier, clip_norm = self._read_buffer("noise_multiplier"), self.config.clip_norm
        released = [dpsgd.add_noise(gradient, multiplier, clip_norm, self.noise_rng) for gradient in sums]
        if self.watch is not None:
            self.watch(released, self._plan.probability)
        for parameter, gradient in zip(self.network.parameters(), released, strict=True):
            parameter.grad = gradient / expected
        self._optimiser.step()
        return total / expected

    def clipped_sum(self, sequences: Sequences, dropout: UserDropout = KEPT) -> tuple[float, int, list[Tensor]]:
        """The sum of the users' losses, how many users are clipped, and the sums of clipped gradients by parameter."""
        total, clipped = 0.0, 0
        sums = [torch.zeros_like(parameter) for parameter in self.network.parameters()]
        lengths = sequences.lengths
        order = np.argsort(lengths, kind="stable")  # a piece of equally long sequences has little padding
        for piece in pieces(sequences.take(order[lengths[order] > 1])):
            losses, gradients = self.gradients(piece, dropout)
            gradients, norms = zero_infinite(gradients)
            factors = dpsgd.clip_factors(norms, self.config.clip_norm)
            for part, gradient in zip(sums, weighted_sums(gradients, factors), strict=True):
                part += gradient
            total += float(losses.sum())
            clipped += int((factors < 1).sum())
        return total, clipped, sums

    def gradients(self, sequences: Sequences, dropout: UserDropout = KEPT) -> tuple[Tensor, list[Tensor]]:
        """Losses of users, (n_users,), and their gradients, (n_users, ...) for each parameter in its order.

        Every sequence has at least two events.
        """
        parameters = {name: copies(parameter, len(sequences)) for name, parameter in self.network.named_parameters()}
        prefixes, targets = inputs_and_targets(sequences, self.device)
        losses = cross_entropy(self.own_logits(parameters, prefixes, dropout), targets, reduction="none")
        owners = torch.from_numpy(prefixes.owners).to(losses.device)
        shares = torch.from_numpy(1.0 / prefixes.lengths).float().to(losses.device)[owners]
        of_users = torch.zeros(len(prefixes), device=losses.device).index_add(0, owners, shares * losses)
        return of_users.detach(), list(torch.autograd.grad(of_users.sum(), list(parameters.values())))

    @abstractmethod
    def own_logits(self, parameters: dict[str, Tensor], sequences: Sequences, dropout: UserDropout) -> Tensor:
        """Scores of all items after every event, with each user's own copy of the parameters: (n_events, n_items)."""

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        weights = {name: tensor for name, tensor in tensors.items() if name not in self.counted}
        super().restore_released(weights)
        for name in self.counted:
            self.network.register_buffer(name, tensors[name])

    @override
    def ledger(self) -> list[LedgerEntry]:
        planned, n_users = None, 0
        if hasattr(self, "network"):
            multiplier, probability, steps = (self._read_buffer(name) for name in COUNTED)
            planned, n_users = (multiplier, probability, int(steps)), self.n_records()
        return [self.steps_entry(planned, n_users, gaps=self.gaps, remarks=(because("whole-sequence"),))]

    @abstractmethod
    def n_records(self) -> int:
        """Users, also of a loaded model."""

    def _read_buffer(self, name: str) -> float:
        return self.network.get_buffer(name).item()


def pieces(sequences: Sequences) -> Iterator[Sequences]:
    """Sequences in their order, at most `PIECE` at a time, and one of more than `EVENTS` events alone."""
    start = 0
    while start < len(sequences):
        end = start + 1
        while end < min(start + PIECE, len(sequences)) and (end + 1 - start) * sequences.lengths[end] <= EVENTS:
            end += 1
        yield sequences.take(np.arange(start, end))
        start = end
