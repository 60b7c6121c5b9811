"""DPMF, matrix factorisation with objective perturbation (Hua, Xia and Zhong, IJCAI 2015), for lists; and DPNE.

Users' vectors U come first, none longer than 1; items' vectors then minimise ‖R - UVᵀ‖² + ridge ‖V‖² + Σ η_jᵀv_j
(`tasks.privacy.mechanisms.objective`). The privacy proof holds U, and the cells that count, constant.

**For implicit feedback** (`DPMF`): a cell is 1 where a user interacted with an item and 0 elsewhere, and every cell
counts. The two accountings differ in where U comes from:

`published`: from a truncated SVD of the same R, without noise, so that the proof does not cover what is released.

`rigorous`: from public randomness. A user is put into one of `dimension` groups of equal size, and u_i is 1 in that
group's place and 0 elsewhere. Of all vectors of length 1 these have the smallest L1 norm: a cell moves the gradient by
2, not by 2√d, and UᵀR are counts, to which discrete Laplace noise can be added that has no low digits to leak. Only V,
computed from those noisy counts, is released; each user then fits a vector of their own to V and to their own row of R:
argmin Σ_j (r_ij - wᵀv_j)² + ridge ‖w - ū‖², where ū is the mean of U. Groups also add up what their members share,
popularity first of all; in the sums of a dense Gaussian projection it cancels.

**As a baseline of the next item** (DIPSGNN section 5.1) only the cells that are listed count, r within [0, 1]:

`ExplicitDPMF`: the training ratings, scaled by the range that is public.
`ImplicitDPMF`: 1 at every training interaction and 0 at as many items that its user did not have, drawn once, as BPRMF
draws them (a cell that is drawn twice is listed once).

Users' vectors come from the same cells by a factorisation without noise: a truncated SVD of the listed cells, the
others taken for 0, then `alternations` rounds of least squares over the listed cells alone, of items' vectors and of
users', which are scaled to length 1 each time. The proof lets the value of one cell change by 1 at most. But the list
changes when an interaction comes or goes, with it the curvature of the item's objective, and its gradient changes by
2 |r - uᵀv| ‖u‖₁, for which v sets no bound.

**DPNE** (Xu, Yuan, Wu and Phan, PAKDD 2018): an embedding of the bipartite graph of users and items by the same
mechanism, for a matrix of shifted positive pointwise mutual information (Levy and Goldberg, NeurIPS 2014; Qiu et al.,
WSDM 2018). An edge of user u and item v has

    M_uv = log(Σ_w d_w^s / (d_u d_v^s)) - log shift, clipped to [0, cap],

with degrees d and smoothed contexts (Levy, Goldberg and Dagan, TACL 2015); s = 1 is log(|E| / (d_u d_v)) - log shift.
Other cells are 0. Users' vectors are a truncated SVD of M, scaled to length 1; items' vectors are the least squares
perturbed for cells that change by at most `cap`, a bound that no data decide. A link is scored by the inner product.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.sparse import csr_array
from typing_extensions import override

from tasks.core.errors import DataError
from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, Progress
from tasks.models.ranking.factors import (
    NON_PRIVATE,
    FactorConfig,
    FactorModel,
    cells,
    published_entry,
    unit_user_vectors,
)
from tasks.models.training import NegativeSampler
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import ONCE, OWN_FILE
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.insecurity import OBJECTIVE
from tasks.privacy.mechanisms import laplace, objective
from tasks.privacy.remarks import KnownGap, because, gap
from tasks.privacy.terms import Unit


class DPMFConfig(FactorConfig):
    """Configuration of `DPMF`."""

    accounting: Literal["published", "rigorous"]
    """Where user vectors come from, and so what is guaranteed. With `rigorous`, `dimension` is the number of groups and
    `ridge` also weighs a user's own fit."""


class DPMF(FactorModel):
    """Matrix factorisation whose item vectors are perturbed."""

    noise_key = "DPMF"
    config: DPMFConfig
    has_secure_noise = True

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        config, ratings = self.config, cells(data)
        if config.accounting == "published":
            users = unit_user_vectors(ratings, config.dimension, rng)
            return self._keep_perturbed(users, ratings, data, rng)
        groups = public_groups(data.n_users, config.dimension, rng)
        items = group_rates(data, groups, config, self.noise_stream(data, rng))
        # From here on nothing but `items`, public groups and, for a user's vector, that user's own row.
        mean = np.bincount(groups, minlength=config.dimension) / data.n_users
        curvature = items.T @ items + config.ridge * np.eye(config.dimension)
        users = np.linalg.solve(curvature, (ratings @ items + config.ridge * mean).T).T
        return self._keep(users, items)

    def insecure(self) -> str:
        """See `Model.insecure`; where accounting is rigorous, noise is on counts."""
        return OBJECTIVE if self.config.accounting == "published" else super().insecure()

    @override
    def ledger(self) -> list[LedgerEntry]:
        epsilon = self.config.epsilon
        if self.config.accounting == "published":
            return [published_entry(epsilon, "interaction", "objective-items", because("users-from-svd"), ())]
        infinite = math.isinf(epsilon)
        return [
            accounted_entry(
                [NON_PRIVATE if infinite else laplace.counts_event(epsilon, 1)],
                protects="interaction",
                unit="interaction",
                neighbouring="add-or-remove",
                mechanism="objective-items-public-users",
                claimed_epsilon=None if infinite else epsilon,
                gaps=(*ONCE, gap("groups-public"), gap("group-privacy"), gap("own-list-items"), OWN_FILE),
            )
        ]


