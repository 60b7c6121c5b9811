"""How trained models are validated and tested: users' lists, the next item after every prefix, or ratings."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import torch
from numpy.typing import NDArray

from tasks import contracts
from tasks.errors import DataError
from tasks.evaluation import next_items, ranking, rating
from tasks.evaluation.metrics import ByCutoff
from tasks.models.base import Model, NextItemRecommender, RatingPredictor, Recommender, TrainingData
from tasks.privacy.ledger import Protected
from tasks.sequences import Sequences
from tasks.stages.inputs import Inputs
from tasks.stages.params import Evaluation, Training

Judged = tuple[list[dict[str, Any]], pl.DataFrame]
"""Metrics, as records of metric, k and value, and the recommendations or predictions they were computed from."""


class Judge(Protocol):
    """What a suite asks of its models."""

    metric: str
    """The metric of validation."""
    contract: pa.Schema
    """Of the recommendations or predictions that `evaluate` gives."""
    protects: Protected
    """What models learn from."""

    def training_data(self, cls: type[Model], seed: int) -> TrainingData:
        """What a model of class `cls` learns from; `seed` chooses among perturbed releases of the features."""
        ...

    def validate(self, model: Any) -> float:
        """The metric of validation; the test is not looked at."""
        ...

    def evaluate(self, model: Any) -> Judged:
        """Test metrics under all protocols of the task, and the recommendations."""
        ...


class TopK:
    """Users' lists, judged by the items held out of them (METHODS section 8)."""

    metric = "ndcg"
    contract = contracts.RECOMMENDATIONS
    protects: Protected = "interaction"

    def __init__(self, inputs: Inputs, evaluation: Evaluation, training: Training) -> None:
        assert training.validation_k is not None, "params.load asks for it where lists are judged"
        self._inputs = inputs
        self._evaluation = evaluation
        self._k = training.validation_k
        self._order = ranking.tie_order(inputs.schema.n_items, evaluation.seed)
        self._users = np.arange(inputs.schema.n_users, dtype=np.int32)

    def training_data(self, cls: type[Model], seed: int) -> TrainingData:
        """See `Judge.training_data`."""
        return self._inputs.training_data(cls, seed)

    @cached_property
    def _validation(self) -> tuple[ranking.Seen, ranking.Seen]:
        return self._inputs.seen("train"), self._inputs.seen("valid")

    def validate(self, model: Recommender) -> float:
        """NDCG on the validation interactions, ranked among all items but the training ones."""
        train, valid = self._validation
        recommended, _ = ranking.top_k(model.score, self._users, train, self._k, self._order)
        return ranking.full_metrics(recommended, valid, [self._k])["ndcg"][self._k]

    def evaluate(self, model: Recommender) -> Judged:
        """Test metrics under both protocols, and the top-K lists of all users."""
        inputs, evaluation = self._inputs, self._evaluation
        assert evaluation.negatives is not None, "params.load asks for them where lists are judged"
        k = max(evaluation.k)
        items, scores = ranking.top_k(model.score, self._users, inputs.seen("train", "valid"), k, self._order)
        full = ranking.full_metrics(items, inputs.seen("test"), evaluation.k, recall=evaluation.recall)
        if evaluation.recall == "reachable":
            full["recall-reachable"] = full.pop("recall")
        test_users, test_items = inputs.pairs("test")
        negatives = ranking.sampled_negatives(
            test_users,
            test_items,
            inputs.seen("train", "valid", "test"),
            inputs.schema.n_items,
            evaluation.negatives,
            evaluation.seed,
        )
        ranks = ranking.sampled_ranks(model.score, test_users, test_items, negatives, evaluation.seed)
        sampled = ranking.sampled_metrics(ranks, evaluation.k)
        metrics = [*records(f"sampled-{evaluation.negatives}", sampled), *records("full", full)]
        recommendations = pl.DataFrame(
            {
                "user": np.repeat(self._users, k),
                "rank": np.tile(np.arange(1, k + 1, dtype=np.int32), len(self._users)),
                "item": items.ravel(),
                "score": scores.ravel(),
            }
        )
        return metrics, recommendations


