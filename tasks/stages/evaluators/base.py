"""What a suite asks of its models: the task says how they are validated and tested."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from tasks.config.params import Evaluation, Experiment, Suite, Training
from tasks.config.tasks import TASKS, resolve
from tasks.core.hashing import Uniforms
from tasks.core.training_data import TrainingData
from tasks.evaluation import ranking
from tasks.evaluation.metrics import Measured, Record, Values, measure, records
from tasks.models.base import Model
from tasks.privacy.terms import Protected
from tasks.stages.inputs import Inputs


class Evaluated(NamedTuple):
    """What the test of one run gives."""

    measured: list[Measured]
    """Metrics under all protocols of the task."""
    released: pl.DataFrame
    """The recommendations or predictions that they were computed from."""
    further: tuple[Record, ...] = ()
    """What else was measured, which is no mean over users."""

    @property
    def metrics(self) -> list[Record]:
        """All that was measured."""
        return [*records(self.measured), *self.further]


class Evaluator(ABC):
    """What a suite asks of its models."""

    metric: str
    """The metric of validation."""
    contract: pa.Schema
    """Of the recommendations or predictions that `evaluate` gives."""
    protects: Protected
    """What models learn from."""

    def __init__(self, inputs: Inputs, evaluation: Evaluation, training: Training) -> None:
        """inputs: where ratings are predicted, of a fold (`Inputs.for_seed`)."""
        self._inputs, self._evaluation, self._training = inputs, evaluation, training

    def training_data(self, cls: type[Model], seed: int) -> TrainingData:
        """What a model of class `cls` learns from; `seed` chooses among perturbed releases of the features."""
        return self._inputs.training_data(cls, seed)

    @abstractmethod
    def validate(self, model: Any) -> float:
        """The metric of validation; the test is not looked at."""

    def test(self, model: Any) -> list[Record]:
        """Test metrics of which the best epoch is recorded, where epochs are tested; higher is better."""
        return self.evaluate(model).metrics

    @abstractmethod
    def evaluate(self, model: Any) -> Evaluated:
        """Test metrics under all protocols of the task, and the recommendations."""

    @property
    def _k(self) -> int:
        """The cut-off of validation."""
        assert self._training.validation_k is not None, "params.load asks for it where items are ranked"
        return self._training.validation_k

    def _validated(self, measured: tuple[NDArray[np.integer], Values]) -> float:
        """The metric of validation, given users and values of all metrics."""
        return float(measured[1][self.metric][self._k].mean())

    def _measure(self, protocol: str, items: NDArray[np.int32], targets: ranking.Seen) -> list[Measured]:
        """Metrics of lists of all users, (n_users, k), by the items to be found."""
        recall = self._evaluation.recall
        users, values = ranking.full_values(items, targets, self._evaluation.k, recall=recall)
        if recall == "reachable":
            values["recall-reachable"] = values.pop("recall")
        return measure(protocol, users, values)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """Of items with equal scores."""
        return ranking.item_order(self._draws)

    @cached_property
    def _draws(self) -> Uniforms:
        return self._inputs.draws(self._evaluation.seed)

    @cached_property
    def _users(self) -> NDArray[np.int32]:
        return np.arange(self._inputs.schema.n_users, dtype=np.int32)


def make_evaluator(experiment: Experiment, suite: Suite, inputs: Inputs) -> Evaluator:
    """What the task of a suite asks of an experiment's models."""
    evaluator = TASKS[suite.task].evaluator
    assert evaluator is not None, "no stage `train` has models of other tasks"
    instance: Evaluator = resolve(evaluator)(inputs, suite.evaluation, suite.training_of(experiment))
    return instance
