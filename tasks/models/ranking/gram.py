"""`dprec release` as models of suites: noisy counts and pairs of items, once, and a recommender fitted to them alone.

docs/release.md has the method and its proof; `tasks.release` is what users get.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array
from torch import Tensor
from typing_extensions import override

from tasks.core.training_data import TrainingData
from tasks.models.base import SILENT, ModelConfig, Progress, Recommender
from tasks.privacy.accounting.account import accounted_entry
from tasks.privacy.accounting.gaps import DRAWN, ONCE, large_delta
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.remarks import gap
from tasks.release import making, models
from tasks.release.denoising import denoise
from tasks.release.making import Budget, Release
from tasks.release.sums import Rows, rows_of, squared


class GramConfig(ModelConfig):
    """Configuration of `GramSVD` and of what is fitted to a release otherwise."""

    epsilon: float = Field(gt=0, allow_inf_nan=False)
    """Budget of a user for everything that is released."""
    delta: float = Field(gt=0, lt=1)
    """Failure probability of the guarantee."""


class GramSVD(Recommender):
    """A release whose pairs are filtered by their principal directions; the number of users is taken as public.

    Items outside the head follow all others, in the order of their counts; so do all for users without items in it.
    """

    noise_key = "GramSVD"
    config: GramConfig
    has_secure_noise = True
    own_tensors: ClassVar[tuple[str, ...]] = ("indptr", "items")
    fits: ClassVar[models.Kind] = "svd"
    model: models.Model
    rows: Rows
    """What every user has."""
    spent: Budget | None = None
    """Blocks that were released about users; None before `fit`."""
    made: Release | None = None
    """What was released; None before `fit`."""

    @override
    def fit(self, data: TrainingData, *, rng: np.random.Generator, progress: Progress = SILENT) -> Self:
        self.rows = rows_of(data.users, data.items, data.n_users, data.n_items)
        self._n_users = data.n_users
        self.spent = Budget(self.config.epsilon, self.config.delta, self.noise_stream(data, rng))
        self.made = self.make(self.rows, self.spent)
        self.model = self.fitted(self.made)
        return self

    def fitted(self, release: Release) -> models.Model:
        """What is served, from the release alone."""
        return models.fit(release, self.fits)

    def make(self, rows: Rows, budget: Budget) -> Release:
        """Spend the budget; the number of users is public."""
        return making.make(rows, budget, users=rows.shape[0])

    @override
    def score(self, users: NDArray[np.int32]) -> Tensor:
        return self.scores_of(self.rows[users])

    def scores_of(self, rows: csr_array) -> Tensor:
        """Scores by what users have: rows (n, n_items) of 0 and 1."""
        model, counts = self.model, self.model.counts
        by_count = (counts - counts.max()) / max(counts.max(), 1e-9) - 10
        scores = np.tile(by_count.astype(np.float32), (rows.shape[0], 1))
        histories = rows[:, model.head].toarray().astype(np.float64)
        has_history = histories.any(axis=1)
        if has_history.any():
            scores[np.ix_(has_history, model.head)] = model.scores(histories[has_history])
        return torch.from_numpy(scores)

    @override
    def released(self) -> dict[str, Tensor]:
        arrays: dict[str, NDArray[np.generic]] = {
            "counts": self.model.counts,
            "head": self.model.head,
            **self.model.arrays,
        }
        arrays |= {"indptr": self.rows.indptr, "items": self.rows.indices}
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    @override
    def restore_released(self, tensors: dict[str, Tensor]) -> None:
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        starts, items, counts, head = (arrays.pop(name) for name in ("indptr", "items", "counts", "head"))
        cells = np.ones(len(items), np.int8), items, starts
        self.rows = csr_array(cells, shape=(len(starts) - 1, len(counts)))
        self.model = models.Model(self.fits if len(head) else "popularity", counts, head, arrays)

    @override
    def ledger(self) -> list[LedgerEntry]:
        config = self.config
        gaps = [*ONCE, DRAWN, gap("n-users-items-public"), gap("own-list-items")]
        if self.spent is not None:
            gaps += large_delta(config.delta, self._n_users)
        return [
            accounted_entry(
                [block.event for block in self.spent.blocks] if self.spent is not None else (),
                config.delta,
                protects="interaction",
                unit="user",
                neighbouring="add-or-remove",
                mechanism="sums-gaussian",
                claimed_epsilon=config.epsilon,
                gaps=tuple(gaps),
            )
        ]


class GramEASE(GramSVD):
    """`GramSVD` with EASE on the denoised pairs."""

    noise_key = "GramEASE"
    fits: ClassVar[models.Kind] = "ease"


class RawGramEASE(GramEASE):
    """`GramEASE` on the noisy pairs as they are, a control: what is lost without denoising. The diagonal is its."""

    noise_key = "RawGramEASE"

    @override
    def fitted(self, release: Release) -> models.Model:
        model, head = super().fitted(release), release.head
        if not len(head):
            return model
        pairs = squared(release.pairs, len(head))
        np.fill_diagonal(pairs, denoise(release).matrix().diagonal())
        matrix = models.ease(pairs, model.counts[head])
        return models.Model(model.kind, model.counts, head, {**model.arrays, "matrix": matrix})


class GaussianPopularity(GramSVD):
    """Noisy counts alone: the whole budget is theirs."""

    noise_key = "GaussianPopularity"
    fits: ClassVar[models.Kind] = "popularity"

    @override
    def make(self, rows: Rows, budget: Budget) -> Release:
        return making.counts_alone(rows, budget)
