"""Ratings predicted by means: the yardsticks that every factorisation, private or not, must beat.

Deviations from the mean μ of published ratings: an item's is the mean of r - μ over its published ratings, a user's the
mean of r - μ - (item's) over all of the user's own. Both are damped: d + n in place of n in the denominator. A user
computes the own deviation alone, at home, and it never leaves.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, Progress, RatingPredictor
from tasks.models.social.ratings import Scale, checked_ratings
from tasks.privacy import noise
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import DRAWN, ONCE, OWN_FILE, UNUSED
from tasks.privacy.accounting.ledger import Event, LedgerEntry, untouched_entry
from tasks.privacy.remarks import because, gap

USER_LOCAL = (gap("own-predictions-means"), OWN_FILE)


class RatingMeansConfig(ModelConfig):
    """Configuration of `RatingMeans`."""

    of: Literal["global", "user", "item", "bias"]
    """μ; μ and the user's deviation; μ and the item's; μ and both."""
    damping: float = Field(ge=0, allow_inf_nan=False)
    """d, ratings without deviation that every user and item has besides its own."""
    scale: Scale
    """Lowest and highest rating that there can be."""


class PrivateRatingMeansConfig(RatingMeansConfig):
    """Configuration of `PrivateRatingMeans`."""

    epsilon: float = Field(gt=0, allow_inf_nan=False)
    """Budget of one sensitive rating's value."""
    variance: float = Field(gt=0, allow_inf_nan=False)
    """Assumed variance of r - μ within an item, by which noisy sums are weighed against published ratings."""


class RatingMeans(RatingPredictor):
    """See the module.

    mean: () float32 μ; user_offsets: (n_users,), item_offsets: (n_items,) float32, 0 where `of` has none.
    """

    config: RatingMeansConfig
    kept_tensors: ClassVar[tuple[str, ...]] = ("mean", "user_offsets", "item_offsets")
    own_tensors: ClassVar[tuple[str, ...]] = ("user_offsets",)
    mean: Tensor
    user_offsets: Tensor
    item_offsets: Tensor

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        config = self.config
        values, sensitive = checked_ratings(data, config.scale)
        ratings = values.astype(np.float64)
        public = ratings[~sensitive]
        mean = public.mean() if len(public) else sum(config.scale) / 2
        users, items = np.zeros(data.n_users), np.zeros(data.n_items)
        if config.of in ("item", "bias"):
            items = self.offsets(data, ratings - mean, rng)
        if config.of in ("user", "bias"):
            left = np.bincount(data.users, ratings - mean - items[data.items], data.n_users)
            users = _ratio(left, np.bincount(data.users, minlength=data.n_users) + config.damping)
        self.mean = torch.tensor(mean, dtype=torch.float32)
        self.user_offsets, self.item_offsets = (torch.from_numpy(part.astype(np.float32)) for part in (users, items))
        return self

    def offsets(
        self, data: TrainingData, deviations: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Items' deviations from published ratings: (n_items,).

        Args:
            deviations: (n_interactions,) r - μ.
        """
        del rng
        assert data.sensitive is not None
        public = ~data.sensitive
        sums = np.bincount(data.items[public], deviations[public], data.n_items)
        return _ratio(sums, np.bincount(data.items[public], minlength=data.n_items) + self.config.damping)

    @override
    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> Tensor:
        rows, columns = (torch.from_numpy(ids.astype(np.int64)) for ids in (users, items))
        return self.mean + self.user_offsets[rows] + self.item_offsets[columns]

    def ledger(self) -> list[LedgerEntry]:
        """Nothing that others see depends on a sensitive rating."""
        return [
            untouched_entry(
                "rating",
                "sensitive-rating",
                "sensitive-local",
                because("published-means"),
                gaps=(*UNUSED, *USER_LOCAL),
            )
        ]


class PrivateRatingMeans(RatingMeans):
    """`RatingMeans` whose items' deviations also use sensitive ratings, through one release of noisy sums.

    An item's sum of r - μ over its sensitive ratings changes by at most Δ with the value of one rating, so Laplace
    noise of scale Δ/ε makes it ε-differentially private; who rated what is public, and so is n_s, the number of those
    ratings. A mean of n_s ratings of variance s² (`variance`) has variance s²/n_s, that of the noise is 2Δ²/(ε n_s)²;
    so the noisy mean is worth 1/(1/n_s + 2Δ²/(ε n_s)²/s²) published ratings, and that is its weight next to them.
    """

    noise_key = "PrivateRatingMeans"
    config: PrivateRatingMeansConfig

    @override
    def offsets(
        self, data: TrainingData, deviations: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """See `RatingMeans.offsets`; also from noisy sums of sensitive ratings."""
        assert data.sensitive is not None
        config, sensitive = self.config, data.sensitive
        span = config.scale[1] - config.scale[0]
        noise_scale = span / config.epsilon
        raters = np.bincount(data.items[sensitive], minlength=data.n_items)
        exact = np.asarray(np.bincount(data.items[sensitive], deviations[sensitive], data.n_items), np.float64)
        secret = self.noise_stream(data, rng)
        noisy = noise.add_laplace(secret, "sums-of-ratings", exact, noise_scale, sensitivity=span)
        worth = _ratio(raters**2.0, raters + 2 * noise_scale**2 / config.variance)
        public = np.bincount(data.items[~sensitive], deviations[~sensitive], data.n_items)
        counts = np.bincount(data.items[~sensitive], minlength=data.n_items)
        # a mean of n_s ratings has weight `worth`: where n_s is 0, so is that
        return _ratio(public + worth * _ratio(noisy, raters), counts + worth + config.damping)

    @override
    def insecure(self) -> str:
        return "" if self.config.of in ("item", "bias") else super().insecure()

    def ledger(self) -> list[LedgerEntry]:
        """One release of noisy sums."""
        uses_items = self.config.of in ("item", "bias")
        if not uses_items:
            return super().ledger()
        return [
            accounted_entry(
                [Event(kind="laplace", parameters={"noise_multiplier": 1 / self.config.epsilon})],
                protects="rating",
                unit="sensitive-rating",
                neighbouring="replace",
                mechanism="sums-laplace",
                claimed_epsilon=self.config.epsilon,
                gaps=(gap("raters-public"), gap("added-up"), DRAWN, *USER_LOCAL, *ONCE),
            )
        ]


def _ratio(
    numerator: NDArray[np.integer | np.floating], denominator: NDArray[np.integer | np.floating]
) -> NDArray[np.float64]:
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator > 0)
