"""Autoencoders of users' rows, with the multinomial likelihood: AE, VAE, and DP-VAE with priors from users' metadata.

**AE**: one hidden layer, tanh; the autoencoder of DP-VAE's Tables 8 and 11 (Fang, Du and Wu, 2022), of whose structure
the paper gives the latent dimension alone; as Mult-DAE (Liang et al., WWW 2018) with one layer.

**VAE**, and DP-VAE where training is private: Fang, Du and Wu, "Differentially private recommender system with
variational autoencoders" (Knowledge-Based Systems 248, 2022), after Mult-VAE (Liang et al.). Encoder I → h → (μ,
log σ²) of 2K, decoder K → h → I, tanh between linear layers, β × KL divergence from the prior (Eq. 19).

**Prior** (Eq. 11): users have vectors m_kw in [0, 1]^K for each kind w of metadata. μ_k = Σ_w m_kw μ_w with μ_w the
mean over users, γ²_k = Σ_w (m_kw - μ_k)², both with N(0, σ_k²) in private training (`published`: σ_k for the
sensitivity 1 of one value). Rigorous accounting has no use for that noise, since nothing but clipped and noisy
gradients leaves a user; but μ_w would carry other users' metadata into them, so there it is 1/2, the middle of its
range.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn
from typing_extensions import override

from tasks.core.errors import ConfigurationError
from tasks.core.training_data import TrainingData
from tasks.models.draws import Draws, normal
from tasks.models.training import draw_weights
from tasks.models.vae.user_config import UserConfig
from tasks.models.vae.userwise import UserModel, UserNetwork
from tasks.privacy.mechanisms import ghost
from tasks.privacy.mechanisms.optimal_clip import sigma
from tasks.privacy.noise import gaussian


class AEConfig(UserConfig):
    """Configuration of `AE`."""

    dimension: int = Field(ge=1)
    """K, length of the code."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of a row's entries that are hidden from the encoder in training."""
    frozen_encoder: bool = False
    """Whether the layer that reads rows stays at its initial, random weights: half as many values to add noise to."""
    tied: bool = False
    """Whether the last layer's weights are those of the layer that reads rows, transposed: half as many, too."""

    @model_validator(mode="after")
    def _tied_weights_are_learnt(self) -> Self:
        if self.tied and self.frozen_encoder:
            raise ValueError("tied and frozen_encoder: the last layer would stay random, too; say one of them")
        if self.tied and self.privacy == "dpsgd-optimal-clip":
            raise ValueError("tied: dpsgd-optimal-clip needs L1 norms of gradients, which tied weights do not give")
        return self


class RowNetwork(UserNetwork):
    """What reads rows and writes multinomial shares. `reader` is the first layer."""

    reader: nn.Linear

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def writer(self, *, tied: bool) -> nn.Linear | ghost.Transposed:
        """The last layer, from as many numbers as `reader` passes on to the items."""
        reader = self.reader
        return ghost.Transposed(reader) if tied else nn.Linear(reader.out_features, reader.in_features)

    def read(self, rows: Tensor, rng: Draws | None) -> Tensor:
        """(n, width of `reader`) rows, scaled to norm 1 (zeros stay), after the first layer and tanh."""
        inputs = rows / rows.norm(dim=1, keepdim=True).clamp(min=1.0)
        if rng is not None and self.dropout:
            kept = torch.from_numpy(rng.random(tuple(rows.shape)) >= self.dropout).to(rows.device)
            inputs = inputs * kept / (1 - self.dropout)
        return torch.tanh(self.reader(inputs))

    def mismatch(self, rows: Tensor, logits: Tensor) -> Tensor:
        """(n,) negative multinomial log-likelihoods of the rows, up to a constant."""
        return -(rows * torch.log_softmax(logits, 1)).sum(1)


class AENetwork(RowNetwork):
    """h = tanh(A x/‖x‖ + a), logits B h + b; tied: B = Aᵀ."""

    def __init__(self, n_items: int, config: AEConfig) -> None:
        super().__init__(config.dropout)
        self.reader = nn.Linear(n_items, config.dimension)
        self.items = self.writer(tied=config.tied)

    @override
    def codes(self, rows: Tensor, users: Tensor, rng: Draws | None) -> tuple[Tensor, Tensor]:
        return self.read(rows, rng), rows.new_zeros(len(rows))


class AE(UserModel):
    """Autoencoder recommender."""

    noise_key = "AE"
    config: AEConfig

    @override
    def architecture(self, data: TrainingData, rng: np.random.Generator) -> UserNetwork:
        network = AENetwork(data.n_items, self.config)
        draw_weights(network, rng)
        network.reader.requires_grad_(not self.config.frozen_encoder)
        return network


SMALLEST = 0.01
"""Variances of priors are at least this: noise may make them negative."""
LARGEST = 20.0
"""Logarithms of posterior variances stay within ±this, so that no noise on weights makes a loss infinite."""


class VAEConfig(AEConfig):
    """Configuration of `VAE`."""

    hidden: int = Field(ge=1)
    """h, width of the layers between items and code."""
    beta: float = Field(ge=0)
    """β, weight of the divergence from the prior."""
    prior: Literal["standard", "user"]
    """N(0, 1), or each user's own from vectors of their metadata (an experiment whose features are `words/...`)."""


