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
from tasks.privacy.mechanisms.user_sgd import LEVELS, Published, Rigorous, UserSGD

PUBLISHED = (
    "The paper calibrates a user's noise for one step and one sample of that user; what is accounted here is "
    "everything that a user did, in all steps.",
)
CHOSEN = "In every step the clipping bound is chosen from the gradients without noise, so no finite ε follows."
SHARED = "The mean of every kind of metadata is taken over all users without noise and trains everyone's prior."


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
    reason = spent.reason
    if not noisy:
        reason = "An infinite budget trains without noise."
    elif config.privacy == "dpsgd-optimal-clip":
        reason = CHOSEN
    epsilon = spent.epsilon
    if metadata == "shared":
        epsilon, reason = None, f"{reason} {SHARED}".strip()
    data = "interactions" if metadata == "nothing" else "interactions and metadata"
    if isinstance(private, Rigorous):
        neighbouring, mechanism = f"all training {data} of one user added or removed", "user-level DP-SGD"
    else:
        neighbouring = f"all training {data} of one user taken out, the place in the batches kept"
        mechanism = "user-level SGD with noise of each user's budget"
    interactions = LedgerEntry(
        protects="interaction",
        neighbouring=neighbouring,
        mechanism=mechanism,
        accounting=config.accounting,
        claimed_epsilon=config.epsilon_max if noisy else None,
        claimed_delta=config.delta,
        accounted_epsilon=epsilon,
        accounted_delta=config.delta,
        given=GIVEN_EPOCH,
        reason=reason,
        gaps=tuple(_gaps(config, private, budgets)),
        events=events,
    )
    if metadata == "nothing":
        return [interactions]
    mechanism = "within the users' gradients" if metadata == "local" else "Gaussian noise on every user's prior"
    gaps = () if epsilon is None else interactions.gaps
    changes = {"protects": "feature", "mechanism": mechanism, "gaps": gaps}
    return [interactions, interactions.model_copy(update=changes)]


def _gaps(config: UserConfig, private: UserSGD, budgets: NDArray[np.float64]) -> Iterator[str]:
    """What the guarantee does not say of the run."""
    assert config.delta is not None
    yield from PUBLISHED if config.accounting == "published" else ()
    yield from (*BY_EPOCHS, OWN_LIST, FLOATS, *large_delta(config.delta, private.n_users))
    if isinstance(private, Rigorous):
        yield PLACE
        if (private.shares < 1).any():
            yield (
                f"Budgets ε_k are rounded down to {LEVELS} equal steps of ε_max and taken as public; the accounted ε "
                f"is of the largest. {int((private.shares == 0).sum())} users below the first step train nothing."
            )
    else:
        yield (
            "Batches partition the users, so an absent user is one whose place in the batches is kept. "
            "Budgets ε_k are taken as public."
        )
    if config.budgets == "uniform":
        yield f"ε_k is uniform in (0, {config.epsilon_max:g}]: the mean claim is {float(budgets.mean()):.2g}."


def _counts(config: UserConfig) -> tuple[Event, ...]:
    """The noisy counts that biases start from, if any."""
    epsilon = config.counts_epsilon()
    if math.isinf(epsilon):
        return ()
    noise = {"noise_parameter": epsilon / config.contribution, "sensitivity": float(config.contribution)}
    return (Event(kind="discrete-laplace", parameters=noise),)