class NextItem:
    """The item after every prefix of held-out sequences (METHODS section 3).

    Tested are the users who have training events: those who validate have none, and a model with a vector for every
    user knows nothing of them. A model that reads sequences validates on the users set apart for it. One that does not
    learns a vector for every user, so it leaves out the last training event of each and validates on those instead.
    """

    metric = "recall"
    contract = contracts.NEXT_ITEMS
    protects: Protected = "interaction"
    PROTOCOLS: ClassVar = ("next", "next-new")

    def __init__(self, inputs: Inputs, evaluation: Evaluation, training: Training) -> None:
        assert training.validation_k is not None, "params.load asks for it where next items are judged"
        self._inputs = inputs
        self._evaluation = evaluation
        self._k = training.validation_k
        self._order = ranking.tie_order(inputs.schema.n_items, evaluation.seed)
        self._train = inputs.sequences("train")

    def training_data(self, cls: type[Model], seed: int) -> TrainingData:
        """See `Judge.training_data`."""
        return self._inputs.training_data(cls, seed, last=issubclass(cls, NextItemRecommender))

    @cached_property
    def _validation(self) -> Sequences:
        return self._inputs.sequences("valid")

    def validate(self, model: NextItemRecommender | Recommender) -> float:
        """Recall of the next item, among all items."""
        if isinstance(model, NextItemRecommender):
            ranked = next_items.next_items(model.score_next, self._validation, self._k, self._order)
            return next_items.next_metrics(ranked, [self._k])["recall"][self._k]
        last = self._train.items[self._train.indptr[1:] - 1]
        held = ranking.Seen.from_pairs(self._train.users, last, self._inputs.schema.n_users)
        nothing = ranking.Seen.from_pairs(last[:0], last[:0], self._inputs.schema.n_users)
        users = np.arange(self._inputs.schema.n_users, dtype=np.int32)
        recommended, _ = ranking.top_k(model.score, users, nothing, self._k, self._order)
        return ranking.full_metrics(recommended, held, [self._k])["recall"][self._k]

    def evaluate(self, model: NextItemRecommender | Recommender) -> Judged:
        """Test metrics under both protocols, and the best items of every example under `next`.

        Raises:
            DataError: no tested user has two test events.
        """
        tested = self._inputs.sequences("test")
        tested = tested.take(np.flatnonzero(np.isin(tested.users, self._train.users) & (tested.lengths > 1)))
        if not len(tested):
            raise DataError("interactions: no user has training events and two test events; there is nothing to test")
        k = max(self._evaluation.k)
        before = self._inputs.seen("train")
        score = scorer(model)
        everything = next_items.next_items(score, tested, k, self._order)
        new = next_items.next_items(score, tested, k, self._order, before)
        metrics = [
            record
            for protocol, ranked in zip(self.PROTOCOLS, (everything, new), strict=True)
            for record in records(protocol, next_items.next_metrics(ranked, self._evaluation.k))
        ]
        n_examples = len(everything.users)
        recommendations = pl.DataFrame(
            {
                "user": np.repeat(everything.users, k),
                "position": np.repeat(everything.positions, k),
                "rank": np.tile(np.arange(1, k + 1, dtype=np.int32), n_examples),
                "item": everything.items.ravel(),
                "score": everything.scores.ravel(),
            }
        )
        return metrics, recommendations


class Ratings:
    """Ratings of a fold, some of which their users keep to themselves (METHODS section 5).

    Validation looks at published ratings alone, so that it tells nothing of the others beyond what the model does;
    where none is published it looks at all.
    """

    metric = "negative mae"
    contract = contracts.PREDICTIONS
    protects: Protected = "rating"

    def __init__(self, inputs: Inputs, evaluation: Evaluation, training: Training) -> None:
        """inputs: of a fold (`Inputs.at`)."""
        del evaluation, training  # nothing is ranked
        assert inputs.schema.scale is not None, "the protocol gives one with the folds"
        self._inputs = inputs
        self._scale = inputs.schema.scale

    def training_data(self, cls: type[Model], seed: int) -> TrainingData:
        """See `Judge.training_data`."""
        return self._inputs.training_data(cls, seed)

    @cached_property
    def _validation(self) -> pl.DataFrame:
        valid = self._inputs.interactions.filter(pl.col("split") == "valid")
        published = valid.filter(~pl.col("sensitive"))
        return valid if published.is_empty() else published

    def validate(self, model: RatingPredictor) -> float:
        """Minus the mean absolute error, so that more is better."""
        return -rating.mae(*self._predicted(model, self._validation), self._scale.low, self._scale.high)

    def evaluate(self, model: RatingPredictor) -> Judged:
        """Errors on the fold's ratings, what the parties exchanged per iteration, and the predictions.

        Predictions are cut off at the ends of the scale but for `mae/uncut`.
        """
        tested = self._inputs.interactions.filter(pl.col("split") == "test").sort("user", "item")
        truth, predicted = self._predicted(model, tested)
        sensitive = tested["sensitive"].to_numpy()
        low, high = self._scale.low, self._scale.high
        values = {"mae": rating.mae(truth, predicted, low, high), "mae/uncut": rating.mae(truth, predicted)}
        for name, which in (("mae/sensitive", sensitive), ("mae/public", ~sensitive)):
            if which.any():
                values[name] = rating.mae(truth[which], predicted[which], low, high)
        for name, amount in model.communication().items():
            values[name if name == "iterations" else f"communication/{name}"] = amount
        metrics = [{"metric": name, "k": None, "value": value} for name, value in values.items()]
        return metrics, tested.select("user", "item", "rating", prediction=pl.Series(predicted))

    def _predicted(self, model: RatingPredictor, rows: pl.DataFrame) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        predicted = model.predict(rows["user"].to_numpy(), rows["item"].to_numpy()).numpy()
        return rows["rating"].to_numpy(), predicted


TASKS: dict[str, type[TopK] | type[NextItem] | type[Ratings]] = {
    "top-k": TopK,
    "next-item": NextItem,
    "rating": Ratings,
}


def scorer(model: NextItemRecommender | Recommender) -> Callable[[Sequences], torch.Tensor]:
    """Scores of what follows each event; of a model that knows users only, its scores of the user."""
    if isinstance(model, NextItemRecommender):
        return model.score_next
    return lambda sequences: model.score(sequences.users)[torch.from_numpy(sequences.owners)]


def records(protocol: str, found: ByCutoff) -> list[dict[str, Any]]:
    """Metrics of one protocol as records."""
    return [
        {"metric": f"{protocol}/{metric}", "k": k, "value": value}
        for metric, by_k in found.items()
        for k, value in by_k.items()
    ]
