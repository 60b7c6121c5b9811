"""What user-level private SGD spent: the ledger of `tasks.models.vae.userwise`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.models.vae.user_config import UserConfig
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.gaps import BY_EPOCHS, FLOATS, GIVEN_EPOCH, OWN_LIST, PLACE, large_delta
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import laplace
from tasks.privacy.mechanisms.user_sgd import LEVELS, Published, Rigorous, UserSGD
from tasks.privacy.terms import Explanation, KnownGap, because, gap


def plan_releases(config: UserConfig, n_users: int, budgets: NDArray[np.float64]) -> UserSGD | None:
    """How gradients are released, with noise for all planned epochs; None in public training. Reads no interactions.

    budgets: (n_users,) ε_k.
    """
    if config.privacy == "none":
        return None
    assert config.epsilon_max is not None
    assert config.delta is not None
    if config.accounting == "published":
        constant = config.clip_norm if config.privacy == "dpsgd" else None
        return Published(n_users, config.batch_size, config.epochs, budgets, config.delta, constant)
    assert config.clip_norm is not None
    return Rigorous(
        n_users, config.batch_size, config.epochs, budgets, config.epsilon_max, config.delta,
        config.clip_norm, config.quantile, _counts(config),
    )  # fmt: skip


def entries(
    config: UserConfig,
    private: UserSGD,
    budgets: NDArray[np.float64],
    metadata: Literal["nothing", "local", "shared"],
) -> list[LedgerEntry]:
    """Of a private run: interactions, and metadata where there are any.

    Args:
        budgets: (n_users,) ε_k.
        metadata: see `UserModel.metadata_in`.
    """
    assert config.epsilon_max is not None
    assert config.delta is not None
    noisy = not math.isinf(config.epsilon_max)
    events = (*private.events(), *_counts(config))
    spent = account(events, config.delta)
    reasons: tuple[Explanation, ...] = ()
    if not noisy:
        reasons = (because("infinite-budget"),)
    elif config.privacy == "dpsgd-optimal-clip":
        reasons = (because("clip-from-gradients"),)
    elif spent.epsilon is None:
        reasons = (because("not-accounted"),)
    epsilon = spent.epsilon
    if metadata == "shared":
        epsilon, reasons = None, (*reasons, because("means-of-metadata"))
    rigorous = isinstance(private, Rigorous)
    interactions = LedgerEntry(
        protects="interaction",
        unit="user" if metadata == "nothing" else "user-with-metadata",
        neighbouring="add-or-remove" if rigorous else "zero-out",
        mechanism="user-dpsgd" if rigorous else "personal-sgd",
        accounting=config.accounting,
        claimed_epsilon=config.epsilon_max if noisy else None,
        claimed_delta=config.delta,
        accounted_epsilon=epsilon,
        accounted_delta=config.delta,
        given=GIVEN_EPOCH,
        reasons=reasons,
        gaps=tuple(_gaps(config, private, budgets)),
        events=events,
    )
    if metadata == "nothing":
        return [interactions]
    mechanism = "within-gradients" if metadata == "local" else "prior-gaussian"
    gaps = () if epsilon is None else interactions.gaps
    changes = {"protects": "feature", "mechanism": mechanism, "gaps": gaps}
    return [interactions, interactions.model_copy(update=changes)]


def _gaps(config: UserConfig, private: UserSGD, budgets: NDArray[np.float64]) -> Iterator[KnownGap]:
    """What the guarantee does not say of the run."""
    assert config.delta is not None
    yield from (gap("claim-for-one-step"),) if config.accounting == "published" else ()
    yield from (*BY_EPOCHS, *OWN_LIST, FLOATS, *large_delta(config.delta, private.n_users))
    if isinstance(private, Rigorous):
        yield PLACE
        if (private.shares < 1).any():
            yield gap("budget-levels", levels=LEVELS, without=int((private.shares == 0).sum()))
    else:
        yield gap("budgets-public")
    if config.budgets == "uniform":
        assert config.epsilon_max is not None
        yield gap("uniform-budgets", epsilon_max=config.epsilon_max, mean=float(f"{budgets.mean():.2g}"))


def _counts(config: UserConfig) -> tuple[Event, ...]:
    """The noisy counts that biases start from, if any."""
    epsilon = config.counts_epsilon()
    return () if math.isinf(epsilon) else (laplace.counts_event(epsilon, config.contribution),)
