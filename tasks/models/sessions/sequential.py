"""Training of next-item recommenders that read a sequence event by event.

Such a model computes one vector after each event, from that event and the ones before it only. One pass over a sequence
then trains all of its prefixes at once, where a pass for every prefix would read a sequence of n events n - 1 times.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.autograd.function import once_differentiable
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, NextItemRecommender, Progress
from tasks.models.training import EpochConfig, EpochModel

if TYPE_CHECKING:
    from torch.autograd.function import FunctionCtx


class SequenceConfig(EpochConfig):
    """What models that read a sequence event by event have in common."""

    batch_size: int = Field(ge=1)
    """Sequences per gradient step."""
    dimension: int = Field(ge=1)
    """Length of item vectors and of hidden states."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the values that are left out in training, wherever the model drops any."""


class SequenceModel(EpochModel, NextItemRecommender):
    """A model trained by epochs of sequences, each of which gives an example per event that has a next one."""

    config: SequenceConfig

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        self._sequences = ordered(data)
        self._examples = self._sequences.take(np.flatnonzero(self._sequences.lengths > 1))
        return super().fit(data, rng=rng, progress=progress)

    @override
    def released(self) -> dict[str, Tensor]:
        return dict(self.network.state_dict())

    @abstractmethod
    def loss(self, sequences: Sequences, dropout: Dropout) -> Tensor:
        """Mean loss of all examples of a batch; every sequence has at least two events."""

    def train_epoch(self) -> float:
        """One pass over the sequences in random order; returns the mean loss of an example."""
        rng, total, count = self._rng, 0.0, 0
        dropout = Dropout(self.config.dropout, rng)
        for batch in self._examples.take(rng.permutation(len(self._examples))).batches(self.config.batch_size):
            n_examples = batch.n_events - len(batch)
            total += self.step(self.loss(batch, dropout)) * n_examples
            count += n_examples
        return total / count


def ordered(data: TrainingData) -> Sequences:
    """The events of all users in their order.

    Raises:
        DataError: their order is not known, or no sequence has two.
    """
    if data.sequences is None:
        raise DataError("interactions: their order is not known, and this model learns what comes next")
    if not (data.sequences.lengths > 1).any():
        raise DataError("interactions: no user has two training events; there is no next item to learn from")
    return data.sequences


class Dropout:
    """Dropout whose masks come from the generator of the model: they are the same again in a resumed run."""

    def __init__(self, share: float, rng: np.random.Generator | None = None) -> None:
        """share: of values that become 0; the rest grow, so that the expectation stays. rng: seeds all masks."""
        self.share = share
        self._generator = None if rng is None else torch.Generator().manual_seed(int(rng.integers(2**63)))

    def __call__(self, values: Tensor) -> Tensor:
        """`values` with a fresh random share of them left out."""
        if self.share == 0:
            return values
        kept = torch.empty_like(values, device="cpu").bernoulli_(1 - self.share, generator=self._generator)
        return values * kept.div_(1 - self.share).to(values.device)


NO_DROPOUT = Dropout(0.0)
"""For scoring: every value is kept."""


def inputs_and_targets(sequences: Sequences, device: torch.device) -> tuple[Sequences, Tensor]:
    """The events that have a next one, and their next items, (n_examples,) int64 on `device`."""
    return sequences.without_last(), torch.from_numpy(sequences.next_items.astype(np.int64)).to(device)


def mean_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean over rows of log Σ exp(logits) less the target's: (n, n_items) and (n,) -> scalar.

    As `torch.nn.functional.cross_entropy`, in a third of its time: the forward pass leaves the gradient.
    """
    return _MeanCrossEntropy.apply(logits, targets)


class _MeanCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, logits: Tensor, targets: Tensor) -> Tensor:
        shares = torch.softmax(logits, 1)
        cells = torch.arange(len(targets), device=targets.device), targets
        losses = logits.amax(1) - shares.amax(1).log() - logits[cells]
        shares[cells] -= 1
        ctx.save_for_backward(shares)
        return losses.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = ctx.saved_tensors
        return slopes * (gradients[0] / len(slopes)), None
