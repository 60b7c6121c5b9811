"""What models have in common that learn by noisy steps on Poisson samples of users (user-level DP-SGD)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tasks.models.training import EpochModel
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import GIVEN_EPOCH, large_delta
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import dpsgd
from tasks.privacy.remarks import Explanation, KnownGap, because


class UserLevelModel(EpochModel):
    """A model trained with a budget for all planned steps, also those that validation saves.

    When validation ends training depends on private data.
    """

    has_secure_noise = True
    figures = ("clipped",)
    """Share of users whose gradient was clipped."""
    if TYPE_CHECKING:
        config: Any  # with epsilon, delta and clip_norm
    watch: Callable[[Sequence[Tensor], float], None] | None = None
    """Called in every step, before weights change, with what it releases, the noisy sums of clipped gradients, and with
    the probability at which a user is in it. For auditors."""

    def plan(self, n_users: int) -> float:
        """Plan the steps of all epochs; the noise multiplier that they need."""
        self._plan = dpsgd.Plan.from_epochs(n_users, self.config.batch_size, self.config.epochs)
        return self._plan.multiplier(self.config.epsilon, self.config.delta)

    def steps_entry(
        self,
        planned: tuple[float, float, int] | None,
        n_users: int,
        *,
        gaps: Iterable[KnownGap],
        remarks: tuple[Explanation, ...] = (),
    ) -> LedgerEntry:
        """What all planned steps release.

        Args:
            planned: noise multiplier, sampling probability and number of steps; None before training.
            remarks: on the accounting, where a finite ε follows.
        """
        epsilon, delta = self.config.epsilon, self.config.delta
        events: tuple[Event, ...] = ()
        about: dict[str, object] = {"claimed_epsilon": epsilon}
        if math.isinf(epsilon):
            events = (Event(kind="non-private"),)
            about = {"claimed_epsilon": None, "reasons": (because("infinite-budget"),)}
        elif planned is not None:
            events = (dpsgd.release(*planned),)
        return accounted_entry(
            events,
            delta,
            remarks,
            protects="interaction",
            unit="user",
            neighbouring="add-or-remove",
            mechanism="user-dpsgd",
            given=GIVEN_EPOCH,
            gaps=(*gaps, *(large_delta(delta, n_users) if planned is not None else ())),
            **about,
        )
