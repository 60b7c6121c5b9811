"""PrivSR, social recommendation with an untrusted recommender, a variant of it whose budget adds up, and its baselines.

Source: Meng et al., "Personalized privacy-preserving social recommendation" (AAAI 2018), Eqs. 5-9, Theorems 1 and 2,
Algorithm 1; docs/methods.md §5. Published accounting draws fresh noise in every iteration, each time of the whole
budget.

Rigorous accounting (ours). A user's vector carries all ratings of the user into everything that is computed with it. So
each user has two: w, trained on the user's published ratings, V and friends' w, in the unit ball; and u, trained on
all own ratings, which predicts the user's own ratings and never leaves. Submissions and friends' messages are computed
with w. Then those about published ratings, and those between friends, are functions of what is published and of V, and
need no noise. A sensitive rating enters through its own submission 2 (wᵀv - r) w alone, and another value of it changes
that by at most 2Δ‖w‖ ≤ 2Δ. With Gaussian noise of σ = 2Δ z on it, z found for all planned iterations, V and everything
computed from it is (ε, δ)-differentially private for the value of one sensitive rating. That there is such a rating is
not hidden: in the published system a message shows it, too.

Baselines ("Experimental evaluation") are the same factorisation with parts of it left out, so that nothing else
differs: MF (Koren, Bell and Volinsky, 2009) and SoReg (Ma et al., WSDM 2011, Eq. 2 of PrivSR's paper) get no sensitive
ratings, DPMF (Hua, Xia and Zhong, IJCAI 2015) trusts no one with any.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from tasks.models.social import ledgers
from tasks.models.social.factorisation import FactorisationConfig, SocialFactorisation
from tasks.models.social.messages import Noises
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import dpsgd
from tasks.privacy.mechanisms.shared_noise import SharedNoise
from tasks.privacy.terms import Observer


class SoRegConfig(FactorisationConfig):
    """Configuration of `SoReg`."""

    alpha: float = Field(ge=0, allow_inf_nan=False)
    """α, weight of the similarity of friends' vectors."""


class DPMFConfig(FactorisationConfig):
    """Configuration of `DPMF`."""

    epsilon: float = Field(gt=0)
    """ε of every rating in one iteration; infinity: no noise."""

    @model_validator(mode="after")
    def _bounded(self) -> DPMFConfig:
        if not self.projection and not math.isinf(self.epsilon):
            raise ValueError("projection: false is for runs without noise; sensitivities need the unit ball")
        return self


