"""The start without anchors that DP-CroSUE's released code has: autoencoders, a map each way, and a cycle loss.

Each network's vectors are first given a code by a linear autoencoder of their own, which then stays as it is (the code
detaches all that its later losses would teach it). Between the codes two maps are trained, one each way, each against
a discriminator on the side it leads to; what a map gives is led back by the other one, which learns to end where it
began (mean absolute difference, weighted). Both are kept near the orthogonal maps as in `adversarial`. What is judged
and handed on is the orthogonal map nearest to the first one, of the epoch that the criterion likes best.

Left out of that code: a learning rate that is halved where the criterion falls twice.

Source: the code that accompanies Ren et al., CIKM 2022, as of 2023, which took it from Mohiuddin and Joty, "Revisiting
adversarial autoencoder for unsupervised word translation with cycle consistency and improved training" (NAACL 2019);
facts of it alone, written again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.device import chosen
from tasks.models.alignment.adversarial import AdversarialConfig, AdversarialStart, Discriminator
from tasks.models.base import ModelConfig
from tasks.models.training import draw_weights


class CoderConfig(ModelConfig):
    """Configuration of the autoencoders."""

    width: int = Field(default=200, ge=1)
    """Length of the codes."""
    steps: int = Field(default=1975, ge=1)
    """25 epochs of 79 batches."""
    batch_size: int = Field(default=128, ge=1)
    """Users of a step, drawn with repeats."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Of Adam."""


class CycleConfig(AdversarialConfig):
    """Configuration of `CycleStart`; both maps and both discriminators are trained alike."""

    coder: CoderConfig = CoderConfig()
    """How vectors become codes."""
    cycle: float = Field(default=5.0, ge=0)
    """Weight of the loss of the way back."""


def codes(vectors: NDArray[np.floating], config: CoderConfig, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n_users, width) what a linear autoencoder, trained on (n_users, d) vectors by squared error, makes of them."""
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

    config: CycleConfig

    def __init__(
        self,
        config: CycleConfig,
        source: NDArray[np.floating],
        target: NDArray[np.floating],
        *,
        rng: np.random.Generator,
        **measured: int,
    ) -> None:
        """As `AdversarialStart`."""
        super().__init__(config, source, target, rng=rng, **measured)
        self._back = self._map.detach().T.contiguous().requires_grad_()
        self._back_discriminator = Discriminator(source.shape[1], config.hidden)
        draw_weights(self._back_discriminator, rng)
        self._back_discriminator.to(self._map.device)

    @override
    def _epoch(self) -> float:
        config, total = self.config, 0.0
        directions = ((self._map, self._discriminator), (self._back, self._back_discriminator))
        sides = (self._source, self._target)
        for _ in range(config.iterations):
            for _ in range(config.discriminator_steps):
                for direction, (mapping, discriminator) in enumerate(directions):
                    side, other = self._drawn(sides[direction]), self._drawn(sides[1 - direction])
                    loss = self._cross_entropy(discriminator, side @ mapping.detach(), other, fool=False)
                    self._descend(loss, list(discriminator.parameters()), config.learning_rate)
                    total += loss.item() if not direction else 0.0
            for direction, (mapping, discriminator) in enumerate(directions):
                self._step_of_maps(
                    mapping,
                    directions[1 - direction][0],
                    discriminator,
                    self._drawn(sides[direction]),
                    self._drawn(sides[1 - direction]),
                )
        return total / (config.iterations * config.discriminator_steps)

    def _step_of_maps(
        self, mapping: Tensor, back: Tensor, discriminator: Discriminator, side: Tensor, other: Tensor
    ) -> None:
        """The map misleads the discriminator; the other one learns to lead back, from where the map has led."""
        mapped = side @ mapping
        fooled = self._cross_entropy(discriminator, mapped, other, fool=True)
        returned = (side - mapped.detach() @ back).abs().mean()
        self._descend(fooled + self.config.cycle * returned, [mapping, back], self._map_rate)
        self._pull(mapping, back)

    @override
    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, extras = super().state()
        tensors |= {
            f"back.{name}": value.to("cpu", copy=True) for name, value in self._back_discriminator.state_dict().items()
        }
        return tensors | {"back-map": self._back.detach().to("cpu", copy=True)}, extras

    @override
    def load_state(self, tensors: dict[str, Tensor], extras: dict[str, Any]) -> None:
        forward = {name: value for name, value in tensors.items() if not name.startswith("back")}
        super().load_state(forward, extras)
        weights = {name.removeprefix("back."): value for name, value in tensors.items() if name.startswith("back.")}
        self._back_discriminator.load_state_dict(weights)
        with torch.no_grad():
            self._back.copy_(tensors["back-map"])
