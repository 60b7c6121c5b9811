"""Stage `attack-edges`: can someone tell two worlds apart that differ in one interaction of one user?

For each budget of each system under attack, an attacker tries on tested users' sequences, from which an interaction is
removed, an earlier one or the last, or two neighbouring ones swapped. It sees the aggregates that the system releases,
its list at the end, or its lists after every event, in as many independent inferences as there are trials
(`tasks.attacks.edges`). Without noise, as in the control, inferences are all the same. The same attacker is shown
random lists and the most popular items, which tell nothing. Writes data/runs/<suite>/edges/: edges.parquet and
inputs.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from typing_extensions import override

from tasks.attacks import edge_worlds, edges
from tasks.config.attacks import EdgeAttack
from tasks.config.fields import BASE
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DataError
from tasks.core.sequences import Sequences
from tasks.evaluation import ranking
from tasks.models import model_class
from tasks.models.sessions.dipsgnn import DIPSGNN, IN_TRAINING
from tasks.models.sessions.edgerand import EdgeRand
from tasks.pipeline.common import RUNS, file_digest, read_json
from tasks.stages.attacks import SuiteAttack, Unit
from tasks.stages.inputs import Inputs, read_inputs

if TYPE_CHECKING:
    from tasks.core.rows import Row


class Trained(NamedTuple):
    """A model to attack: one setting's first seed, of a system or of the control that belongs to it."""

    system: str
    experiment: str
    setting: str
    is_control: bool = False


class InteractionAttack(SuiteAttack[EdgeAttack, Trained]):
    """Every budget of every system is a unit, and the control after each system's."""

    stage, kind, writes = "attack-edges", EdgeAttack, "edges"

    @override
    def plan(self) -> Iterator[Unit[Trained]]:
        decides = self.inputs.digest, self.suite.evaluation.seed
        for system in self.options.systems:
            experiment = self.suite.experiments[system]
            budgets = [
                Trained(system, system, setting)
                for setting, config in experiment.settings().items()
                if set(config.items()) - set(experiment.config.items()) <= {("epsilon", config.get("epsilon"))}
            ]
            for trained in (*budgets, Trained(system, self.options.control, BASE, is_control=True)):
                label = f"{system}-{'control' if trained.is_control else trained.setting}"
                model = file_digest(self.file(trained)), self.epochs(trained), trained.is_control
                yield self.unit(label, trained, *model, *decides, steps=len(edge_worlds.WORLDS))

    @override
    def attack(self, target: Trained, _: Path, __: Callable[[int], None]) -> list[dict[str, object]]:
        model = self.model(target)
        order = ranking.item_order(self.inputs.draws(self.suite.evaluation.seed))
        released = released_model(model, self.options, order, self.epochs(target))
        about = {"system": target.system, "setting": BASE, "epsilon": model.config.epsilon}
        return [about | row for row in edge_worlds.attack(released, self.targets, self.trials)]

    @override
    def write(self, units: list[Unit[Trained]], path: Path) -> Row:
        rows = [*(row for unit in units for row in unit.result()), *self.controls()]
        contracts.write(pl.DataFrame(rows), path / "edges.parquet", edges.EDGES)
        return {}

    def controls(self) -> list[dict[str, object]]:
        """The attack on lists that tell nothing."""
        popularity = np.bincount(self.inputs.sequences("train").items, minlength=self.inputs.schema.n_items)
        return [
            {"system": control, "setting": BASE, "epsilon": None} | row
            for control, row in edge_worlds.attack_controls(self.targets, popularity, self.options.k, self.trials)
        ]

    @property
    def trials(self) -> edge_worlds.Trials:
        """How often, and the seed."""
        return edge_worlds.Trials(self.options.trials, self.options.seed)

    @cached_property
    def inputs(self) -> Inputs:
        """Those of the control."""
        control = self.suite.experiments[self.options.control]
        return read_inputs(control, self.params, control.config)

    @cached_property
    def targets(self) -> list[edge_worlds.Target]:
        """The sequences to attack, see `edge_worlds.choose_targets`.

        Raises:
            DataError: there is none.
        """
        users, options = self.inputs.sequences("train").users, self.options
        targets = edge_worlds.choose_targets(self.inputs.sequences("test"), users, options.targets, options.seed)
        if not targets:
            raise DataError(
                f"{self.inputs.processed}: no tested sequence of {edge_worlds.SHORTEST} events or more, of a user who "
                "trained; keep more of each user, or leave the attack out"
            )
        return targets

    def file(self, trained: Trained) -> Path:
        """The trained model."""
        seed = self.suite.experiments[trained.experiment].seeds[0]
        folder = RUNS / self.name / trained.experiment / "train" / "models" / trained.setting
        return folder / f"seed-{seed}.safetensors"

    def epochs(self, trained: Trained) -> int:
        """How many epochs its training had, validation and all."""
        history = read_json(RUNS / self.name / trained.experiment / "train" / "history.json")
        return len(history[trained.setting][str(self.suite.experiments[trained.experiment].seeds[0])])

    def model(self, trained: Trained) -> DIPSGNN:
        """The model.

        Raises:
            ConfigurationError: a system has no noise, the control has some, or it aggregates no graph.
        """
        experiment = self.suite.experiments[trained.experiment]
        model = model_class(experiment.model).load(self.file(trained))
        if not isinstance(model, DIPSGNN):
            raise ConfigurationError(
                f"attack: {trained.experiment} aggregates no graph; the attack on edges knows nothing of it"
            )
        if trained.is_control and model.config.epsilon is not None:
            raise ConfigurationError(f"attack.control: {trained.experiment} has noise; name a system without")
        if not trained.is_control and model.config.epsilon is None:
            raise ConfigurationError(f"attack.systems: {trained.experiment} has no noise; it can be the control alone")
        model.key = experiment.seeds[0]  # the secret of training is in no file, and inferences have noise of their own
        return model


