"""Adversarial starts: a linear map found without knowing a single pair.

Source: MUSE, section 2.1 and, for the training, section 3. A discriminator learns to tell mapped source vectors from
target vectors, the map learns to mislead it; after every step of the map, W <- (1 + β) W - β W Wᵀ W keeps it near
the orthogonal maps. What is judged and handed on is the orthogonal map nearest to it, of the epoch that the criterion
likes best. Training may well settle on a wrong map: train several seeds and look at all of them.

**That of DP-CroSUE's released code** (`CycleStart`): each network's vectors are first given a code by a linear
autoencoder of their own, which then stays as it is (the code detaches all that its later losses would teach it).
Between the codes two maps are trained, one each way, each against a discriminator on the side it leads to; what a map
gives is led back by the other one, which learns to end where it began (mean absolute difference, weighted). The first
map is the one that is judged. Left out of that code: a learning rate that is halved where the criterion falls twice.
Source: the code that accompanies Ren et al., CIKM 2022, as of 2023, which took it from Mohiuddin and Joty, "Revisiting
adversarial autoencoder for unsupervised word translation with cycle consistency and improved training" (NAACL 2019);
facts of it alone, written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.device import chosen
from tasks.core.errors import DataError
from tasks.models.alignment.procrustes import Csls, nearest_orthogonal
from tasks.models.base import SILENT, ModelConfig, Progress
from tasks.models.training import draw_weights

SLOPE = 0.2
"""Of the discriminator's leaky rectifiers, below zero."""


class AdversarialConfig(ModelConfig):
    """Configuration of `AdversarialStart`."""

    epochs: int = Field(ge=1)
    """How often the criterion is measured; the map of the best epoch is kept."""
    iterations: int = Field(ge=1)
    """Steps of the map per epoch."""
    discriminator_steps: int = Field(ge=1)
    """Steps of the discriminator before each step of the map."""
    batch_size: int = Field(ge=1)
    """Users drawn from each network for a step."""
    learning_rate: float = Field(gt=0, allow_inf_nan=False)
    """Step size of both sides at first, plain gradient descent."""
    decay: float = Field(default=0.98, gt=0, le=1)
    """The map's learning rate is multiplied by it after every epoch; the discriminator keeps its own."""
    beta: float = Field(default=0.01, ge=0, le=0.5)
    """β, how strongly the map is pulled towards the orthogonal ones."""
    hidden: tuple[int, ...] = Field(min_length=1, max_length=2)
    """Widths of the discriminator's hidden layers."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of the inputs that are hidden from the discriminator while it learns; none while the map misleads it."""
    smoothing: float = Field(default=0.1, ge=0, lt=0.5)
    """How far the discriminator's labels are from 0 and 1."""
    initial: Literal["identity", "random"]
    """Where the map starts: the identity, or a random orthogonal map, another one for every seed."""


def finite_or_none(values: Sequence[float]) -> list[float | None]:
    """The same values, with None, for JSON, in place of those that are not finite: of a map that diverged."""
    return [value if np.isfinite(value) else None for value in values]


