"""How a recommender learns from users' whole rows, with what privacy, and what user-level private SGD then spent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from tasks.models.training import EpochConfig
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import BY_EPOCHS, FLOATS, GIVEN_EPOCH, OWN_LIST, PLACE, large_delta
from tasks.privacy.accounting.ledger import Event, LedgerEntry
from tasks.privacy.mechanisms import laplace, optimal_clip
from tasks.privacy.mechanisms.user_sgd import LEVELS, Published, Rigorous, UserSGD
from tasks.privacy.remarks import Explanation, KnownGap, because, gap


class UserConfig(EpochConfig):
    """Configuration of `UserModel`. Fields from `privacy` on mean nothing in public training."""

    batch_size: int = Field(ge=1)
    """Users in a step (rigorous accounting: expected number)."""
    optimiser: Literal["sgd", "adam"]
    """Which kind of steps."""
    values: Literal["binary", "ratings"]
    """What a user's row holds: 1 for every interaction, or its rating."""
    examples: int = Field(default=1, ge=1)
    """J: examples of a user in a step. One is the whole row; of several, each is a random half of it."""
    popularity: float | None = Field(default=None, gt=0, lt=1)
    """Share of the budget for noisy counts of the items, whose logarithms the items' biases begin at; None: 0."""
    contribution: int = Field(default=10, ge=1)
    """Interactions of a user in those counts, at most; all of them in public training."""
    privacy: Literal["none", "dpsgd", "dpsgd-optimal-clip"]
    """`dpsgd` clips at `clip_norm`, `dpsgd-optimal-clip` where the paper's objective is smallest in each step."""
    accounting: Literal["published", "rigorous"] = "published"
    """The paper's noise, or noise calibrated to the total of all steps."""
    calibration: Literal["step", "rounds", "none"] = "step"
    """Published noise: Algorithm 3's, for one step; Theorem 4's, for all rounds; or none, gradients being clipped."""
    neighbours: Literal["user", "example"] = "user"
    """What published noise hides: a user's gradient, or one of its J examples (Definitions 1 to 3), by S/J."""
    epsilon_max: float | None = Field(default=None, gt=0)
    """Largest budget of a user; infinity trains without noise."""
    budgets: Literal["equal", "uniform"] | tuple[float, ...] = "equal"
    """ε_k of all users: ε_max, drawn uniformly from (0, ε_max], or a list of one for each user."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """Failure probability of the guarantee, which means little unless it is well below 1 / number of users."""
    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """S, norm that no user's gradient exceeds, all parameters together; where it starts if `quantile` moves it."""
    quantile: float | None = Field(default=None, gt=0, lt=1)
    """Share of the users' gradients to be below S, which follows their noisy count (rigorous); None: S is constant."""
    private_epochs: int | None = Field(default=None, ge=1)
    """Takes the place of `epochs` in private training, whose noise is made for so many; None: `epochs`."""

    @property
    @override
    def plans_epochs(self) -> bool:
        return self.privacy != "none" and self.epsilon_max is not None and math.isfinite(self.epsilon_max)

    def counts_epsilon(self) -> float:
        """What is spent on the counts that `popularity` starts from; infinity where they are exact, or not there."""
        if self.privacy == "none" or self.popularity is None or self.epsilon_max is None:
            return math.inf
        return self.popularity * self.epsilon_max

    @model_validator(mode="before")
    @classmethod
    def _private_epochs(cls, raw: Any) -> Any:
        if not isinstance(raw, dict) or raw.get("privacy") == "none" or raw.get("private_epochs") is None:
            return raw
        return raw | {"epochs": raw["private_epochs"]}

    @model_validator(mode="after")
    def _private_parts_fit(self) -> Self:
        if self.privacy == "none":
            return self
        needed = ["epsilon_max", "delta", *(["clip_norm"] if self.privacy == "dpsgd" else [])]
        if missing := [name for name in needed if getattr(self, name) is None]:
            raise ValueError(f"privacy: {self.privacy} needs {' and '.join(missing)}")
        if self.privacy == "dpsgd-optimal-clip":
            if self.accounting == "rigorous":
                raise ValueError(
                    "dpsgd-optimal-clip reads gradients without noise, so it has no rigorous accounting; "
                    "use dpsgd, with quantile for a bound that adapts"
                )
            if self.examples > 1:
                raise ValueError("dpsgd-optimal-clip is for one example per user (examples: 1)")
        if self.accounting == "published" and (self.quantile is not None or self.popularity is not None):
            raise ValueError("quantile and popularity belong to rigorous accounting")
        if self.accounting == "rigorous" and (self.calibration, self.neighbours) != ("step", "user"):
            raise ValueError("calibration and neighbours belong to published accounting")
        if self.popularity is not None and self.budgets != "equal":
            raise ValueError("popularity needs equal budgets: its counts are one release for all users")
        return self


