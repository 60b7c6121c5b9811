"""The task `top-k`: lists of all users, judged by the items held out of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.core import contracts
from tasks.core.sequences import Sequences
from tasks.evaluation import ranking
from tasks.evaluation.metrics import Measured, catalogue_metrics, measure, sampled_values
from tasks.models.base import NextItemRecommender, Recommender
from tasks.privacy.terms import Protected
from tasks.stages.evaluators.base import Evaluated, Evaluator

SCORED = 16
"""Sequences at a time: every event of each has scores."""


class TopK(Evaluator):
    """Users' lists, judged by the items held out of them (docs/methods.md §8)."""

    metric = "ndcg"
    contract = contracts.RECOMMENDATIONS
    protects: Protected = "interaction"

    @cached_property
    def _validation(self) -> tuple[ranking.Seen, ranking.Seen]:
        return self._inputs.seen_items("train"), self._inputs.seen_items("valid")

    @cached_property
    def _histories(self) -> Sequences:
        return self._inputs.histories()

    def _scores(self, model: Recommender | NextItemRecommender) -> ranking.Scorer:
        """Of a model that reads sequences those after the last training event: zeros of a user who has none."""
        if isinstance(model, Recommender):
            return model.score
        histories, n_items = self._histories, self._inputs.schema.n_items
        places = np.full(self._inputs.schema.n_users, -1)
        places[histories.users] = np.arange(len(histories))

        def score(users: NDArray[np.int32]) -> torch.Tensor:
            scores = torch.zeros(len(users), n_items)
            known = np.flatnonzero(places[users] >= 0)
            for rows in np.array_split(known, -(-len(known) // SCORED) or 1):
                sequences = histories.take(places[users[rows]])
                scores[rows] = model.score_next(sequences)[sequences.indptr[1:] - 1].cpu()
            return scores

        return score

    def validate(self, model: Recommender | NextItemRecommender) -> float:
        """NDCG on the validation interactions, ranked among all items but the training ones."""
        train, valid = self._validation
        recommended, _ = ranking.top_k(self._scores(model), self._users, train, self._k, self._order)
        return self._validated(ranking.full_values(recommended, valid, [self._k]))

    def evaluate(self, model: Recommender | NextItemRecommender) -> Evaluated:
        """Test metrics under both protocols, and the top-K lists of all users."""
        inputs, evaluation = self._inputs, self._evaluation
        assert evaluation.negatives is not None, "params.load asks for them where lists are judged"
        k = max(evaluation.k)
        scorer = self._scores(model)
        items, scores = ranking.top_k(scorer, self._users, inputs.seen_items("train", "valid"), k, self._order)
        test_users, test_items = inputs.pairs("test")
        negatives = ranking.sampled_negatives(
            test_users,
            test_items,
            inputs.seen_items("train", "valid", "test"),
            evaluation.negatives,
            self._draws,
        )
        ranks = ranking.sampled_ranks(scorer, test_users, test_items, negatives, self._draws)
        sampled = sampled_values(ranks, evaluation.k)
        measured = measure(f"sampled-{evaluation.negatives}", test_users, sampled)
        full = self._measure("full", items, inputs.seen_items("test"))
        measured += [*full, *self._least(full, items)]
        if evaluation.full_rows:  # lists that leave nothing out, judged by all that a user has
            unseen = ranking.Seen.none(inputs.schema.n_users)
            complete, _ = ranking.top_k(scorer, self._users, unseen, k, self._order)
            measured += self._measure("whole", complete, inputs.seen_items("train", "valid", "test"))
        train = inputs.seen_items("train")
        counts = np.bincount(train.items, minlength=inputs.schema.n_items)
        covered = catalogue_metrics(items, counts, train.n_users, evaluation.k)["coverage"]
        further = tuple({"metric": "catalogue/coverage", "k": k, "value": value} for k, value in covered.items())
        return Evaluated(measured, ranking.ranking_table(items, scores, user=self._users), further)

    def _least(self, full: list[Measured], items: NDArray[np.int32]) -> list[Measured]:
        """NDCG for the quarter of users who train least, and for that of held-out items that the fewest train on.

        A quarter is what is at most the lower quartile. full: what `items`, the lists, are worth to all.
        """
        train, (users, targets) = self._inputs.seen_items("train"), self._inputs.pairs("test")
        of_all = next(each for each in full if each.metric == "full/ndcg")
        few = np.flatnonzero(_lowest(train.counts[of_all.users]))
        measured = [
            Measured("few-users/ndcg", each.k, each.users[few], each.values[few])
            for each in full
            if each.metric == "full/ndcg"
        ]
        rare = _lowest(np.bincount(train.items, minlength=self._inputs.schema.n_items)[targets])
        wanted = ranking.Seen.from_pairs(users[rare], targets[rare], train.n_users)
        tested, values = ranking.full_values(items, wanted, self._evaluation.k)
        return measured + measure("few-items", tested, {"ndcg": values["ndcg"]})


def _lowest(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    return counts <= np.quantile(counts, 0.25, method="lower")