class MF(SocialFactorisation):
    """Published ratings alone, factorised by anyone who holds them."""

    noise_key = "MF"
    with_parties = False

    @override
    def sides(self, sensitive: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return ~sensitive, np.zeros_like(sensitive)

    @override
    def ledger(self) -> list[LedgerEntry]:
        return [ledgers.unused_entry()]


class SoReg(MF):
    """MF with friends' vectors drawn to each other."""

    noise_key = "SoReg"
    config: SoRegConfig
    uses_links = True

    @override
    def alpha(self) -> float:
        return self.config.alpha


class DPMF(SocialFactorisation):
    """All ratings submitted with the same noise, no friends."""

    noise_key = "DPMF"
    config: DPMFConfig

    @override
    def sides(self, sensitive: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return np.ones_like(sensitive), np.ones_like(sensitive)

    def noises(self) -> Noises:
        """Laplace(2Δ√K/ε) on every item's sum."""
        config = self.config
        if math.isinf(config.epsilon):
            return Noises()
        scale = 2 * config.rating_range * config.dimension**0.5 / config.epsilon
        return Noises(sensitive=SharedNoise("laplace", scale))

    @override
    def ledger(self) -> list[LedgerEntry]:
        config = self.config
        if math.isinf(config.epsilon):
            return [ledgers.without_noise("published")]
        sensitivity = 2 * config.rating_range * config.dimension**0.5
        return ledgers.published(config.epsilon, self.submissions(sensitivity), None)


class PrivSRConfig(FactorisationConfig):
    """Configuration of `PrivSR`."""

    alpha: float = Field(ge=0, allow_inf_nan=False)
    """α, weight of the similarity of friends' vectors in J, and of the noise in friends' messages."""
    epsilon: float = Field(gt=0)
    """ε: published, of one iteration; rigorous, of everything. Infinity: no noise."""
    accounting: Literal["published", "rigorous"]
    """Noise as published, or such that the accounted total over all iterations is ε."""
    beta: float | None = Field(default=None, gt=0, le=1)
    """β = ε_s/ε_n, budget of sensitive ratings relative to that of the others (published only)."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """δ of the total (rigorous only)."""
    towards: Literal["sums", "recommender"] | None = None
    """Who is held off (rigorous only): someone who sees the sums of submissions per item, as secure aggregation would
    give; or a recommender who sees each single submission."""
    colluders: int = Field(default=0, ge=0, exclude_if=lambda number: number == 0)
    """How many raters of an item may pool their shares of its noise (towards sums only): those of the others make up
    the noise of the sum."""
    sensitive_weight: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Noise that outweighs what submissions about sensitive ratings say is turned down, which costs no budget: in the
    recommender's steps they weigh this over the noise multiplier z, at most 1. None: 1 (rigorous only)."""

    @model_validator(mode="after")
    def _modes_fit(self) -> PrivSRConfig:
        needed, refused = ["beta"], ["delta", "towards", "sensitive_weight"]
        if self.accounting == "rigorous":
            needed, refused = ["delta", "towards"], ["beta"]
        if missing := [name for name in needed if getattr(self, name) is None]:
            raise ValueError(f"accounting: {self.accounting} needs {' and '.join(missing)}")
        if excess := [name for name in refused if getattr(self, name) is not None]:
            raise ValueError(f"{' and '.join(excess)}: not for accounting: {self.accounting}")
        if self.colluders and self.towards != "sums":
            raise ValueError("colluders: only for towards: sums; otherwise no noise is shared")
        if not self.projection and not math.isinf(self.epsilon):
            raise ValueError("projection: false is for runs without noise; sensitivities need the unit ball")
        return self

    @property
    @override
    def plans_epochs(self) -> bool:
        return self.accounting == "rigorous" and math.isfinite(self.epsilon)

    @property
    def public_epsilon(self) -> float:
        """ε_n = ε (1 + β)/β, of non-sensitive ratings (published)."""
        assert self.beta is not None
        return self.epsilon * (1 + self.beta) / self.beta

    @property
    def sensitive_epsilon(self) -> float:
        """ε_s = β ε_n = ε (1 + β), of sensitive ratings (published)."""
        assert self.beta is not None
        return self.epsilon * (1 + self.beta)


class PrivSR(SocialFactorisation):
    """See the module."""

    noise_key = "PrivSR"
    config: PrivSRConfig
    uses_links = True

    def sides(self, sensitive: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """All ratings, the sensitive ones as such."""
        return np.ones_like(sensitive), sensitive

    def noises(self) -> Noises:
        """Theorems 1 and 2: Laplace(2Δ√K/ε_s), Laplace(2Δ√K/ε_n), Laplace(2√K/ε); or the Gaussian of the module."""
        config = self.config
        if math.isinf(config.epsilon):
            return Noises()
        if config.accounting == "rigorous":
            sigma = 2 * config.rating_range * self.noise_multiplier()
            return Noises(SharedNoise("gaussian", sigma, config.colluders if config.towards == "sums" else math.inf))
        root = config.dimension**0.5
        return Noises(
            SharedNoise("laplace", 2 * config.rating_range * root / config.sensitive_epsilon),
            SharedNoise("laplace", 2 * config.rating_range * root / config.public_epsilon),
            SharedNoise("laplace", 2 * root / config.epsilon),
        )

    def noise_multiplier(self) -> float:
        """z of rigorous accounting: standard deviation over sensitivity, for all planned iterations."""
        assert self.config.delta is not None
        return dpsgd.noise_multiplier(self.config.epsilon, self.config.delta, 1.0, self.config.iterations)

    @override
    def alpha(self) -> float:
        return self.config.alpha

    @override
    def sensitive_weight(self) -> float:
        if self.config.sensitive_weight is None or math.isinf(self.config.epsilon):
            return 1.0
        return min(1.0, self.config.sensitive_weight / self.noise_multiplier())

    @override
    def splits_vectors(self) -> bool:
        return self.config.accounting == "rigorous"

    @override
    def ledger(self) -> list[LedgerEntry]:
        config = self.config
        if math.isinf(config.epsilon):
            return [ledgers.without_noise(config.accounting)]
        sensitivity = 2 * config.rating_range
        if config.accounting == "published":
            root = config.dimension**0.5
            submissions = self.submissions(sensitivity * root)
            received = self._users.friends.counts if self.epochs_done and self._users.friends else np.zeros(1, int)
            friends = ledgers.Messages(self.noises().friends, 2 * root, submissions.iterations, received)
            return ledgers.published(config.epsilon, submissions, friends)
        assert config.delta is not None
        towards: Observer = "recommender-of-submissions"
        if config.towards == "sums":
            towards = "co-raters" if config.colluders else "recommender-of-sums"
        submissions = self.submissions(sensitivity, config.iterations)
        return ledgers.rigorous(config.epsilon, config.delta, towards, max(config.colluders, 1), submissions)
