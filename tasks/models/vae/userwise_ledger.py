"""What user-level private SGD spent: the ledger of `tasks.models.vae.userwise`."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.models.vae.user_config import UserConfig
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms.user_sgd import LEVELS, Published, Rigorous, UserSGD

COMMON = (
    "Validation interactions choose the epoch without noise: the budget does not cover them, and nothing does.",
    "The numbers of users and items are taken as public.",
    "A user's own list is computed from that user's own row and leaves out what the user has rated, so the guarantee "
    "is towards everyone else (joint differential privacy), not towards somebody who sees that list.",
    "Norms and noise are computed in floating point.",
)
PUBLISHED = (
    "The paper calibrates a user's noise for one step and one sample of that user; what is accounted here is "
    "everything that a user did, in all steps.",
)
CHOSEN = "In every step the clipping bound is chosen from the gradients without noise, so no finite ε follows."
SHARED = "The mean of every kind of metadata is taken over all users without noise and trains everyone's prior."


def planned(config: UserConfig, n_users: int, budgets: NDArray[np.float64]) -> UserSGD | None:
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
    gaps = [*(PUBLISHED if config.accounting == "published" else ()), *COMMON]
    epsilon = spent.epsilon
    if metadata == "shared":
        epsilon, reason = None, f"{reason} {SHARED}".strip()
    if config.delta > 1 / private.n_users:
        gaps.append(
            f"δ = {config.delta:g} is more than one in {private.n_users} users: publishing everything about one random "
            "user would meet it, too."
        )
    if isinstance(private, Rigorous):
        left_out = int((private.shares == 0).sum())
        if (private.shares < 1).any():
            gaps.append(
                f"Budgets ε_k are rounded down to {LEVELS} equal steps of ε_max and taken as public; the accounted ε "
                f"is of the largest. {left_out} users below the first step train nothing."
            )
    else:
        gaps.append(
            "Users are dealt out into batches, so an absent user is one whose place in the batches is kept. "
            "Budgets ε_k are taken as public."
        )
    if config.budgets == "uniform":
        gaps.append(f"ε_k is uniform in (0, {config.epsilon_max:g}]: the mean claim is {float(budgets.mean()):.2g}.")
    common = {
        "accounting": config.accounting,
        "claimed_epsilon": config.epsilon_max if noisy else None,
        "claimed_delta": config.delta,
        "accounted_delta": config.delta,
        "accounted_epsilon": epsilon,
        "reason": reason,
    }
    data = "interactions" if metadata == "nothing" else "interactions and metadata"
    if isinstance(private, Rigorous):
        neighbouring, mechanism = f"all training {data} of one user added or removed", "user-level DP-SGD"
    else:
        neighbouring = f"all training {data} of one user taken out, the place in the batches kept"
        mechanism = "user-level SGD with noise of each user's budget"
    found = [
        LedgerEntry.model_validate(
            common
            | {"protects": "interaction", "neighbouring": neighbouring, "mechanism": mechanism}
            | {"gaps": tuple(gaps), "events": events}
        )
    ]
    if metadata != "nothing":
        mechanism = "within the users' gradients" if metadata == "local" else "Gaussian noise on every user's prior"
        found.append(
            LedgerEntry.model_validate(
                common | {"protects": "feature", "neighbouring": neighbouring, "mechanism": mechanism, "events": events}
            )
        )
    return found


def _counts(config: UserConfig) -> tuple[Event, ...]:
    """The noisy counts that biases start from, if any."""
    epsilon = config.counts_epsilon()
    if math.isinf(epsilon):
        return ()
    noise = {"noise_parameter": epsilon / config.contribution, "sensitivity": float(config.contribution)}
    return (Event(kind="discrete-laplace", parameters=noise),)
