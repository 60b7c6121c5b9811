"""The task `rating`: the ratings of a fold, some of which their users keep to themselves."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.core import contracts
from tasks.core.contracts import RatingScale
from tasks.evaluation import rating
from tasks.evaluation.metrics import record
from tasks.models.base import RatingPredictor
from tasks.privacy.terms import Protected
from tasks.stages.evaluators.base import Evaluated, Evaluator


class Ratings(Evaluator):
    """Ratings of a fold, some of which their users keep to themselves (docs/methods.md §5).

    Validation looks at published ratings alone, as the model predicts them, which may be trained on the others;
    where none is published it looks at all.
    """

    metric = "negative-mae"
    contract = contracts.PREDICTIONS
    protects: Protected = "rating"

    @property
    def _scale(self) -> RatingScale:
        assert self._inputs.schema.scale is not None, "the protocol gives one with the folds"
        return self._inputs.schema.scale

    @cached_property
    def _validation(self) -> pl.DataFrame:
        valid = self._inputs.interactions.filter(pl.col("split") == "valid")
        published = valid.filter(~pl.col("sensitive"))
        return valid if published.is_empty() else published

    def validate(self, model: RatingPredictor) -> float:
        """Minus the mean absolute error, so that more is better."""
        return -rating.mae(*self._predict(model, self._validation), self._scale.low, self._scale.high)

    def evaluate(self, model: RatingPredictor) -> Evaluated:
        """Errors on the fold's ratings, what the parties exchanged per iteration, and the predictions.

        Predictions are cut off at the ends of the scale but for `mae/uncut`.
        """
        tested = self._inputs.interactions.filter(pl.col("split") == "test").sort("user", "item")
        truth, predicted = self._predict(model, tested)
        users, sensitive = tested["user"].to_numpy(), tested["sensitive"].to_numpy()
        measured = rating.errors(users, truth, predicted, sensitive, self._scale.low, self._scale.high)
        further = tuple(
            record(name if name == "iterations" else f"communication/{name}", amount)
            for name, amount in model.communication().items()
        )
        released = tested.select("user", "item", "rating", prediction=pl.Series(predicted))
        return Evaluated(measured, released, further)

    def _predict(self, model: RatingPredictor, rows: pl.DataFrame) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        predicted = model.predict(rows["user"].to_numpy(), rows["item"].to_numpy()).numpy()
        return rows["rating"].to_numpy(), predicted
