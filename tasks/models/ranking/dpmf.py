"""DPMF: matrix factorisation with objective perturbation (Hua, Xia and Zhong, IJCAI 2015), for implicit feedback.

A cell is 1 where a user interacted with an item and 0 elsewhere, and every cell counts. Users' vectors U come first,
none longer than 1; items' vectors then minimise ‖R - UVᵀ‖² + ridge ‖V‖² + Σ η_jᵀv_j
(`tasks.privacy.mechanisms.objective`). The privacy proof holds U constant, and the two accountings differ in where U
comes from:

`published`: from a truncated SVD of the same R, without noise, so that the proof does not cover what is released.

`rigorous`: from public randomness. A user is put into one of `dimension` groups of equal size, and u_i is 1 in that
group's place and 0 elsewhere. Of all vectors of length 1 these have the smallest L1 norm: a cell moves the gradient by
2, not by 2√d, and UᵀR are counts, to which discrete Laplace noise can be added that has no low digits to leak. Only V,
computed from those noisy counts, is released; each user then fits a vector of their own to V and to their own row of R:
argmin Σ_j (r_ij - wᵀv_j)² + ridge ‖w - ū‖², where ū is the mean of U. Groups also add up what their members share,
popularity first of all; in the sums of a dense Gaussian projection it cancels.
"""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from tasks.models.base import SILENT, Progress
from tasks.models.ranking.factors import (
    NON_PRIVATE,
    FactorConfig,
    FactorModel,
    cells,
    published_entry,
    unit_user_vectors,
)
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import ONCE, OWN_FILE
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.mechanisms import laplace, objective
from tasks.privacy.terms import because, gap
from tasks.training_data import TrainingData


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
        """Solve for item vectors; see `Model.fit`."""
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
        return objective.INSECURE if self.config.accounting == "published" else super().insecure()

    def ledger(self) -> list[LedgerEntry]:
        """The claim and what follows from it; see the module."""
        return [self._rigorous_entry() if self.config.accounting == "rigorous" else self._published_entry()]

    def _published_entry(self) -> LedgerEntry:
        return published_entry(self.config.epsilon, "interaction", "objective-items", because("users-from-svd"), ())

    def _rigorous_entry(self) -> LedgerEntry:
        epsilon = self.config.epsilon
        infinite = math.isinf(epsilon)
        return accounted_entry(
            [NON_PRIVATE if infinite else laplace.counts_event(epsilon, 1)],
            protects="interaction",
            unit="interaction",
            neighbouring="add-or-remove",
            mechanism="objective-items-public-users",
            claimed_epsilon=None if infinite else epsilon,
            gaps=(*ONCE, gap("groups-public"), gap("group-privacy"), gap("own-list-items"), OWN_FILE),
        )


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
