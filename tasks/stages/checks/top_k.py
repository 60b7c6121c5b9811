"""The task `top-k`: the lists of all users."""

from __future__ import annotations

from tasks import contracts
from tasks.config.params import Experiment, Suite
from tasks.quality import suites
from tasks.stages.checks.subject import Names, Subject, released_lists


def released(key: str, experiment: Experiment, suite: Suite) -> Subject:
    """Lists, beside the interactions that their system learnt from."""
    return released_lists(key, experiment, suite, contracts.RECOMMENDATIONS, suites.recommendations)


def metrics(suite: Suite, _: Experiment, __: str) -> Names:
    """Those that training measures."""
    evaluation = suite.evaluation
    assert evaluation.negatives is not None, "params.load asks for them where lists are judged"
    return [*suites.ranking_metrics(evaluation.k, evaluation.negatives, evaluation.recall)]
