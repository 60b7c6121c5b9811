"""Which systems of a suite are compared with which: few pairs, that the suite's file decides before anything runs."""

from __future__ import annotations

import math
from typing import Any

from tasks.config.params import Experiment, Suite
from tasks.config.tasks import TASKS
from tasks.results.facts import NOISY, layer_of


def planned_pairs(suite: Suite) -> list[tuple[str, str]]:
    """Experiments (a, b): each private system with noisy popularity, and with its ceiling (`Suite.ceilings`).

    Both are on the same data, private for units of their own: utility is compared. None where users are not tested.
    """
    if TASKS[suite.task].evaluator is None:
        return []
    baselines = {name: entry for name, entry in suite.experiments.items() if entry.model in NOISY}
    pairs = []
    for name, experiment in suite.experiments.items():
        if not is_private(experiment):
            continue
        if name not in baselines:
            pairs += [(name, other) for other, entry in baselines.items() if entry.data == experiment.data]
        pairs += [(name, suite.ceilings[name])] if name in suite.ceilings else []
    return pairs


def is_private(experiment: Experiment) -> bool:
    """Whether a finite budget is spent at setting `base`: by the model, or on the features that it reads."""
    return has_budget(experiment.config) or layer_of(experiment.features)[0] == "perturbed"


def has_budget(config: dict[str, Any]) -> bool:
    """Whether a model that is so configured spends a finite budget."""
    budget = config.get("epsilon_max", config.get("epsilon"))
    return budget is not None and math.isfinite(budget) and config.get("privacy") != "none"
