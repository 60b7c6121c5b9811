"""User-level private SGD: who is in a step, and how the gradients of its users become one that may be released.

Two ways, for the same gradients (`tasks.privacy.mechanisms.ghost`):

`Published` is Algorithm 3 of DP-VAE (Fang, Du and Wu, 2022): every epoch deals all users out into batches; each user's
gradient gets noise of the user's own budget ε_k, calibrated for one step; the bound S is a constant, or chosen from the
gradients of the step (`tasks.privacy.mechanisms.optimal_clip`).

`Rigorous` spends ε_max on all steps together: Poisson samples of users, noise calibrated by the accountant
(`tasks.privacy.mechanisms.dpsgd`), and S a public constant or a quantile of the norms that is itself estimated with
noise (Andrew et al., "Differentially private learning with adaptive clipping", NeurIPS 2021). A user with a smaller
budget ε_k is clipped to a smaller bound: the noise is the same for all, so a user who moves the sum less is hidden
better (Boenisch et al., "Have it your way", NeurIPS 2023: the variant they call Scale).

What they spend follows from the plan alone, before the first step: steps are never counted as they run, for where
validation ends training early, their number is itself read off private data. The number of users is public: a user who
is taken out keeps an empty row, so that sampling probability and divisor are the same for both neighbours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import override

from tasks.privacy import noise
from tasks.privacy.accounting.ledger import Event
from tasks.privacy.mechanisms import dpsgd, ghost, optimal_clip

LEVELS = 8
"""Smaller budgets are rounded down to so many equal steps of ε_max; below the first one a user is left out."""
QUANTILE_RATE = 0.2
"""How fast an adaptive bound follows its quantile (Andrew et al., section 3)."""
PIECE = 1 << 16
"""So many numbers get noise at a time."""
Gradient = dict[nn.Parameter, Tensor]


class UserSGD(nn.Module, ABC):
    """What both ways have in common."""

    def __init__(self, n_users: int, batch_size: int, epochs: int) -> None:
        super().__init__()
        self.n_users = n_users
        self.batch_size = batch_size
        self.epochs = epochs
        self.noted: list[tuple[float, float]] = []
        """Of every step since someone last looked: the bound, and the share of examples that it clipped."""

    @abstractmethod
    def batches(self, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        """The users of every step of an epoch; a step may have none."""

    @abstractmethod
    def release(
        self, outers: Sequence[ghost.Outers], users: NDArray[np.int64], examples: int, rng: np.random.Generator
    ) -> tuple[Gradient, float]:
        """What a step releases: for every trained parameter a noisy sum of clipped gradients; and what to divide it by.

        Args:
            outers: gradients of len(users) × `examples` examples, a user's after one another.
            users: (n,) ids of the users in the step.
            examples: J, examples of each user; a user's clipped gradients are averaged.
        """

    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """What the steps of all planned epochs release about any one user, for the accountant."""

    @abstractmethod
    def present_bound(self) -> float:
        """S of the next step."""

    def _sums(
        self, outers: Sequence[ghost.Outers], factors: Tensor, multiplier: float, bound: float, rng: np.random.Generator
    ) -> Gradient:
        """Σ factor × gradient with noise of multiplier × bound, for every parameter; a user adds `bound` at most."""
        sums = ghost.weighted_sums(outers, factors)
        for total in sums.values():
            _add_noise(total, multiplier, bound, rng)
        return sums

    def _note(self, bound: float, norms: Tensor) -> None:
        self.noted.append((bound, float((norms > bound).float().mean()) if len(norms) else 0.0))


class Published(UserSGD):
    """Algorithm 3 of DP-VAE."""

    def __init__(
        self,
        n_users: int,
        batch_size: int,
        epochs: int,
        sigmas: NDArray[np.float64],
        clip_norm: float | None,
    ) -> None:
        """sigmas: (n_users,) σ_k/S; clip_norm: S, or None to choose it in every step."""
        super().__init__(n_users, batch_size, epochs)
        self.clip_norm = clip_norm
        self.sigmas = sigmas

    @override
    def batches(self, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        order = noise.order(rng, "who-is-in-the-step", self.n_users)
        for start in range(0, self.n_users, self.batch_size):
            yield np.sort(order[start : start + self.batch_size])

    def release(
        self, outers: Sequence[ghost.Outers], users: NDArray[np.int64], examples: int, rng: np.random.Generator
    ) -> tuple[Gradient, float]:
        """See `UserSGD.release`. The users' own noise adds up to one draw, whose variance is the sum of theirs."""
        sigmas = self.sigmas[users]
        outers, norms = ghost.zero_non_finite(outers)
        bound = self.clip_norm
        if bound is None:
            n_parameters = sum(parameter.numel() for outer in outers for parameter in outer.parameters())
            cost = optimal_clip.noise_cost(sigmas, n_parameters)
            finite = (norms > 0).cpu().numpy()
            l1_norms = ghost.l1_norms(outers).double().cpu().numpy()[finite]
            bound = (
                optimal_clip.optimal_clip(norms.double().cpu().numpy()[finite], l1_norms, cost) if finite.any() else 0.0
            )
        noise_std = float(np.sqrt((sigmas**2).sum()))
        self._note(bound, norms)
        factors = dpsgd.clip_factors(norms.square(), bound) / examples if bound else torch.zeros_like(norms)
        return self._sums(outers, factors, noise_std, bound, rng), len(users)

    def present_bound(self) -> float:
        """See `UserSGD.present_bound`: that of the last step where every step chooses its own."""
        return self.clip_norm if self.clip_norm is not None else self.noted[-1][0] if self.noted else math.inf

    def events(self) -> tuple[Event, ...]:
        """See `UserSGD.events`. A constant bound only: a chosen one is read off the gradients without noise.

        A user is in one step of every epoch, and the noise of all users of that step covers each of them: at least
        that of the smallest batch, should the users with least noise be dealt into it.
        """
        smallest = self.n_users % self.batch_size or self.batch_size
        smallest_noise = float(np.sqrt((np.sort(self.sigmas)[:smallest] ** 2).sum()))
        if self.clip_norm is None or not smallest_noise:
            return (Event(kind="non-private"),)
        return (Event(kind="gaussian", parameters={"noise_multiplier": smallest_noise}, count=self.epochs),)