class Discriminator(nn.Module):
    """(batch, d) vectors -> (batch,) logits of being a target."""

    def __init__(self, d: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        widths = (d, *hidden, 1)
        self.layers = nn.ModuleList(nn.Linear(*ends) for ends in pairwise(widths))

    def forward(self, vectors: Tensor) -> Tensor:
        """See the class."""
        for layer in self.layers[:-1]:
            vectors = nn.functional.leaky_relu(layer(vectors), SLOPE)
        return self.layers[-1](vectors).squeeze(1)


class AdversarialStart:
    """The map, the discriminator, and where their training is.

    Lists of maps, and of the discriminators on the sides that they lead to, are of directions: from the first network
    to the second, and where there is a way back the other way. All randomness comes from the generator handed in, whose
    state is part of `state`, so that an interrupted training ends with the same map as an unbroken one.
    """

    names: ClassVar[tuple[tuple[str, str], ...]] = (("map", "discriminator"),)
    """Names of the map and of the discriminator in `state`, for each direction."""
    mapping: NDArray[np.float64]
    """(d, d) the orthogonal map nearest to that of the best epoch; before the first, where training starts."""
    criteria: list[float]
    """`Matches.criterion` of the orthogonal map after each epoch; where the map diverged, -inf."""
    losses: list[float]
    """Mean loss of the discriminator in each epoch; log 2 where it cannot distinguish the networks."""

    def __init__(
        self,
        config: AdversarialConfig,
        source: NDArray[np.floating],
        target: NDArray[np.floating],
        *,
        neighbours: int,
        tie_seed: int,
        rng: np.random.Generator,
    ) -> None:
        """Take the networks and draw what training starts from.

        Args:
            source, target: (n_sources, d) and (n_targets, d) normalised embeddings.
            neighbours: k of the criterion's CSLS.
            tie_seed: which of equally near neighbours is taken (`Csls.mutual_neighbours`).
            rng: of all draws of the training.

        Raises:
            DataError: the widths of the embeddings differ.
        """
        d = source.shape[1]
        if target.shape[1] != d:
            raise DataError(f"embeddings: widths differ ({d} and {target.shape[1]}); embed both alike")
        self.config, self._rng = config, rng
        device = chosen()
        self._sides = [torch.from_numpy(side.astype(np.float32)).to(device) for side in (source, target)]
        self._neighbours, self._tie_seed = neighbours, tie_seed
        start = np.eye(d)
        if config.initial != "identity":  # uniform over the orthogonal maps (Mezzadri, Notices of the AMS 2007)
            q, r = np.linalg.qr(rng.standard_normal((d, d)))
            start = q * np.sign(np.diag(r))
        forth = torch.from_numpy(start.astype(np.float32)).to(device)
        both = forth, forth.T.contiguous()
        self._maps = [mapping.requires_grad_() for mapping in both[: len(self.names)]]
        self._discriminators = [Discriminator(d, config.hidden) for _ in self.names]
        for discriminator in self._discriminators:
            draw_weights(discriminator, rng)
            discriminator.to(device)
        self._map_rate = config.learning_rate
        self.mapping = start
        self.criteria, self.losses = [], []

    @property
    def criterion(self) -> float:
        """That of the best epoch; -inf before the first."""
        return max(self.criteria, default=-np.inf)

    @property
    def epochs_done(self) -> int:
        """Epochs trained so far."""
        return len(self.criteria)

    def train(self, progress: Progress = SILENT) -> Self:
        """Train up to `config.epochs`, or until `progress` ends it.

        An epoch whose map is not finite ends the training: earlier epochs stay, and `criteria` shows it.
        """
        going = progress.restore(self)
        while going and self.epochs_done < self.config.epochs and np.isfinite(self.criteria[-1:]).all():
            self.losses.append(self._epoch())
            self._measure()
            going = progress.epoch(self, self.losses[-1])
        progress.finish(self)
        return self

    def diagnostics(self) -> dict[str, float | None]:
        """The last epoch's loss and criterion, None where JSON has no number for it."""
        return {"loss": finite_or_none(self.losses)[-1], "criterion": finite_or_none(self.criteria)[-1]}

    def weights(self) -> dict[str, Tensor]:
        """A copy of what is handed on."""
        return {"best": torch.from_numpy(self.mapping.copy())}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Take back what `weights` gave."""
        self.mapping = weights["best"].numpy().copy()

    def state(self) -> tuple[dict[str, Tensor], dict[str, object]]:
        """Everything needed to resume: tensors, and other values that JSON can hold."""
        tensors: dict[str, Tensor] = {}
        for (name, prefix), mapping, discriminator in self._directions():
            tensors |= {f"{prefix}.{key}": value for key, value in discriminator.state_dict().items()}
            tensors[name] = mapping.detach()
        tensors = {name: value.to("cpu", copy=True) for name, value in tensors.items()} | self.weights()
        epochs = {"criteria": finite_or_none(self.criteria), "losses": finite_or_none(self.losses)}
        extras = {"epochs_done": self.epochs_done, "learning_rate": self._map_rate}
        return tensors, epochs | extras | {"rng": self._rng.bit_generator.state}

    def load_state(self, tensors: dict[str, Tensor], extras: dict[str, Any]) -> None:
        """Take back what `state` gave.

        Raises:
            DataError: criteria and losses are not of as many epochs as were done.
        """
        for (name, prefix), mapping, discriminator in self._directions():
            own = {key: value for key, value in tensors.items() if key.startswith(f"{prefix}.")}
            discriminator.load_state_dict({key.removeprefix(f"{prefix}."): value for key, value in own.items()})
            with torch.no_grad():
                mapping.copy_(tensors[name])
        self.load_weights(tensors)
        self.criteria = [-np.inf if value is None else float(value) for value in extras["criteria"]]
        self.losses = [np.nan if value is None else float(value) for value in extras["losses"]]
        if not len(self.criteria) == len(self.losses) == extras["epochs_done"]:
            raise DataError("its criteria or its losses are of other epochs")
        self._map_rate = extras["learning_rate"]
        self._rng.bit_generator.state = extras["rng"]

    def _directions(self) -> Iterator[tuple[tuple[str, str], Tensor, Discriminator]]:
        return zip(self.names, self._maps, self._discriminators, strict=True)

    def _epoch(self) -> float:
        """The steps of an epoch; returns the first discriminator's mean loss."""
        config, total = self.config, 0.0
        for _ in range(config.iterations):
            for _ in range(config.discriminator_steps):
                for direction, discriminator in enumerate(self._discriminators):
                    loss = self._loss(direction, fool=False)
                    self._descend(loss, list(discriminator.parameters()), config.learning_rate)
                    total += 0.0 if direction else loss.item()
            for direction in range(len(self._maps)):
                self._descend(self._loss(direction, fool=True), self._maps, self._map_rate)
                with torch.no_grad():
                    for mapping in self._maps:
                        mapping.copy_((1 + config.beta) * mapping - config.beta * mapping @ (mapping.T @ mapping))
        return total / (config.iterations * config.discriminator_steps)

    def _loss(self, direction: int = 0, *, fool: bool) -> Tensor:
        """Loss of a direction's discriminator over a fresh batch or, with `fool`, of the map that misleads it."""
        side, other = self._drawn(self._sides[direction]), self._drawn(self._sides[1 - direction])
        mapping = self._maps[direction]
        mapped = side @ (mapping if fool else mapping.detach())
        loss = self._cross_entropy(self._discriminators[direction], mapped, other, fool=fool)
        return loss + self._way_back(direction, side, mapped) if fool else loss

    def _way_back(self, direction: int, side: Tensor, mapped: Tensor) -> Tensor | float:  # noqa: ARG002
        """What is added to the loss of a map."""
        return 0.0

    def _drawn(self, side: Tensor) -> Tensor:
        """A batch of users, with repeats: (batch_size, d)."""
        return side[torch.from_numpy(self._rng.integers(len(side), size=self.config.batch_size))]

    def _cross_entropy(self, discriminator: Discriminator, mapped: Tensor, other: Tensor, *, fool: bool) -> Tensor:
        """Mean cross-entropy of a discriminator; against swapped labels, all inputs seen, to mislead it."""
        config, inputs = self.config, torch.cat([mapped, other])
        if config.dropout and not fool:
            kept = torch.from_numpy(self._rng.random(inputs.shape, np.float32) >= config.dropout).to(inputs.device)
            inputs = inputs * kept / (1 - config.dropout)
        is_other = inputs.new_full((len(inputs),), config.smoothing)
        is_other[len(mapped) :] = 1 - config.smoothing
        return nn.functional.binary_cross_entropy_with_logits(discriminator(inputs), 1 - is_other if fool else is_other)

    def _descend(self, loss: Tensor, parameters: list[Tensor], rate: float) -> None:
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-rate)

    def _measure(self) -> None:
        """Judge the map, keep it if it is the best, and lower its learning rate."""
        self._map_rate *= self.config.decay
        if not self._maps[0].isfinite().all():
            self.criteria.append(-np.inf)
            return
        mapping = nearest_orthogonal(self._maps[0].detach().cpu().numpy())
        source, target = (side.cpu().numpy() for side in self._sides)
        csls = Csls.from_vectors(source @ mapping, target, self._neighbours)
        criterion = csls.mutual_neighbours(self._tie_seed).criterion
        if criterion > self.criterion:
            self.mapping = mapping
        self.criteria.append(criterion)