def plan_releases(config: UserConfig, n_users: int, budgets: NDArray[np.float64]) -> UserSGD | None:
    """How gradients are released, with noise for all planned epochs; None in public training. Reads no interactions.

    Args:
        budgets: (n_users,) ε_k.
    """
    if config.privacy == "none":
        return None
    assert config.epsilon_max is not None
    assert config.delta is not None
    if config.accounting == "published":
        constant = config.clip_norm if config.privacy == "dpsgd" else None
        return Published(n_users, config.batch_size, config.epochs, _sigmas(config, budgets), constant)
    assert config.clip_norm is not None
    return Rigorous(
        n_users, config.batch_size, config.epochs, budgets, config.epsilon_max, config.delta,
        config.clip_norm, config.quantile, _counts(config),
    )  # fmt: skip


def _sigmas(config: UserConfig, budgets: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_users,) σ_k/S of published noise."""
    assert config.delta is not None
    if config.calibration == "none":
        return np.zeros(len(budgets))
    if config.calibration == "rounds":
        rounds = config.epochs * math.ceil(len(budgets) / config.batch_size)
        share = config.batch_size / len(budgets)
        sigmas = optimal_clip.sigma_of_rounds(budgets, config.delta, share, rounds * config.examples)
    else:
        sigmas = optimal_clip.sigma(budgets, config.delta)
    return sigmas / (config.examples if config.neighbours == "example" else 1)


def entries(
    config: UserConfig,
    private: UserSGD,
    budgets: NDArray[np.float64],
    metadata: Literal["nothing", "local", "shared"],
) -> list[LedgerEntry]:
    """The ledger of a private run: an entry for interactions, and one for metadata where there are any.

    Args:
        budgets: (n_users,) ε_k.
        metadata: see `UserModel.metadata_in`.
    """
    assert config.epsilon_max is not None
    assert config.delta is not None
    noisy = not math.isinf(config.epsilon_max) and config.calibration != "none"
    rigorous = isinstance(private, Rigorous)
    why: dict[str, tuple[Explanation, ...]] = {}
    if not noisy:
        why = {"reasons": (because("infinite-budget" if math.isinf(config.epsilon_max) else "true-data"),)}
    elif config.privacy == "dpsgd-optimal-clip":
        why = {"reasons": (because("clip-from-gradients"),)}
    interactions = accounted_entry(
        (*private.events(), *_counts(config)),
        config.delta,
        protects="interaction",
        unit="user" if metadata == "nothing" else "user-with-metadata",
        neighbouring="add-or-remove" if rigorous else "zero-out",
        mechanism="user-dpsgd" if rigorous else "personal-sgd",
        accounting=config.accounting,
        claimed_epsilon=config.epsilon_max if noisy else None,
        given=GIVEN_EPOCH,
        gaps=tuple(_gaps(config, private, budgets)),
        **why,
    )
    if metadata == "shared":
        shared = (*interactions.reasons, because("means-of-metadata"))
        interactions = interactions.model_copy(update={"accounted_epsilon": None, "reasons": shared})
    if metadata == "nothing":
        return [interactions]
    mechanism = "within-gradients" if metadata == "local" else "prior-gaussian"
    gaps = () if interactions.accounted_epsilon is None else interactions.gaps
    changes = {"protects": "feature", "mechanism": mechanism, "gaps": gaps}
    return [interactions, interactions.model_copy(update=changes)]


def _gaps(config: UserConfig, private: UserSGD, budgets: NDArray[np.float64]) -> Iterator[KnownGap]:
    assert config.delta is not None
    if config.accounting == "published" and config.calibration == "step":
        yield gap("claim-for-one-step")
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
    """What the noisy counts of `popularity` release; nothing where there are none."""
    epsilon = config.counts_epsilon()
    return () if math.isinf(epsilon) else (laplace.counts_event(epsilon, config.contribution),)