class Rigorous(UserSGD):
    """DP-SGD whose steps together stay within the budget. Buffer `bound`: the clipping bound S."""

    bound: Tensor

    def __init__(
        self,
        n_users: int,
        batch_size: int,
        epochs: int,
        budgets: NDArray[np.float64],
        epsilon_max: float,
        delta: float,
        clip_norm: float,
        quantile: float | None = None,
        composed_with: tuple[Event, ...] = (),
    ) -> None:
        """Calibrate the noise to ε_max; a user of a smaller budget is clipped at a share of S.

        Args:
            batch_size: expected number of users in a step.
            epochs: at most so many times the steps of `dpsgd.Plan` will be run.
            budgets: (n_users,) ε_k.
            epsilon_max: the budget that noise is calibrated to; infinity for no noise.
            clip_norm: S, or where it starts.
            quantile: share of the users whose norm shall be below S; None for a constant S.
            composed_with: what else is released about the same users within the same budget; budgets must then be
                equal.
        """
        super().__init__(n_users, batch_size, epochs)
        self.plan = dpsgd.Plan.from_epochs(n_users, batch_size, epochs)
        self.quantile = quantile
        self.register_buffer("bound", torch.tensor(float(clip_norm), dtype=torch.float64))
        self.multiplier = self.plan.multiplier(epsilon_max, delta, composed_with)
        self.shares = np.ones(n_users)
        """(n_users,) each user's bound as a share of S."""
        if self.multiplier:
            self.shares = self._shares(budgets, epsilon_max, delta)
        # Noise on the count of users below S: at least the multiplier, so that it never takes most of the budget.
        self.count_noise = max(self.plan.expected / 20, self.multiplier) if self.multiplier else 0.0
        self.gradient_multiplier = self.multiplier
        if quantile is not None and self.multiplier:
            self.gradient_multiplier = (self.multiplier**-2 - (2 * self.count_noise) ** -2) ** -0.5

    def _shares(self, budgets: NDArray[np.float64], epsilon_max: float, delta: float) -> NDArray[np.float64]:
        levels = np.floor(budgets / epsilon_max * LEVELS + 1e-12).astype(np.int64)
        shares = np.zeros(LEVELS + 1)
        for level in np.unique(levels[(levels > 0) & (levels < LEVELS)]):
            level_multiplier = self.plan.multiplier(epsilon_max * level / LEVELS, delta)
            shares[level] = self.multiplier / level_multiplier
        shares[LEVELS] = 1.0
        return shares[levels]

    @override
    def batches(self, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        for _ in range(self.plan.steps_per_epoch):
            yield dpsgd.poisson_sample(self.n_users, self.plan.probability, rng)

    def release(
        self, outers: Sequence[ghost.Outers], users: NDArray[np.int64], examples: int, rng: np.random.Generator
    ) -> tuple[Gradient, float]:
        """See `UserSGD.release`. Divided by the expected number of users: the actual one is no one's business.

        In the count a user adds 1/2 or -1/2, and 0 without interactions (whose gradient is 0), as a user who is not in
        the step: so one user's presence moves it by 1/2 at most.
        """
        (outers, norms), bound = ghost.zero_non_finite(outers), float(self.bound)
        shares = torch.from_numpy(np.repeat(self.shares[users], examples)).to(norms)
        self._note(bound, norms)
        factors = shares * dpsgd.clip_factors(norms.square(), bound) / examples
        released = self._sums(outers, factors, self.gradient_multiplier, bound, rng)
        if self.quantile is not None:
            below = shares * torch.where(norms > 0, (norms <= bound).to(norms.dtype) - 0.5, 0.0) / examples
            exact = np.asarray(float(below.sum()))
            count = float(noise.add_gaussian(rng, "count-of-small-norms", exact, self.count_noise, sensitivity=0.5))
            self.bound *= math.exp(-QUANTILE_RATE * (count / self.plan.expected + 0.5 - self.quantile))
        return released, self.plan.expected

    @override
    def present_bound(self) -> float:
        return float(self.bound)

    def events(self) -> tuple[Event, ...]:
        """See `UserSGD.events`, for a user of the largest budget. The count of norms is part of each step."""
        if not self.multiplier:
            return (Event(kind="non-private"),)
        return (dpsgd.release(self.multiplier, self.plan.probability, self.plan.steps),)


def _add_noise(total: Tensor, multiplier: float, bound: float, rng: np.random.Generator) -> None:
    """Add noise of multiplier × bound to every number, in place and a piece at a time.

    Noise of a whole layer, in double precision and then in single, would need more memory than the step itself.
    """
    if not multiplier:
        return
    for piece in total.view(-1).split(PIECE):  # type: ignore[no-untyped-call]  # torch has no types here
        piece.copy_(dpsgd.add_noise(piece, multiplier, bound, rng))


def check_budgets(budgets: NDArray[np.float64], n_users: int, epsilon_max: float) -> None:
    """Every user has a budget of their own in (0, ε_max]."""
    if len(budgets) != n_users:
        raise ValueError(f"{len(budgets)} budgets for {n_users} users: every user needs one")
    wrong = ~((budgets > 0) & (budgets <= epsilon_max))
    if wrong.any():
        user = int(wrong.argmax())
        raise ValueError(
            f"user {user} has a budget of {budgets[user]:g}, outside (0, {epsilon_max:g}] "
            f"({int(wrong.sum())} such users)"
        )
