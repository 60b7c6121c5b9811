"""A toy task: lists of all users, whose best epoch has the most hits."""

from __future__ import annotations

from tasks.evaluation import ranking
from tasks.models.base import NextItemRecommender, Recommender
from tasks.stages.evaluators.lists import TopK


class Toy(TopK):
    """Lists as those of `top-k`."""

    metric = "hit"

    def validate(self, model: Recommender | NextItemRecommender) -> float:
        """Share of users with a validation item in their list."""
        train, valid = self._validation
        recommended, _ = ranking.top_k(self._scores(model), self._users, train, self._k, self._order)
        return self._validated(ranking.full_values(recommended, valid, [self._k]))
