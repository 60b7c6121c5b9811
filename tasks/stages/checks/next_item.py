"""The task `next-item`: lists after every prefix of a held-out sequence."""

from __future__ import annotations

from tasks import contracts
from tasks.config.params import Experiment, Suite
from tasks.quality import suites
from tasks.stages.checks.subject import Names, Subject, released_lists


def released(key: str, experiment: Experiment, suite: Suite) -> Subject:
    """Lists, beside the interactions that their system learnt from."""
    return released_lists(key, experiment, suite, contracts.NEXT_ITEMS, suites.next_items)


def metrics(suite: Suite, _: Experiment, __: str) -> Names:
    """Those that training measures."""
    return [*suites.next_item_metrics(suite.evaluation.k)]
