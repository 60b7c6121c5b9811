"""How a recommender learns from users' whole rows, and with what privacy."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from tasks.models.training import EpochConfig


class UserConfig(EpochConfig):
    """Configuration of `UserModel`. All that begins at `privacy` means nothing without privacy, but `popularity`."""

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
    """Interactions of a user in those counts, at most."""
    privacy: Literal["none", "dpsgd", "dpsgd-optimal-clip"]
    """`dpsgd` clips at `clip_norm`, `dpsgd-optimal-clip` where the paper's objective is smallest in each step."""
    accounting: Literal["published", "rigorous"] = "published"
    """The paper's noise, or noise calibrated to the total of all steps."""
    epsilon_max: float | None = Field(default=None, gt=0)
    """Largest budget of a user; infinity trains without noise."""
    budgets: Literal["equal", "uniform"] | tuple[float, ...] = "equal"
    """ε_k of all users: ε_max, drawn uniformly from (0, ε_max], or a list of one for each user."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """Failure probability of the guarantee; more than one in the number of users means little."""
    clip_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """S, norm that no user's gradient exceeds, all parameters together; where it starts if `quantile` moves it."""
    quantile: float | None = Field(default=None, gt=0, lt=1)
    """Share of the users' gradients that shall be below S, followed with noise (rigorous only); None: S is constant."""
    private_epochs: int | None = Field(default=None, ge=1)
    """With privacy, `epochs`: its noise is made for so many. None: `epochs` as it stands."""

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
    def _private_epochs(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("privacy") == "none" or given.get("private_epochs") is None:
            return given
        return given | {"epochs": given["private_epochs"]}

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
        if self.popularity is not None and self.budgets != "equal":
            raise ValueError("popularity needs equal budgets: its counts are one release for all users")
        return self