class VAENetwork(RowNetwork):
    """See the module. Buffers: the users' priors, (n_users, K) or one row for all."""

    means: Tensor
    variances: Tensor

    def __init__(self, n_items: int, config: VAEConfig) -> None:
        super().__init__(config.dropout)
        self.beta = config.beta
        self.reader = nn.Linear(n_items, config.hidden)
        self.posterior = nn.Linear(config.hidden, 2 * config.dimension)
        self.decoder = nn.Linear(config.dimension, config.hidden)
        self.items = self.writer(tied=config.tied)
        self.register_buffer("means", torch.zeros(1, config.dimension))
        self.register_buffer("variances", torch.ones(1, config.dimension))

    def codes(self, rows: Tensor, users: Tensor, rng: Draws | None) -> tuple[Tensor, Tensor]:
        """See `UserNetwork.codes`. Scoring decodes the posterior's mean."""
        mean, log_variance = self.posterior(self.read(rows, rng)).chunk(2, 1)
        log_variance = log_variance.clamp(-LARGEST, LARGEST)
        code = mean
        if rng is not None:
            noises = torch.from_numpy(normal(rng, tuple(mean.shape))).to(mean)
            code = mean + noises * (log_variance / 2).exp()
        prior = users if len(self.means) > 1 else torch.zeros_like(users)
        divergence = gaussian_divergence(mean, log_variance, self.means[prior], self.variances[prior])
        return torch.tanh(self.decoder(code)), self.beta * divergence


class VAE(UserModel):
    """Variational autoencoder recommender; DP-VAE where training is private."""

    noise_key = "VAE"
    config: VAEConfig
    uses_features = True
    """Vectors of the users' metadata, (n_users, n_kinds × K) in [0, 1], a kind after another; see `VAEConfig.prior`."""

    @override
    def architecture(self, data: TrainingData, rng: np.random.Generator) -> UserNetwork:
        network = VAENetwork(data.n_items, self.config)
        draw_weights(network, rng)
        network.reader.requires_grad_(not self.config.frozen_encoder)
        if self.config.prior == "user":
            vectors = metadata_vectors(data.features, self.config.dimension)
            means, variances = self._priors(vectors)
            network.means, network.variances = (
                torch.from_numpy(np.ascontiguousarray(part, np.float32)) for part in (means, variances)
            )
        return network

    @override
    def reads_features(self) -> bool:
        return self.config.prior == "user"

    @override
    def metadata_in(self) -> Literal["nothing", "local", "shared"]:
        if self.config.prior == "standard":
            return "nothing"
        return "local" if self.config.accounting == "rigorous" else "shared"

    def _priors(self, vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        config = self.config
        if config.privacy != "none" and config.accounting == "rigorous":
            return user_priors(vectors, np.full(vectors.shape[1:], 0.5))
        if config.privacy == "none":
            return user_priors(vectors, vectors.mean(0))
        assert config.delta is not None
        return user_priors(vectors, vectors.mean(0), sigma(self._budgets, config.delta), self.noise_rng)


def metadata_vectors(features: NDArray[np.float32] | None, dimension: int) -> NDArray[np.float64]:
    """m: (n_users, n_kinds, K) from columns (n_users, n_kinds × K).

    Raises:
        ConfigurationError: there are no features, they do not divide into vectors of K, or leave [0, 1].
    """
    if features is None or not features.shape[1]:
        raise ConfigurationError("prior: user needs vectors of the users' metadata, and these data have none")
    if features.shape[1] % dimension:
        raise ConfigurationError(
            f"dimension: {features.shape[1]} columns of metadata are no whole number of vectors of {dimension}; "
            "say features: words/NAME, with the same dimension"
        )
    if not ((features >= 0) & (features <= 1)).all():
        raise ConfigurationError("features: vectors of metadata must lie in [0, 1]; say features: words/NAME")
    return features.astype(np.float64).reshape(len(features), -1, dimension)


def user_priors(
    vectors: NDArray[np.float64],
    means: NDArray[np.float64],
    noise: NDArray[np.float64] | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """μ_k and γ²_k of all users (Eq. 11): both (n_users, K), γ² at least `SMALLEST`.

    Args:
        vectors: m, (n_users, n_kinds, K).
        means: μ_w, (n_kinds, K).
        noise: (n_users,) σ_k; None for none.
        rng: of the noise.
    """
    centre = np.einsum("kwj,wj->kj", vectors, means)
    if noise is not None and rng is not None:
        centre = centre + gaussian(rng, "prior means", noise[:, None], centre.shape)
    variance = np.square(vectors - centre[:, None]).sum(1)
    if noise is not None and rng is not None:
        variance = variance + gaussian(rng, "prior variances", noise[:, None], variance.shape)
    return centre, np.maximum(variance, SMALLEST)


def gaussian_divergence(mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_variance: Tensor) -> Tensor:
    """(n,) KL(N(mean, e^log_variance) ‖ N(prior_mean, prior_variance)) of independent coordinates, all (n, K)."""
    gap = (log_variance.exp() + (mean - prior_mean).square()) / prior_variance
    return 0.5 * (gap - 1 + prior_variance.log() - log_variance).sum(1)