class CoderConfig(ModelConfig):
    """Configuration of the autoencoders."""

    width: int = Field(default=200, ge=1)
    """Length of the codes."""
    steps: int = Field(default=1975, ge=1)
    """25 epochs of 79 batches."""
    batch_size: int = Field(default=128, ge=1)
    """Users of a step, drawn with repeats."""
    learning_rate: float = Field(default=0.001, gt=0, allow_inf_nan=False)
    """Of Adam."""


class CycleConfig(AdversarialConfig):
    """Configuration of `CycleStart`; both maps and both discriminators are trained alike."""

    coder: CoderConfig = CoderConfig()
    """How vectors become codes."""
    cycle: float = Field(default=5.0, ge=0)
    """Weight of the loss of the way back."""


def codes(vectors: NDArray[np.floating], config: CoderConfig, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n_users, width) codes of (n_users, d) vectors, by a linear autoencoder trained on them with squared error."""
    device = chosen()
    rows = torch.from_numpy(np.asarray(vectors, np.float32)).to(device)
    coder = nn.Sequential(nn.Linear(rows.shape[1], config.width), nn.Linear(config.width, rows.shape[1]))
    draw_weights(coder, rng)
    coder.to(device)
    optimiser = torch.optim.Adam(coder.parameters(), lr=config.learning_rate)
    for _ in range(config.steps):
        batch = rows[torch.from_numpy(rng.integers(len(rows), size=config.batch_size))]
        optimiser.zero_grad()
        nn.functional.mse_loss(coder(batch), batch).backward()
        optimiser.step()
    with torch.no_grad():
        return np.asarray(coder[0](rows).cpu().numpy(), np.float32)


class CycleStart(AdversarialStart):
    """The maps, the discriminators, and where their training is; `source` and `target` are codes.

    `mapping` leads from the first network to the second; `losses` are of the discriminator there.
    """

    names = (("map", "discriminator"), ("back-map", "back"))
    config: CycleConfig

    @override
    def _way_back(self, direction: int, side: Tensor, mapped: Tensor) -> Tensor:
        """The other map learns to lead back, from where this one has led."""
        return self.config.cycle * (side - mapped.detach() @ self._maps[1 - direction]).abs().mean()
