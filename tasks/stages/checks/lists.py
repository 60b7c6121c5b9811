"""The tasks whose systems release lists: `top-k`, of all users, and `next-item`, after every prefix of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from tasks import contracts
from tasks.config.params import Experiment, Suite
from tasks.quality import suites
from tasks.stages.checks.subject import ListRules, Names, Subject, released_lists


class Lists(NamedTuple):
    """What lists and their metrics must be."""

    contract: pa.Schema
    rules: ListRules
    measured: Callable[[Suite, Experiment], Sequence[tuple[str, int | None]]]
    """Names of the metrics of an experiment."""

    def released(self, key: str, experiment: Experiment, suite: Suite) -> Subject:
        """Lists, beside the interactions that their system learnt from."""
        return released_lists(key, experiment, suite, self.contract, self.rules)

    def metrics(self, suite: Suite, experiment: Experiment, _: str) -> Names:
        """Those that training measures."""
        return [*self.measured(suite, experiment)]


def _ranking_metrics(suite: Suite, _: Experiment) -> Sequence[tuple[str, int | None]]:
    evaluation = suite.evaluation
    assert evaluation.negatives is not None, "params.load asks for them where lists are judged"
    return suites.ranking_metrics(evaluation.k, evaluation.negatives, evaluation.recall)


def _next_item_metrics(suite: Suite, experiment: Experiment) -> Sequence[tuple[str, int | None]]:
    return suites.next_item_metrics(suite.evaluation.k, chosen_on_test=experiment.chosen_on_test is not None)


TOP_K = Lists(contracts.RECOMMENDATIONS, suites.recommendations, _ranking_metrics)
NEXT_ITEM = Lists(contracts.NEXT_ITEMS, suites.next_items, _next_item_metrics)
