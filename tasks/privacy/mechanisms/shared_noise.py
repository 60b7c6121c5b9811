"""Noise that several senders add together: each adds a share, and the sum of all shares follows the law asked for.

Source: Kotz, Kozubowski and Podgorski (2012), cited as Lemma 1 by Meng et al. (AAAI 2018): with h ~ Exp(1) and
c ~ N(0, 1), b √(2h) c ~ Laplace(b). The receiver draws h once per sum and coordinate and tells the n senders, who each
draw c ~ N(0, 1/n). So towards the receiver, who knows h, the noise is Gaussian and not Laplace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.accounting.ledger import Event


@dataclass(frozen=True)
class SharedNoise:
    """One law of noise, for every coordinate of every sum.

    law: `laplace`, `gaussian`, or `none`.
    scale: Laplace scale, or standard deviation, of the sum.
    colluders: senders whose shares the receiver may know: those of all others still make up the noise of a sum. With
        infinity every sender adds the noise of a whole sum.
    """

    law: Literal["none", "laplace", "gaussian"] = "none"
    scale: float = 0.0
    colluders: float = 0

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
        """What the standard deviation is multiplied by for one of `senders` senders: 1/√n without colluders."""
        return (1 / np.sqrt(self._shares(senders))).astype(np.float32)

    def variance(self, senders: NDArray[np.integer]) -> NDArray[np.float64]:
        """Variance of one share of `senders`, over h as well (E h = 1)."""
        total = 2 * self.scale**2 if self.mixes else self.scale**2
        return total * self.share(senders).astype(np.float64) ** 2

    def event(
        self, sensitivity: float, senders: NDArray[np.integer], shares_known: float, count: int
    ) -> tuple[Event, int]:
        """What so many sums release of one sender, to an observer who knows the noise of so many others.

        Args:
            sensitivity: how far one sender moves a sum.
            senders: (n_sums,) of each sum, some of them not 0.
            shares_known: infinity for an observer who receives what each sender sends, and so needs no sum.

        Returns:
            The event of a sender who is hidden worst, and how many send with that one. Who knows h of Lemma 1 sees
            Gaussian noise of known variance, for which the accountant has no law.
        """
        sizes = np.unique(senders[senders > 0])
        left = (sizes - np.minimum(shares_known, sizes - 1)) / self._shares(sizes)
        worst = int(left.argmin())
        multiplier = self.scale / sensitivity * math.sqrt(left[worst])
        kind = "laplace-of-known-h" if self.mixes else "gaussian"
        return Event(kind=kind, parameters={"noise_multiplier": multiplier}, count=count), int(sizes[worst])

    def _shares(self, senders: NDArray[np.integer]) -> NDArray[np.float64]:
        """How many shares make up the noise of a sum."""
        shares: NDArray[np.float64] = np.maximum(senders - self.colluders, 1.0)
        return shares
