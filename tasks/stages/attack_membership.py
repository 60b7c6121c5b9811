"""Stage `attack-membership`: who, and which interactions, a suite's systems were trained on.

Trains every attacked system at setting `base` again and again on random parts of the training interactions: the run
that is attacked and its shadows (`tasks.attacks.shadows`). All epochs are run, nothing is validated. Writes
data/runs/<suite>/membership/: membership.parquet and inputs.json.

Nothing but what training released distinguishes members from others, so an accounted (ε, δ) bounds the attacks
(`shadows.refute`). What refutes the ledger ends the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import torch
from typing_extensions import override

from tasks.attacks import shadows
from tasks.config.attacks import MembershipAttack
from tasks.config.fields import BASE, model_config
from tasks.core.device import hold
from tasks.core.errors import PrivacyError
from tasks.core.training_data import TrainingData
from tasks.models import model_class
from tasks.models.base import Recommender
from tasks.models.ranking.folding import fold_in
from tasks.models.ranking.many import fit_many, together
from tasks.privacy.accounting.account import account
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.units import group_event
from tasks.privacy.units import steps as steps_between
from tasks.stages.attacks import SuiteAttack, Unit
from tasks.stages.inputs import read_inputs

if TYPE_CHECKING:
    from tasks.core.rows import Row

SIGNALS = "signals.npz"
ALARM = 0.01
"""Probability that any of the tests of a suite refutes a guarantee that holds."""


class Runs(NamedTuple):
    """Some runs of one system; run 0 is the attacked one."""

    system: str
    numbers: tuple[int, ...]


class Membership(SuiteAttack[MembershipAttack, Runs]):
    """As many runs of a system as its models are best fitted at a time are a unit."""

    stage, kind, writes = "attack-membership", MembershipAttack, "membership"

    @override
    def plan(self) -> Iterator[Unit[Runs]]:
        for system in self.options.systems:
            experiment = self.suite.experiments[system]
            inputs = read_inputs(experiment, self.params, experiment.config).digest
            numbers, size = range(1 + self.options.shadows_of(system)), together(model_class(experiment.model))
            for start in range(0, len(numbers), size):
                some = Runs(system, tuple(numbers[start : start + size]))
                label = f"{system}-{some.numbers[0]}-{some.numbers[-1]}"
                yield self.unit(label, some, experiment.model_dump(mode="json"), inputs, some, steps=len(some.numbers))

    @override
    @hold(torch.device("cpu"))  # small models, which are served from the CPU
    def attack(self, target: Runs, path: Path, step: Callable[[int], None]) -> list[dict[str, Any]]:
        cls, data, targets = self.read_targets(target.system)
        experiment, seed = self.suite.experiments[target.system], self.options.seed
        coins = [shadows.toss(targets, number) for number in target.numbers]
        models = fit_many(
            cls,
            cls.Config.model_validate(model_config(experiment.config)),
            [restrict(data, trained) for trained, _ in coins],
            [np.random.default_rng([seed, number, *b"fit"]) for number in target.numbers],
            [(experiment.data, target.system, BASE, f"membership {number}") for number in target.numbers],
        )
        signals = []
        for model in models:
            scores = fold_in(model, targets.served, data.n_items)
            signals.append(shadows.read_signals(scores, targets, self.options.k))
            step(len(signals))
        arrays: dict[str, Any] = {name: np.array([run[name] for run in signals]) for name in shadows.SEEN}
        np.savez(path / SIGNALS, **arrays, included=np.array([included for _, included in coins]))
        return [entry.model_dump(mode="json") for entry in models[0].ledger()]

    @override
    def write(self, units: list[Unit[Runs]], path: Path) -> Row:
        systems, rows = self.options.systems, list[dict[str, Any]]()
        alarm = ALARM / (len(systems) * len(shadows.KINDS) * len(shadows.SEEN) * shadows.ATTACKS)
        for system in systems:
            parts = [unit for unit in units if unit.target.system == system]
            bounds = accounted([LedgerEntry.model_validate(entry) for entry in parts[0].result()])
            arrays = [dict(np.load(unit.done / SIGNALS)) for unit in parts]
            signals = {name: np.concatenate([part[name] for part in arrays]) for name in arrays[0]}
            included = signals.pop("included")
            _, _, targets = self.read_targets(system)
            records = shadows.records(signals, included, targets, bounds, alarm, self.options.seed)
            rows += [{"system": system} | row for row in records]
        self.rows = rows
        pl.DataFrame(rows, schema=shadows.COLUMNS).write_parquet(path / "membership.parquet")
        return {}

    @override
    def refuse(self) -> None:
        for row in self.rows:
            if row.get("refuted"):
                raise PrivacyError(
                    f"{self.output}: {row['system']}: accounted at epsilon {row['epsilon']:.4g} for one "
                    f"{row['target']}, but {row['attack']} on {row['seen']} finds more than that allows (AUC "
                    f"{row['auc']:.3f}, and epsilon is at least {row['proved']:.3g}); mend the model before anything "
                    "is released"
                )

    def read_targets(self, system: str) -> tuple[type[Recommender], TrainingData, shadows.Targets]:
        """A system's class, all that it may be trained on, and who is attacked: the same for systems on equal data."""
        experiment = self.suite.experiments[system]
        cls = model_class(experiment.model)
        assert issubclass(cls, Recommender)
        inputs = read_inputs(experiment, self.params, experiment.config)
        data, draws = inputs.training_data(cls, experiment.seeds[0]), inputs.draws(self.options.seed)
        return cls, data, shadows.choose(data.users, data.items, draws, self.options.asked)


def accounted(ledger: list[LedgerEntry]) -> shadows.Bounds:
    """What is accounted for of users and of interactions: all releases together, by group privacy where it takes steps.

    A kind of target has no bound where a release has no finite ε for it. Entries of the same events, for several units,
    are one release.
    """
    bounds: shadows.Bounds = {}
    entries = [entry for entry in ledger if entry.protects == "interaction"]
    if any(entry.accounted_epsilon is None for entry in entries):
        return bounds
    for kind in shadows.KINDS:
        steps: dict[tuple[str, ...], tuple[int, LedgerEntry]] = {}
        for entry in entries:
            key = tuple(event.model_dump_json() for event in entry.events)
            counts = steps.get(key, (0, entry))[0], steps_between(kind, entry.unit)
            steps[key] = (min(filter(None, counts), default=0), entry)
        if steps and all(count for count, _ in steps.values()):
            events = [group_event(event, count) for count, entry in steps.values() for event in entry.events]
            total = account(events, max(entry.accounted_delta or 0.0 for entry in entries))
            if total.epsilon is not None:
                bounds[kind] = (total.epsilon, total.delta)
    return bounds


def restrict(data: TrainingData, trained: shadows.Bools) -> TrainingData:
    """The same with these interactions alone; no one's features are left out."""
    ratings = None if data.ratings is None else data.ratings[trained]
    return replace(data, users=data.users[trained], items=data.items[trained], ratings=ratings)


work, main = Membership.commands(__name__)
