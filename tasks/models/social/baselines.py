"""What PrivSR is compared with: MF and SoReg, which get no sensitive ratings, and DPMF, which trusts no one with any.

Source: Meng et al. (AAAI 2018), "Experimental evaluation"; MF: Koren, Bell and Volinsky (2009); SoReg: Ma et al. (WSDM
2011), Eq. 2 of PrivSR's paper; DPMF: Hua, Xia and Zhong (IJCAI 2015). All three are PrivSR's own factorisation with
parts of it left out, so that nothing else differs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from tasks.models.social import ledgers
from tasks.models.social.factorisation import FactorisationConfig, SocialFactorisation
from tasks.models.social.messages import Noises
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms.shared_noise import SharedNoise


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

    def sides(self, sensitive: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Non-sensitive ratings, none of them as sensitive."""
        return ~sensitive, np.zeros_like(sensitive)

    def ledger(self) -> list[LedgerEntry]:
        """Sensitive ratings are not used."""
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

    def sides(self, sensitive: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """All ratings, all as sensitive."""
        return np.ones_like(sensitive), np.ones_like(sensitive)

    def noises(self) -> Noises:
        """Laplace(2Δ√K/ε) on every item's sum."""
        config = self.config
        if math.isinf(config.epsilon):
            return Noises()
        scale = 2 * config.rating_range * config.dimension**0.5 / config.epsilon
        return Noises(sensitive=SharedNoise("laplace", scale))

    def ledger(self) -> list[LedgerEntry]:
        """See `tasks.models.social.ledgers`."""
        config = self.config
        if math.isinf(config.epsilon):
            return [ledgers.without_noise("published")]
        sensitivity = 2 * config.rating_range * config.dimension**0.5
        return ledgers.published(config.epsilon, self.submissions(sensitivity), None)
