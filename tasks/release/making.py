"""Makes a release: each block is a sum over users with Gaussian noise, and what follows a block is decided by it alone.

Shares ρ of 1/σ² add up to 1, whatever a block before decided, so all blocks together are one Gaussian release of noise
multiplier σ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.privacy import noise
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event
from tasks.release import rule, sums
from tasks.release.sums import Rows

SHARE_OF_USERS = 0.001
"""Of the budget, for the number of users where that is not public."""
FEWEST_USERS = 10.0
"""A smaller noisy number of users is taken for this one."""
Statistic = Literal["users", "counts", "pairs", "utility"]


@dataclass(frozen=True)
class Block:
    """One Gaussian release of a sum over users."""

    statistic: Statistic
    numbers: int
    """How many are released."""
    sensitivity: float
    """L2 distance by which one user, added or removed, moves them at most."""
    scale: float
    """Standard deviation of the noise on each."""

    @property
    def event(self) -> Event:
        """For the accountant."""
        return Event(kind="gaussian", parameters={"noise_multiplier": self.scale / self.sensitivity})


@dataclass
class Budget:
    """What is to be spent, and the blocks that it went to.

    sigma: noise multiplier of one Gaussian release that spends all of it; left: share of 1/σ² that is not yet spent.
    """

    epsilon: float
    delta: float
    rng: np.random.Generator = field(repr=False)
    blocks: list[Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sigma = _multiplier(self.epsilon, self.delta)
        self.left = 1.0

    def spend(
        self, statistic: Statistic, value: NDArray[np.float64], sensitivity: float, share: float
    ) -> NDArray[np.float64]:
        """A sum with the noise that a share of the budget affords; the block is recorded before noise is drawn.

        Args:
            value: the exact sum, of any shape.
            sensitivity: L2 distance by which one user, added or removed, moves it at most.
            share: ρ, of the whole budget.

        Raises:
            ValueError: the share is not positive, or more than what is left.
        """
        if not 0 < share <= self.left + 1e-12:
            raise ValueError(f"a share must be above 0 and at most what is left, {self.left:.4g} (is {share:.4g})")
        self.left -= share
        scale = self.sigma * sensitivity / math.sqrt(share)
        self.blocks.append(Block(statistic, value.size, sensitivity, scale))
        return noise.add_gaussian(self.rng, statistic, value, scale, sensitivity=sensitivity)

    def spent(self, *statistics: Statistic) -> float:
        """ε at δ of all blocks, or of these, composed as Gaussian releases, which is exact.

        Raises:
            ValueError: there is no finite one.
        """
        blocks = [block for block in self.blocks if not statistics or block.statistic in statistics]
        epsilon = account([block.event for block in blocks], self.delta).epsilon
        if epsilon is None:
            raise ValueError("blocks without a finite ε")
        return epsilon


@cache
def _multiplier(epsilon: float, delta: float) -> float:
    from dp_accounting import get_sigma_gaussian

    return float(get_sigma_gaussian(epsilon, delta))


@dataclass(frozen=True)
class Release:
    """What was released of users' rows, with the standard deviations of its noise; models are made of it alone."""

    counts: NDArray[np.float64]
    """(n_items,) noisy."""
    head: NDArray[np.int64]
    """(H,) items with pairs, in the order of the catalogue; none where there are counts alone."""
    pairs: NDArray[np.float64]
    """(H (H - 1) / 2,) noisy, of i < j, row by row."""
    counts_scale: float
    pairs_scale: float
    """1 where there are no pairs."""
    n_users: float
    """Public, or released with noise."""


def make(rows: Rows, budget: Budget, *, users: int | None, kept: float = 0.0, like: Release | None = None) -> Release:
    """Spend a budget on counts and pairs.

    Args:
        rows: users x catalogue, without what is held out.
        budget: its shares are spent, and its blocks recorded.
        users: the number of users if that is public; None: it is released.
        kept: share of the budget that is left for later blocks.
        like: for an audit, the release whose shares and number of items with pairs are used; None: those of the rule.

    Raises:
        ValueError: as `Budget.spend`.
    """
    n = float(users) if users is not None else _users(rows, budget)
    if like is not None:
        n = like.n_users
    available = budget.left - kept
    share = available * rule.share_of_counts(n, budget.sigma)
    sensitivity = sums.counts_sensitivity(rule.COUNTED)
    exact = sums.counts(rows, rule.COUNTED)
    counts = budget.spend("counts", exact, sensitivity, share)
    scale, rho = budget.blocks[-1].scale, (share, available - share)
    size = rule.head_size(counts, n, budget.sigma, rho) if like is None else len(like.head)
    if not size:
        again = budget.spend("counts", exact, sensitivity, rho[1])
        counts = (rho[0] * counts + rho[1] * again) / available
        scale = budget.sigma * sensitivity / math.sqrt(available)
        return Release(counts, np.empty(0, np.int64), np.empty(0), scale, 1.0, n)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:size]).astype(np.int64)
    upper = budget.spend(
        "pairs", sums.pairs(rows[:, chosen].tocsr(), rule.PAIRED), sums.pairs_sensitivity(rule.PAIRED), rho[1]
    )
    return Release(counts, chosen, upper, scale, budget.blocks[-1].scale, n)


def counts_alone(rows: Rows, budget: Budget) -> Release:
    """Spend all that is left of a budget on counts; the number of users is public."""
    sensitivity = sums.counts_sensitivity(rule.COUNTED)
    counts = budget.spend("counts", sums.counts(rows, rule.COUNTED), sensitivity, budget.left)
    return Release(counts, np.empty(0, np.int64), np.empty(0), budget.blocks[-1].scale, 1.0, float(rows.shape[0]))


def _users(rows: Rows, budget: Budget) -> float:
    n = budget.spend("users", np.array([float(rows.shape[0])]), 1.0, SHARE_OF_USERS)
    return max(float(n[0]), FEWEST_USERS)
