"""VAE and DP-VAE: a variational autoencoder of users' rows, with a prior of each user's own from metadata.

Source: Fang, Du and Wu, "Differentially private recommender system with variational autoencoders" (Knowledge-Based
Systems 248, 2022), after Mult-VAE (Liang et al., WWW 2018). Encoder I → h → (μ, log σ²) of 2K, decoder K → h → I, tanh
between linear layers, multinomial likelihood, β × KL divergence from the prior (Eq. 19).

**Prior** (Eq. 11): users have vectors m_kw in [0, 1]^K for each kind w of metadata. μ_k = Σ_w m_kw μ_w with μ_w the
mean over users, γ²_k = Σ_w (m_kw - μ_k)², both with N(0, σ_k²) in private training (`published`: σ_k for the
sensitivity 1 of one value). Rigorous accounting has no use for that noise, since nothing but clipped and noisy
gradients leaves a user; but μ_w would carry other users' metadata into them, so there it is 1/2, the middle of its
range.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from typing_extensions import override

from tasks.errors import ConfigurationError
from tasks.models.draws import Draws, normal
from tasks.models.training import draw_weights
from tasks.models.vae.autoencoder import AEConfig, RowNetwork
from tasks.models.vae.userwise import UserModel, UserNetwork
from tasks.privacy.mechanisms.optimal_clip import sigma
from tasks.privacy.noise import gaussian
from tasks.training_data import TrainingData

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

    def architecture(self, data: TrainingData, rng: np.random.Generator) -> UserNetwork:
        """See `UserModel.architecture`: Glorot."""
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
