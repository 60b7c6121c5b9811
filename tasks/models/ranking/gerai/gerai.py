"""GERAI: the graph recommender of `gcn` with a perturbed loss (§4.2). GERAI-NL is the same on raw features.

What is private here, compared with `GCN`: `predictive` keeps q within (0, 1) so that one triple's share of the loss
coefficients is bounded, and `objective` is the truncated loss with Laplace noise on those coefficients. The features
are perturbed before they come here (`tasks.privacy.mechanisms.multidimensional`).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.models.ranking.gerai.gcn import GCN, GCNConfig, GCNNetwork
from tasks.privacy.accounting.gaps import EPOCH
from tasks.privacy.accounting.ledger import LedgerEntry, unbounded_entry
from tasks.privacy.insecurity import FUNCTIONAL
from tasks.privacy.mechanisms import functional
from tasks.privacy.remarks import because, gap


class GERAIConfig(GCNConfig):
    """Configuration of `GERAI`. Published: epsilon 0.4, dimension 60."""

    epsilon: float = Field(gt=0)
    """ε of the loss perturbation; infinity draws no noise and leaves the truncated loss."""
    bound: Literal["clip", "tanh"] = "clip"
    """How q is kept within [0, 1]: the clip function of the paper's footnote 1, or tanh."""
    ridge: float = Field(default=4.0, ge=0)
    """Regularisation of h in standard deviations of the noise; 4 is the functional-mechanism paper's choice."""
    redraw: Literal["run", "step"] = "run"
    """When the noise is drawn: `step` averages it away; it is one reading of Algorithm 3, marked in the ledger."""
    draws: functional.Draws = "monomial"
    """What gets a draw of noise in the quadratic form: each monomial (Algorithm 3), or each ordered pair of weights."""


class GERAINetwork(GCNNetwork):
    """`GCNNetwork` with what checkpoints must carry besides as buffers."""

    noise_linear: Tensor
    noise_quadratic: Tensor
    """Of the run."""
    kept: Tensor
    """(d, d) projection of h on the directions that the last step's loss keeps."""


class GERAI(GCN):
    """Graph recommender with differentially private loss coefficients (functional mechanism, Algorithm 3)."""

    noise_key = "GERAI"
    network_class = GERAINetwork
    config: GERAIConfig
    insecurity = FUNCTIONAL
    figures = ("eigenvalues_trimmed",)
    """How many of a step."""
    network: GERAINetwork

    def build(self, data: TrainingData, rng: np.random.Generator) -> nn.Module:
        """The network of `GCN` at its initial weights, and the noise of this run."""
        network = super().build(data, rng)
        self._scale = functional.noise_scale(self.config.dimension, self.config.epsilon, len(data.users))
        for name, noise in zip(("noise_linear", "noise_quadratic"), self._draw(), strict=True):
            network.register_buffer(name, noise)
        network.register_buffer("kept", torch.eye(self.config.dimension))
        return network

    def predictive(self, pair: Tensor) -> Tensor:
        """q_uv within [0, 1] element-wise."""
        return pair.clamp(0.0, 1.0) if self.config.bound == "clip" else torch.tanh(torch.relu(pair))

    def objective(self, difference: Tensor) -> Tensor:
        """log 2 + linearᵀh + hᵀ quadratic h with the noisy `coefficients`."""
        linear, quadratic = self.coefficients(difference)
        h = self.network.project.weight[0]
        return math.log(2) + linear @ h + h @ quadratic @ h

    def coefficients(self, difference: Tensor) -> tuple[Tensor, Tensor]:
        """η − ½ mean q̄, (d,), and ⅛ mean(q̄ q̄ᵀ) + N, (d, d), regularised and trimmed to be bounded below in h.

        As in the functional-mechanism paper (VLDB 2012, §6): `ridge` times the noise's standard deviation is added
        to the diagonal, then directions of h with a negative eigenvalue are dropped from both terms, and from h where
        it scores. Which ones is a constant for the gradient. Without noise nothing is added or dropped.
        """
        if self.config.redraw == "step":
            self.network.noise_linear, self.network.noise_quadratic = self._draw()
        linear = self.network.noise_linear - 0.5 * difference.mean(0)
        quadratic = difference.T @ difference / (8 * len(difference)) + self.network.noise_quadratic
        quadratic = quadratic + self.config.ridge * math.sqrt(2) * self._scale * torch.eye(
            len(linear), device=linear.device
        )
        with torch.no_grad():
            values, vectors = torch.linalg.eigh(quadratic)
            rounding = torch.finfo(values.dtype).eps * len(linear) * values.abs().max()
            kept = vectors[:, values >= -rounding]
            self._noted["eigenvalues_trimmed"].append(len(linear) - kept.shape[1])
            projection = kept @ kept.T
        self.network.kept = projection
        return projection @ linear, projection @ quadratic @ projection

    @override
    def derived(self) -> dict[str, Tensor]:
        """What scoring needs; h without what the loss drops, which it says nothing about and leaves as it began."""
        scoring = super().derived()
        return scoring | {"project": self.network.kept @ scoring["project"]}

    def ledger(self) -> list[LedgerEntry]:
        """The claim of Lemma 4.4, and why it does not hold for what is released (docs/methods.md §9)."""
        averaged = (gap("averaged-noise"),) if self.config.redraw == "step" else ()
        infinite = math.isinf(self.config.epsilon)
        return [
            unbounded_entry(
                "interaction",
                "training-triple",
                "functional",
                because("loss-alone"),
                claimed=(None if infinite else self.config.epsilon, 0.0),
                gaps=(gap("other-parameters"), gap("triples-aggregated"), EPOCH, *averaged),
            )
        ]

    def _draw(self) -> tuple[Tensor, Tensor]:
        noises = functional.draw(self.config.dimension, self._scale, self.noise_rng, self.config.draws)
        linear, quadratic = (torch.from_numpy(part).float().to(self.device) for part in noises)
        return linear, quadratic
