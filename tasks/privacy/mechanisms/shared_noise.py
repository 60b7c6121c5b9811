"""Noise that several senders add together: each adds a share, and the sum of all shares follows the law asked for.

Source: Kotz, Kozubowski and Podgorski (2012), cited as Lemma 1 by Meng et al. (AAAI 2018): with h ~ Exp(1) and
c ~ N(0, 1), b √(2h) c ~ Laplace(b). The receiver draws h once per sum and coordinate and tells the n senders, who each
draw c ~ N(0, 1/n). So towards the receiver, who knows h, the noise is Gaussian and not Laplace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise


@dataclass(frozen=True)
class SharedNoise:
    """One law of noise, for every coordinate of every sum.

    law: `laplace`, `gaussian`, or `none`.
    scale: Laplace scale, or standard deviation, of the sum.
    shared: False lets every single sender add the noise of a whole sum.
    """

    law: Literal["none", "laplace", "gaussian"] = "none"
    scale: float = 0.0
    shared: bool = True

    @property
    def mixes(self) -> bool:
        """Whether the receiver draws h of Lemma 1."""
        return self.law == "laplace"

    def mixing(self, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32] | None:
        """h of Lemma 1, fresh; None for a law that needs none."""
        if not self.mixes:
            return None
        # in double precision: a single-precision draw is exactly 0, which is no noise, once in some million
        return noise.exponential(rng, "h of a sum", shape).astype(np.float32)

    def standard_deviation(self, mixing: NDArray[np.float32] | None) -> NDArray[np.float32] | np.float32:
        """Standard deviation of a sum, given h (shape of h, or a single one for all)."""
        if mixing is not None:
            return np.float32(self.scale) * np.sqrt(2 * mixing)
        return np.float32(self.scale)

    def share(self, senders: NDArray[np.integer]) -> NDArray[np.float32]:
        """What the standard deviation is multiplied by for one of `senders` senders: 1/√n, or 1 if not shared."""
        if not self.shared:
            return np.ones(len(senders), np.float32)
        return (1 / np.sqrt(np.maximum(senders, 1))).astype(np.float32)  # type: ignore[no-any-return]  # numpy's types say Any here

    def variance(self, senders: NDArray[np.integer]) -> NDArray[np.float64]:
        """Variance of one share of `senders`, over h as well (E h = 1)."""
        total = 2 * self.scale**2 if self.mixes else self.scale**2
        return total * self.share(senders).astype(np.float64) ** 2