def released_model(model: DIPSGNN, options: EdgeAttack, order: NDArray[np.int64], epochs: int) -> edge_worlds.Released:
    """What an attacker sees of a model. Aggregates are those of a sequence that was trained on.

    Args:
        order: of items with equal scores.
        epochs: of training, each of which released noisy aggregates, unless those of all are one release.
    """
    return edge_worlds.Released(
        states=lambda user: model.aggregated_states(user).double().cpu().numpy(),
        sigma=model.sigma,
        releases=min(model.releases, epochs),
        lists=lambda user, items, first: recommended_lists(model, user, items, options, order, first),
        n_items=len(order),
        twice=model.config.accounting in IN_TRAINING and not isinstance(model, EdgeRand),  # noise of every state
    )


def recommended_lists(
    model: DIPSGNN, user: int, items: NDArray[np.int32], options: EdgeAttack, order: NDArray[np.int64], first: int
) -> NDArray[np.int32]:
    """The lists after every event of a sequence, in independent inferences: (trials, n_events, k).

    Where inference is without noise they are all the same, and computed once. first: number of the first draw of noise;
    no two sequences that are distinguished share one.
    """
    trials = options.trials if model.noisy_inference else 1
    repeated = Sequences(
        np.full(trials, user, np.int32), np.arange(trials + 1, dtype=np.int64) * len(items), np.tile(items, trials)
    )
    scores = model.score_again(repeated, first + np.arange(trials))
    rows, unseen = np.arange(len(scores), dtype=np.int32), ranking.Seen.none(len(scores))
    lists, _ = ranking.top_k(lambda part: scores[torch.from_numpy(part).long()], rows, unseen, options.k, order)
    lists = lists.reshape(trials, len(items), -1)
    return np.broadcast_to(lists, (options.trials, *lists.shape[1:]))


work, main = InteractionAttack.commands(__name__)
