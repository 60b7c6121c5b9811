"""Training by epochs: one loop for every model that learns by gradient steps, resumable to the last bit."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.device import chosen
from tasks.core.errors import DataError
from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, Model, ModelConfig, Progress, Recommender
from tasks.privacy import noise

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: a multiplicative hash (Knuth, The Art of Computer Programming, vol. 3, 6.4)."""
SLOTS, MOST_BITS = 16, 26
"""Slots of the hash table for each interaction, and at most 2^26 of them, of a byte each."""


class NegativeSampler:
    """Draws items that a user has no training interaction with, uniformly; memory is linear in the interactions."""

    def __init__(self, users: NDArray[np.int32], items: NDArray[np.int32], n_users: int, n_items: int) -> None:
        """users, items: (n_interactions,) parallel arrays."""
        self.n_items = n_items
        self._codes = np.unique(users.astype(np.int64) * n_items + items)
        counts = np.bincount(self._codes // n_items, minlength=n_users)
        if (full := np.flatnonzero(counts >= n_items)).size:
            raise DataError(f"interactions: user {full[0]} has all {n_items} items, so no negative item can be drawn")
        bits = min(MOST_BITS, (SLOTS * len(self._codes)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._taken = np.zeros(1 << bits, bool)
        self._taken[self._slots(self._codes)] = True

    def draw(self, users: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
        """One negative item for each of `users`: (n,) int32."""
        negatives = rng.integers(0, self.n_items, len(users), dtype=np.int32)
        pending = np.flatnonzero(self._is_positive(users, negatives))
        while pending.size:
            negatives[pending] = rng.integers(0, self.n_items, len(pending), dtype=np.int32)
            pending = pending[self._is_positive(users[pending], negatives[pending])]
        return negatives

    def _is_positive(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.bool_]:
        codes = users.astype(np.int64) * self.n_items + items
        positive = self._taken[self._slots(codes)]
        doubtful = np.flatnonzero(positive)  # a slot is taken by others, too
        queries = codes[doubtful]
        positions = np.searchsorted(self._codes, queries)
        positions[positions == len(self._codes)] = 0
        positive[doubtful] = self._codes[positions] == queries
        return positive

    def _slots(self, codes: NDArray[np.int64]) -> NDArray[np.uint64]:
        return (codes.view(np.uint64) * MULTIPLIER) >> self._shift


class EpochConfig(ModelConfig):
    """What every epoch-trained model has in common."""

    epochs: int = Field(ge=1)
    """Passes over the training interactions, at most: validation may end training earlier."""
    batch_size: int = Field(ge=1)
    """Training triples per gradient step."""
    learning_rate: float = Field(ge=0, allow_inf_nan=False)
    """Step size of the optimiser."""
    regularization: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Weight of the squared norm of all parameters, added to the mean loss of a batch."""

    @property
    def plans_epochs(self) -> bool:
        """Whether noise is made for `epochs` epochs, whose number is then a part of the mechanism and no cap on it."""
        return False


class EpochModel(Model):
    """A model trained by epochs of gradient steps.

    A subclass builds its `network` and trains it for an epoch. All randomness comes from the generator handed to
    `fit`, or from `noise_rng`; the states of both are part of the checkpoint, so an interrupted run ends with the same
    numbers as an unbroken one. Of secure noise no state is kept: it goes on with a generator of its own.
    After every epoch the model can be scored. The network is built on the CPU and trained on `device`; what is kept of
    it, `state` and `weights`, are CPU tensors.
    """

    config: EpochConfig
    network: nn.Module
    """Parameters and buffers; everything that a checkpoint must hold besides the optimiser."""
    epochs_done: int = 0
    """Epochs trained so far."""
    figures: ClassVar[tuple[str, ...]] = ()
    """What a subclass notes in training, by `_noted`, that is worth showing besides the loss."""
    _noise_rng: np.random.Generator | None = None

    def __init__(self, config: EpochConfig) -> None:
        """See `Model`; the model is trained on the device that is chosen now."""
        super().__init__(config)
        self.device = chosen()
        self._noted: dict[str, list[float]] = {name: [] for name in self.figures}

    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Train for `config.epochs` epochs, or until `progress` ends it; see `Model.fit`."""
        self.epochs_done = 0
        self._rng, self._noise_rng = rng, None
        self._data = data
        self._noted = {name: [] for name in self.figures}
        self.weights_changed()
        self.network = self.build(data, rng).to(self.device).eval()  # as it is scored, also where no epoch is left
        self._optimiser = self.optimiser()
        going = progress.restore(self)
        while going and self.epochs_done < self.config.epochs:
            self.network.train()
            loss = self.train_epoch()
            self.network.eval()
            self.weights_changed()
            self.epochs_done += 1
            going = progress.epoch(self, loss)
        progress.finish(self)
        return self

    @property
    def noise_rng(self) -> np.random.Generator:
        """What everything is drawn from, within `fit`, that hides something; see `Model.noise_stream`."""
        if self._noise_rng is None:
            self._noise_rng = self.noise_stream(self._data, self._rng)
        return self._noise_rng

    @abstractmethod
    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The network at its initial weights, all drawn from `rng`."""

    def optimiser(self) -> torch.optim.Optimizer:
        """What takes the steps, over the parameters of `network`: Adam, unless a subclass says otherwise."""
        parameters, config = self.network.parameters(), self.config
        return torch.optim.Adam(parameters, lr=config.learning_rate, weight_decay=2 * config.regularization, fused=True)

    @abstractmethod
    def train_epoch(self) -> float:
        """One pass over the data, a step at a time; returns the mean loss."""

    def weights_changed(self) -> None:
        """Called whenever parameters may have changed; a subclass drops what it derived from them."""

    def diagnostics(self) -> dict[str, float]:
        """Means of `figures` since the last call, 0 where nothing was noted."""
        means = {name: float(np.mean(noted)) if noted else 0.0 for name, noted in self._noted.items()}
        self._noted = {name: [] for name in self.figures}
        return means

    def state(self) -> tuple[dict[str, Tensor], dict[str, object]]:
        """Everything needed to go on from here: tensors, and a JSON-able rest (epoch, generator)."""
        tensors = {f"network.{name}": tensor.cpu() for name, tensor in self.network.state_dict().items()}
        for index, moments in self._optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{index}.{name}": torch.as_tensor(value).cpu() for name, value in moments.items()}
        extras = {"epochs_done": self.epochs_done, "rng": self._rng.bit_generator.state}
        if self._noise_rng is not None and (state := noise.state(self._noise_rng)) is not None:
            extras["noise"] = state
        return tensors, extras

    def load_state(self, tensors: dict[str, Tensor], extras: dict[str, Any]) -> None:
        """Take back what `state` gave, within `fit`."""
        self.load_weights({n.removeprefix("network."): t for n, t in tensors.items() if n.startswith("network.")})
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser."):
                _, index, moment = name.split(".")
                moments.setdefault(int(index), {})[moment] = tensor
        self._optimiser.load_state_dict(self._optimiser.state_dict() | {"state": moments})
        self._rng.bit_generator.state = extras["rng"]
        if "noise" in extras:
            self.noise_rng.bit_generator.state = extras["noise"]
        self.epochs_done = extras["epochs_done"]

    def weights(self) -> dict[str, Tensor]:
        """A copy of the network's parameters and buffers."""
        return {name: tensor.to("cpu", copy=True) for name, tensor in self.network.state_dict().items()}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Take back what `weights` gave."""
        self.network.load_state_dict(weights)
        self.weights_changed()

    def step(self, loss: Tensor) -> float:
        """One gradient step on the loss of a batch; returns its value."""
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return loss.item()


class DerivedModel(EpochModel):
    """A model that scores by tensors that follow from its weights: they are kept until the weights change."""

    _derived: dict[str, Tensor] | None = None

    @abstractmethod
    def derived(self) -> dict[str, Tensor]:
        """What scoring needs, see `Model.released`; called without gradients."""

    @override
    def weights_changed(self) -> None:
        self._derived = None

    @override
    def released(self) -> dict[str, Tensor]:
        if self._derived is None:
            with torch.no_grad():
                self._derived = self.derived()
        return self._derived

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        self._derived = tensors


class PairwiseModel(EpochModel, Recommender):
    """A model trained by epochs of (user, item, negative item) triples: one per training interaction."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        self._sampler = NegativeSampler(data.users, data.items, data.n_users, data.n_items)
        return super().fit(data, rng=rng, progress=progress)

    @abstractmethod
    def loss(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        """Mean loss of a batch of triples, each (batch,) int64 ids."""

    def train_epoch(self) -> float:
        """One pass over the interactions in random order, a fresh negative for each; returns the mean loss."""
        data = self._data
        order = self._rng.permutation(len(data.users))
        users, items = data.users[order], data.items[order]
        negatives = self._sampler.draw(users, self._rng)
        triples = [torch.from_numpy(ids.astype(np.int64)).to(self.device) for ids in (users, items, negatives)]
        batches = zip(*(ids.split(self.config.batch_size) for ids in triples), strict=True)
        losses = [(self.train_batch(*batch), len(batch[0])) for batch in batches]
        return sum(loss.item() * size for loss, size in losses) / len(users)

    def train_batch(self, users: Tensor, items: Tensor, negatives: Tensor) -> Tensor:
        """One gradient step on a batch of triples; returns their mean loss, a scalar without gradient."""
        loss = self.loss(users, items, negatives)
        self.step(loss)
        return loss.detach()


def draw_weights(module: nn.Module, rng: np.random.Generator, *, std: float | None = None) -> None:
    """Fill every parameter of `module` from `rng`.

    With `std` all are N(0, std²). Otherwise matrices are N(0, 2 / (fan_in + fan_out)) (Glorot) and vectors are 0.
    """
    with torch.no_grad():
        for parameter in module.parameters():
            scale = std
            if scale is None:
                scale = (2 / sum(parameter.shape)) ** 0.5 if parameter.ndim > 1 else 0.0
            parameter.copy_(torch.from_numpy(rng.normal(0.0, scale, parameter.shape)).to(parameter.dtype))
