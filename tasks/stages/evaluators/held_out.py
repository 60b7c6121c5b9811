"""The task `fold-in`: lists of users who were not trained on, from the items that are folded in.

Data have held-out users first, as `tasks.papers.multvae.protocol` numbers them. Models learn from the others alone, so
any ε that a ledger accounts for is towards *training* users. A held-out user's list is made of what was released and of
that user's own items: nothing protects these from those who see the list, and there is nothing to protect them from
before. Validation looks at users of validation alone, and nothing but `evaluate` at those of the test.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.core.training_data import TrainingData
from tasks.evaluation import ranking
from tasks.models.base import Model, Recommender
from tasks.models.ranking.folding import fold_in
from tasks.privacy.terms import Protected
from tasks.stages.evaluators.base import Evaluated, Evaluator


class HeldOut(Evaluator):
    """Lists of held-out users, judged by those of their items that were not folded in (docs/methods.md §8)."""

    metric = "ndcg"
    contract = contracts.RECOMMENDATIONS
    protects: Protected = "interaction"

    def training_data(self, cls: type[Model], seed: int) -> TrainingData:
        """That of the training users alone, numbered from 0."""
        data, n_held = super().training_data(cls, seed), self._n_held
        training = data.users >= n_held
        return replace(
            data,
            n_users=data.n_users - n_held,
            users=data.users[training] - np.int32(n_held),
            items=data.items[training],
            features=None if data.features is None else data.features[n_held:],
            attributes={name: values[n_held:] for name, values in data.attributes.items()},
            ratings=None if data.ratings is None else data.ratings[training],
        )

    def validate(self, model: Recommender) -> float:
        """NDCG of the users of validation."""
        users = np.arange(self._n_test, self._n_held, dtype=np.int32)
        items, _ = self._lists(model, users, self._k)
        return self._validated(ranking.full_values(items, self._targets("valid", users), [self._k]))

    def evaluate(self, model: Recommender) -> Evaluated:
        """Metrics of the test users, and their lists."""
        users = np.arange(self._n_test, dtype=np.int32)
        items, scores = self._lists(model, users, max(self._evaluation.k))
        measured = self._measure("full", items, self._targets("test", users))
        return Evaluated(measured, ranking.ranking_table(items, scores, user=users))

    def _lists(
        self, model: Recommender, users: NDArray[np.int32], k: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        score = fold_in(model, self._histories, self._inputs.schema.n_items)
        return ranking.top_k(lambda part: torch.from_numpy(score(part)), users, self._histories, k, self._order)

    def _targets(self, split: str, users: NDArray[np.int32]) -> ranking.Seen:
        """What is to be found of `users`, counted from the first of them."""
        owners, items = self._inputs.pairs(split)
        return ranking.Seen.from_pairs(owners - users[0], items, len(users))

    @cached_property
    def _histories(self) -> ranking.Seen:
        """What is folded in of every held-out user."""
        rows = self._inputs.interactions.filter((pl.col("user") < self._n_held) & (pl.col("split") == "train"))
        return ranking.Seen.from_pairs(rows["user"].to_numpy(), rows["item"].to_numpy(), self._n_held)

    @cached_property
    def _n_test(self) -> int:
        """How many users are those of the test."""
        return self._first_after("test", 0)

    @cached_property
    def _n_held(self) -> int:
        """How many users are held out."""
        return self._first_after("valid", self._n_test)

    def _first_after(self, split: str, first: int) -> int:
        """The number of users up to the last who has rows in `split`, who must be all from number `first` on.

        Raises:
            DataError: they are not.
        """
        users = self._inputs.interactions.filter(pl.col("split") == split)["user"].unique().sort().to_numpy()
        if not np.array_equal(users, np.arange(first, first + len(users))) or not len(users):
            raise DataError(
                f"interactions: the users whose rows are {split} are not those from number {first} on; this task needs "
                "data that hold users out, such as those of the protocol multvae"
            )
        return first + len(users)
