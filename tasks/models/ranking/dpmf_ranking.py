"""DPMF as a baseline of the next item: only rated cells count (Hua, Xia and Zhong, IJCAI 2015; DIPSGNN section 5.1).

Items' vectors minimise Σ (r_ij - u_iᵀv_j)² + ridge ‖V‖² + Σ η_jᵀv_j over the cells that are listed, r within [0, 1]:

`ExplicitDPMF`: the training ratings, scaled by the range that is public.
`ImplicitDPMF`: 1 at every training interaction and 0 at as many items that its user did not have, drawn once, as BPRMF
draws them (a cell that is drawn twice is listed once).

Items are ranked by u_iᵀv_j. Users' vectors come from the same cells by a factorisation without noise: a truncated SVD
of the listed cells, the others taken for 0, then `alternations` rounds of least squares over the listed cells alone, of
items' vectors and of users', which are scaled to length 1 each time.

The proof (`tasks.privacy.mechanisms.objective`) holds users' vectors and the list of cells constant and lets the value
of one cell change by 1 at most. Neither is constant when an interaction comes or goes: the list changes, with it the
curvature of the item's objective, and its gradient changes by 2 |r - uᵀv| ‖u‖₁, for which v sets no bound.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.sparse import csr_array
from typing_extensions import override

from tasks.errors import DataError
from tasks.models.base import SILENT, Progress
from tasks.models.ranking.factors import FactorConfig, FactorModel, cells, published_entry, unit_user_vectors
from tasks.models.sampling import NegativeSampler
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import objective
from tasks.privacy.terms import KnownGap, Unit, because, gap
from tasks.training_data import TrainingData


class ListedConfig(FactorConfig):
    """Configuration of `ImplicitDPMF`. `ridge` weighs users' vectors too, where they are fitted."""

    alternations: int = Field(ge=0)
    """Rounds of least squares in which users' vectors are trained on listed cells alone.

    0 leaves them as the SVD has them, which also knows which cells are not listed. Where all ratings are high, the
    listed ones alone say little else than what is popular."""


class ExplicitConfig(ListedConfig):
    """Configuration of `ExplicitDPMF`."""

    rating_low: float = Field(allow_inf_nan=False)
    """The lowest rating there can be, which becomes 0; public, not read from the data."""
    rating_high: float = Field(allow_inf_nan=False)
    """The highest rating there can be, which becomes 1."""

    @model_validator(mode="after")
    def _some_range(self) -> Self:
        if self.rating_low >= self.rating_high:
            raise ValueError(f"rating_low must be below rating_high (is {self.rating_low:g}, {self.rating_high:g})")
        return self


class ListedFactors(FactorModel):
    """Matrix factorisation of listed cells, whose item vectors are perturbed."""

    config: ListedConfig
    insecurity = objective.INSECURE
    changed: ClassVar[Unit]
    """What the neighbouring data sets of the claim differ in."""
    listed: ClassVar[KnownGap]
    """Why the list of cells says more than the claim has it."""

    @abstractmethod
    def listing(self, data: TrainingData, rng: np.random.Generator) -> csr_array:
        """The cells that count: sparse (n_users, n_items) of values in [0, 1], zeros stored."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        """Solve for item vectors; see `Model.fit`."""
        config, ratings = self.config, self.listing(data, rng)
        users = user_vectors(ratings, config.dimension, config.ridge, config.alternations, rng)
        return self._keep_perturbed(users, ratings, data, rng, solve=objective.perturbed_least_squares_of_stored)

    def ledger(self) -> list[LedgerEntry]:
        """The claim and what follows from it; see the module."""
        return [
            published_entry(
                self.config.epsilon,
                self.changed,
                "objective-listed-cells",
                because("users-and-cells"),
                (self.listed,),
                "replace",
            )
        ]


class ImplicitDPMF(ListedFactors):
    """Interactions against as many sampled items (DPMF_imp).

    Raises (from `fit`) DataError: a user interacted with every item, so that none can be sampled.
    """

    noise_key = "ImplicitDPMF"
    changed: ClassVar[Unit] = "listed-cell"
    listed: ClassVar[KnownGap] = gap("cells-listed-implicit")

    @override
    def listing(self, data: TrainingData, rng: np.random.Generator) -> csr_array:
        sampler = NegativeSampler(data.users, data.items, data.n_users, data.n_items)
        negatives = sampler.draw(data.users, rng)
        values = np.repeat([1.0, 0.0], len(data.users))
        places = (np.tile(data.users, 2), np.concatenate([data.items, negatives]))
        # Cells that are drawn twice add up: 0 + 0 is still 0, and a negative is no interaction.
        return csr_array((values, places), shape=(data.n_users, data.n_items))


class ExplicitDPMF(ListedFactors):
    """Ratings of the training interactions (DPMF_exp).

    Raises (from `fit`) DataError: interactions have no ratings, or one is outside the range of the configuration.
    """

    noise_key = "ExplicitDPMF"
    config: ExplicitConfig
    uses_ratings: ClassVar[bool] = True
    changed: ClassVar[Unit] = "rating-value"
    listed: ClassVar[KnownGap] = gap("cells-listed-ratings")

    @override
    def listing(self, data: TrainingData, rng: np.random.Generator) -> csr_array:
        low, high = self.config.rating_low, self.config.rating_high
        if data.ratings is None or np.isnan(data.ratings).any():
            raise DataError(
                "interactions: some or all have no rating, which explicit feedback needs; take a data set of ratings, "
                "or dpmf-implicit"
            )
        if wrong := int(((data.ratings < low) | (data.ratings > high)).sum()):
            raise DataError(
                f"interactions: {wrong} ratings are outside {low:g} to {high:g}, for which the noise is made; set "
                "rating_low and rating_high to the scale of the data set"
            )
        return cells(data, (data.ratings.astype(np.float64) - low) / (high - low))


def user_vectors(
    ratings: csr_array, dimension: int, ridge: float, alternations: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Users' vectors by alternating least squares over the stored cells: (n_users, dimension) float64.

    Each is of length 1, or 0 where a user has no cell above 0; see `unit_user_vectors`, which also has the errors.
    """
    users = unit_user_vectors(ratings, dimension, rng)
    of_items = ratings.T.tocsr()
    for _ in range(alternations):
        items = objective.least_squares_of_stored(users, ratings, ridge)
        fitted = objective.least_squares_of_stored(items, of_items, ridge)
        lengths = np.linalg.norm(fitted, axis=1, keepdims=True)
        users = fitted / np.where(lengths > 0, lengths, 1)
    return users