def public_groups(n_users: int, n_groups: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A random group for every user, (n_users,) from 0, all groups of equal size up to one; reads no data."""
    return rng.permutation(n_users) % n_groups


def group_rates(
    data: TrainingData, groups: NDArray[np.int64], config: FactorConfig, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Item vectors, (n_items, n_groups): the share of each group that has the item, from noisy counts and shrunk.

    This is (UᵀU + ridge I)⁻¹ (UᵀR - η/2): UᵀU holds the groups' sizes, -η/2 is the discrete Laplace noise of counts.
    """
    pairs = data.items.astype(np.int64) * config.dimension + groups[data.users]
    counts = np.bincount(pairs, minlength=data.n_items * config.dimension)
    if not math.isinf(config.epsilon):
        counts = laplace.noisy_counts(counts, config.epsilon, 1, rng)
    sizes = np.bincount(groups, minlength=config.dimension)
    return counts.reshape(data.n_items, config.dimension) / (sizes + config.ridge)


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
    insecurity = OBJECTIVE
    changed: ClassVar[Unit]
    """What the neighbouring data sets of the claim differ in."""
    listed: ClassVar[KnownGap]
    """Why the list of cells says more than the claim has it."""

    @abstractmethod
    def listing(self, data: TrainingData, rng: np.random.Generator) -> csr_array:
        """The cells that count: sparse (n_users, n_items) of values in [0, 1], zeros stored."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        config, ratings = self.config, self.listing(data, rng)
        users, of_items = unit_user_vectors(ratings, config.dimension, rng), ratings.T.tocsr()
        for _ in range(config.alternations):  # lengths are 1, or 0 where a user has no cell above 0
            items = objective.least_squares_of_stored(users, ratings, config.ridge)
            users = objective.least_squares_of_stored(items, of_items, config.ridge)
            lengths = np.linalg.norm(users, axis=1, keepdims=True)
            users = users / np.where(lengths > 0, lengths, 1)
        return self._keep_perturbed(users, ratings, data, rng, solve=objective.perturbed_least_squares_of_stored)

    @override
    def ledger(self) -> list[LedgerEntry]:
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


class DPNEConfig(FactorConfig):
    """Configuration of `DPNE`."""

    smoothing: float = Field(ge=0, le=1)
    """Power s of item degrees: at 1 rare items are favoured most, at 0 all items count as equally frequent."""
    shift: float = Field(gt=0, allow_inf_nan=False)
    """Negative samples per edge in the embedding that is factorised; log shift is taken off every cell."""
    cap: float = Field(gt=0, allow_inf_nan=False)
    """Largest value of a cell, and so the sensitivity of one: noise grows with it, detail is lost without it."""


class DPNE(FactorModel):
    """Embedding of the user-item graph whose item vectors are perturbed."""

    noise_key = "DPNE"
    config: DPNEConfig
    insecurity = OBJECTIVE

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        config = self.config
        matrix = cells(data, mutual_information(data, config.smoothing, config.shift, config.cap))
        users = unit_user_vectors(matrix, config.dimension, rng)
        return self._keep_perturbed(users, matrix, data, rng, sensitivity=config.cap)

    def ledger(self) -> list[LedgerEntry]:
        """The claim per edge, and why it does not hold for what is released."""
        return [
            published_entry(
                self.config.epsilon,
                "interaction",
                "objective-graph",
                because("users-and-graph"),
                (gap("degrees-change"),),
            )
        ]


def mutual_information(data: TrainingData, smoothing: float, shift: float, cap: float) -> NDArray[np.float64]:
    """Shifted positive pointwise mutual information of every interaction, within [0, cap]: (n_interactions,)."""
    user_degrees = np.bincount(data.users, minlength=data.n_users)
    item_degrees = np.bincount(data.items, minlength=data.n_items)
    contexts = np.where(item_degrees > 0, item_degrees.astype(np.float64) ** smoothing, 0.0)
    expected = user_degrees[data.users] * contexts[data.items] / contexts.sum()
    return np.clip(-np.log(expected) - math.log(shift), 0.0, cap)
