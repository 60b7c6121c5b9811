"""The task `next-item`: what follows every prefix of a held-out sequence."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from tasks.core import contracts
from tasks.core.errors import DataError
from tasks.core.sequences import Sequences
from tasks.core.training_data import TrainingData
from tasks.evaluation import next_items, ranking
from tasks.evaluation.metrics import Record, measure, records
from tasks.models.base import Model, NextItemRecommender, Recommender
from tasks.privacy.terms import Protected
from tasks.stages.evaluators.base import Evaluated, Evaluator


class NextItem(Evaluator):
    """The item after every prefix of held-out sequences (docs/methods.md §3).

    Tested are the users who have training events: those who validate have none, and a model with a vector for every
    user knows nothing of them. A model that reads sequences validates on the users set apart for it. One that does not
    learns a vector for every user, so it leaves out the last training event of each and validates on those instead.
    """

    metric = "recall"
    contract = contracts.NEXT_ITEMS
    protects: Protected = "interaction"
    PROTOCOLS: ClassVar = ("next", "next-new")

    def training_data(self, cls: type[Model], seed: int) -> TrainingData:
        """See `Evaluator.training_data`."""
        return self._inputs.training_data(cls, seed, last=issubclass(cls, NextItemRecommender))

    @cached_property
    def _train(self) -> Sequences:
        return self._inputs.sequences("train")

    @cached_property
    def _validation(self) -> Sequences:
        sequences = self._inputs.sequences("valid")
        if not sequences.has_next.any():
            raise DataError("interactions: no user has two validation events; there is nothing to validate on")
        return sequences

    def validate(self, model: NextItemRecommender | Recommender) -> float:
        """Recall of the next item, among all items.

        Raises:
            DataError: a model that reads sequences, and no user who validates has two events.
        """
        if isinstance(model, NextItemRecommender):
            ranked = next_items.next_items(model.score_next, self._validation, self._k, self._order)
            return self._validated(next_items.next_values(ranked, [self._k]))
        last = self._train.items[self._train.indptr[1:] - 1]
        last_items = ranking.Seen.from_pairs(self._train.users, last, self._inputs.schema.n_users)
        nothing = ranking.Seen.none(self._inputs.schema.n_users)
        recommended, _ = ranking.top_k(model.score, self._users, nothing, self._k, self._order)
        return self._validated(ranking.full_values(recommended, last_items, [self._k]))

    def test(self, model: NextItemRecommender | Recommender) -> list[Record]:
        """Test metrics under `next` alone."""
        ranked = next_items.next_items(scorer(model), self._tested, max(self._evaluation.k), self._order)
        return records(measure(self.PROTOCOLS[0], *next_items.next_values(ranked, self._evaluation.k)))

    @cached_property
    def _tested(self) -> Sequences:
        tested = self._inputs.sequences("test")
        tested = tested.take(np.flatnonzero(np.isin(tested.users, self._train.users) & (tested.lengths > 1)))
        if not len(tested):
            raise DataError("interactions: no user has training events and two test events; there is nothing to test")
        return tested

    def evaluate(self, model: NextItemRecommender | Recommender) -> Evaluated:
        """Test metrics under both protocols, and the best items of every example under `next`.

        Raises:
            DataError: no tested user has two test events, or none of these is of a new item.
        """
        tested = self._tested
        k = max(self._evaluation.k)
        before = self._inputs.seen_items("train")
        score = scorer(model)
        all_items = next_items.next_items(score, tested, k, self._order)
        new = next_items.next_items(score, tested, k, self._order, before)
        if not new.counted.any():
            raise DataError("interactions: tested users had all of their next items before; there is nothing to test")
        measured = [
            each
            for protocol, ranked in zip(self.PROTOCOLS, (all_items, new), strict=True)
            for each in measure(protocol, *next_items.next_values(ranked, self._evaluation.k))
        ]
        keys = {"user": all_items.users, "position": all_items.positions}
        return Evaluated(measured, ranking.ranking_table(all_items.items, all_items.scores, **keys))


def scorer(model: NextItemRecommender | Recommender) -> Callable[[Sequences], torch.Tensor]:
    """Scores of what follows each event; of a model that knows users only, its scores of the user."""
    if isinstance(model, NextItemRecommender):
        return model.score_next
    return lambda sequences: model.score(sequences.users)[torch.from_numpy(sequences.owners)]
