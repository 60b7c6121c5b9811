"""The task `top-k`: lists of all users, judged by the items held out of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tasks import contracts
from tasks.evaluation import ranking
from tasks.evaluation.metrics import Measured, measure
from tasks.models.base import Recommender
from tasks.privacy.terms import Protected
from tasks.stages.evaluators.base import Evaluated, Evaluator


class TopK(Evaluator):
    """Users' lists, judged by the items held out of them (docs/methods.md §8)."""

    metric = "ndcg"
    contract = contracts.RECOMMENDATIONS
    protects: Protected = "interaction"

    @cached_property
    def _validation(self) -> tuple[ranking.Seen, ranking.Seen]:
        return self._inputs.seen_items("train"), self._inputs.seen_items("valid")

    def validate(self, model: Recommender) -> float:
        """NDCG on the validation interactions, ranked among all items but the training ones."""
        train, valid = self._validation
        recommended, _ = ranking.top_k(model.score, self._users, train, self._k, self._order)
        return ranking.full_metrics(recommended, valid, [self._k])["ndcg"][self._k]

    def evaluate(self, model: Recommender) -> Evaluated:
        """Test metrics under both protocols, and the top-K lists of all users."""
        inputs, evaluation = self._inputs, self._evaluation
        assert evaluation.negatives is not None, "params.load asks for them where lists are judged"
        k = max(evaluation.k)
        items, scores = ranking.top_k(model.score, self._users, inputs.seen_items("train", "valid"), k, self._order)
        users, full = ranking.full_values(items, inputs.seen_items("test"), evaluation.k, recall=evaluation.recall)
        if evaluation.recall == "reachable":
            full["recall-reachable"] = full.pop("recall")
        test_users, test_items = inputs.pairs("test")
        negatives = ranking.sampled_negatives(
            test_users,
            test_items,
            inputs.seen_items("train", "valid", "test"),
            evaluation.negatives,
            self._draws,
        )
        ranks = ranking.sampled_ranks(model.score, test_users, test_items, negatives, self._draws)
        sampled = ranking.sampled_values(ranks, evaluation.k)
        measured = measure(f"sampled-{evaluation.negatives}", test_users, sampled) + measure("full", users, full)
        if evaluation.full_rows:
            measured += self._of_rows(model, k)
        return Evaluated(measured, ranking.ranking_table(items, scores, user=self._users))

    def _of_rows(self, model: Recommender, k: int) -> list[Measured]:
        """Metrics of lists that leave nothing out, judged by all that a user has."""
        inputs, evaluation = self._inputs, self._evaluation
        nothing = np.empty(0, np.int32)
        unseen = ranking.Seen.from_pairs(nothing, nothing, inputs.schema.n_users)
        items, _ = ranking.top_k(model.score, self._users, unseen, k, self._order)
        rows = inputs.seen_items("train", "valid", "test")
        users, values = ranking.full_values(items, rows, evaluation.k, recall=evaluation.recall)
        if evaluation.recall == "reachable":
            values["recall-reachable"] = values.pop("recall")
        return measure("whole", users, values)
