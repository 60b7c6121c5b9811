"""Stage `audit-training`: train private recommenders of a suite once more with canaries, and guess who was in.

Writes data/runs/<suite>/one_run.json: for each audited setting and each of two auditors (of the released network, and
of every step's release) the bound on epsilon that the guesses prove, the largest they could have proved, and what the
same auditor proves where noise is off. All bounds of a suite hold together at the confidence that it names. A bound
above what the ledger accounts for is a fault and ends the stage; one above what a paper claims is a finding.

An audited run is that of the experiment's own configuration but for the canaries: a step takes the same share of the
users, so sampling, number of steps and noise are the experiment's. All epochs are run: nothing is validated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from tasks.attacks.canaries import AuditableSteps, Canaries, HasUserLosses, Watcher, draw, insert, loss_scores
from tasks.config.attacks import TrainingAudit
from tasks.config.messages import options
from tasks.config.params import Params, entry, own_file
from tasks.core.errors import ConfigurationError, PrivacyError
from tasks.models import model_class
from tasks.models.base import Model
from tasks.pipeline.common import RUNS, require_passed, write_json
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits import one_run
from tasks.privacy.controls import scaled
from tasks.stages.attacks import Attack, Unit
from tasks.stages.inputs import read_inputs

AUDITORS = 2
"""Of a training run: one sees the released network, one what every step releases."""


class TrainingAudits(Attack[TrainingAudit, str]):
    """An experiment is a unit, at all settings that are audited: they share the run without noise."""

    stage = "audit-training"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        suite, self.file = entry("suites", name, params.suites), own_file(name, key="training_audit")
        assert suite.training_audit is not None, "or there is no such stage"
        self.suite, self.options, self.data = suite, suite.training_audit, suite.data
        self.output = RUNS / name / "one_run.json"

    @override
    def checks(self) -> list[dict[str, object]]:
        return [require_passed("processed", self.data)]

    @override
    def plan(self) -> Iterator[Unit[str]]:
        for key, audited in self.options.experiments.items():
            experiment = self.suite.experiments[key]
            inputs = read_inputs(experiment, self.params, experiment.config).digest
            yield self.unit(key, key, experiment.model_dump(mode="json"), inputs, steps=len(audited.settings))

    @override
    def attack(self, target: str, _: Path, step: Callable[[int], None]) -> list[dict[str, object]]:
        """The records of an experiment: two for each setting, one per auditor."""
        experiment, audited = self.suite.experiments[target], self.options.experiments[target]
        configs, controls = experiment.settings(), dict[str, dict[str, one_run.OneRun]]()
        if not set(audited.settings) <= set(configs):
            raise ConfigurationError(
                f"{self.file}: training_audit.experiments.{target}: a setting other than {', '.join(configs)}"
            )
        records = []
        for number, setting in enumerate(audited.settings, start=1):
            config = configs[setting]
            if "features_epsilon" in config:
                raise ConfigurationError(f"{self.file}: training_audit: {target}, {setting} sweeps its features")
            run = Audited(target, config, self.name, self.options, self.params)
            model, scores = run.scores(config)
            line = next(line for line in model.ledger() if line.protects == "interaction")
            delta = line.accounted_delta or line.claimed_delta
            without_noise = json.dumps(config | audited.control, sort_keys=True) + f" {delta}"
            if without_noise not in controls:
                controls[without_noise] = run.evaluate(run.scores(config | audited.control)[1], delta)
            with scaled(0.5):
                half = run.evaluate(run.scores(config)[1], delta)
            about = {"experiment": target, "setting": setting, "model": experiment.system}
            for auditor, result in run.evaluate(scores, delta).items():
                control = controls[without_noise][auditor]
                records.append(about | {"auditor": auditor} | _record(result, control, half[auditor], line, delta))
            step(number)
        return records

    @override
    def write(self, units: list[Unit[str]], path: Path) -> None:
        self.records = [record for unit in units for record in unit.result()]
        write_json(path, self.records)

    @override
    def refuse(self) -> None:
        for record in self.records:
            if record["accounted"] is not None and record["epsilon"] > record["accounted"]:
                raise PrivacyError(
                    f"{self.output}: {record['experiment']}, {record['setting']}: accounted at epsilon "
                    f"{record['accounted']:.4g}, but its training proves at least {record['epsilon']:.3g}; "
                    "mend the model before anything is released"
                )


def corrected_confidence(audit: TrainingAudit) -> float:
    """Of each bound, such that all bounds of a suite hold together at `audit.confidence` (Bonferroni)."""
    bounds = AUDITORS * sum(len(audited.settings) for audited in audit.experiments.values())
    return 1 - (1 - audit.confidence) / bounds


class Audited:
    """An experiment's training data with canaries, and what auditors make of training on them."""

    def __init__(self, name: str, config: dict[str, object], suite: str, audit: TrainingAudit, params: Params) -> None:
        experiment = params.experiments[name]
        self._cls = model_class(experiment.model)
        if not issubclass(self._cls, Model) or not hasattr(self._cls, "losses"):
            raise ConfigurationError(
                f"{own_file(suite, key='training_audit')}: training_audit.experiments.{name}: {experiment.model} does "
                "not say what users lose; audit models that have `losses`"
            )
        self._where, self._audit = (f"experiments.{name}", own_file(suite)), audit
        self._control = config | audit.experiments[name].control
        self._data = read_inputs(experiment, params, config).training_data(self._cls, audit.seed)
        if not self._model(config).reads_ratings():
            self._data = replace(self._data, ratings=None)
        self._seeds = np.random.SeedSequence(audit.seed).spawn(4)
        self._canaries = draw(self._data, audit.canaries, audit.items, self._rng(0))

    def scores(self, config: dict[str, object]) -> tuple[Model, dict[str, NDArray[np.float64]]]:
        """The model that was trained once with canaries; auditor -> its scores of the canaries, (m,)."""
        model = self._model(config)
        watcher = None
        if isinstance(model, AuditableSteps):
            model.watch = watcher = Watcher(model, self._canaries, self._data)
        self._fit(model, self._canaries, self._rng(1))
        assert isinstance(model, HasUserLosses)
        scores = {"network": loss_scores(model, self._reference, self._canaries, self._data.n_items)}
        return model, scores | ({} if watcher is None else {"steps": watcher.scores})

    def evaluate(self, scores: dict[str, NDArray[np.float64]], delta: float) -> dict[str, one_run.OneRun]:
        """What the scores of each auditor prove."""
        included, guesses, confidence = self._canaries.included, self._audit.guesses, corrected_confidence(self._audit)
        return {
            auditor: one_run.audit(values, included, guesses, delta, confidence) for auditor, values in scores.items()
        }

    @cached_property
    def _reference(self) -> HasUserLosses:
        """What an auditor trains who knows the real users: without noise, and without any canary."""
        model = self._fit(
            self._model(self._control),
            replace(self._canaries, included=np.zeros_like(self._canaries.included)),
            self._rng(2),
        )
        assert isinstance(model, HasUserLosses)
        return model

    def _model(self, config: dict[str, Any]) -> Model:
        """A step takes the share of users that it takes in the experiment."""
        if "batch_size" in config:
            share = config["batch_size"] / self._data.n_users
            config = config | {"batch_size": round(share * (self._data.n_users + self._audit.canaries))}
        where, path = self._where
        return self._cls(options(self._cls.Config, config, f"{where}.config, audited", path))

    def _fit(self, model: Model, canaries: Canaries, rng: np.random.Generator) -> Model:
        return model.fit(insert(self._data, canaries, self._rng(3)), rng=rng)

    def _rng(self, use: int) -> np.random.Generator:
        """Canaries and coins, audited training, reference and copied features each have a stream of their own."""
        return np.random.default_rng(self._seeds[use])


def _record(
    run: one_run.OneRun, control: one_run.OneRun, half: one_run.OneRun, line: LedgerEntry, delta: float
) -> dict[str, object]:
    """What is written: the claim is what is accounted for, or what the paper claims where nothing is.

    control, half: the same audit of training without noise, and with half of it.
    """
    claim = line.claimed_epsilon if line.accounted_epsilon is None else line.accounted_epsilon
    p_value = None if claim is None else one_run.p_value(run.canaries, run.guesses, run.correct, claim, delta)
    return {
        "unit": line.unit,
        "neighbouring": line.neighbouring,
        "accounting": line.accounting,
        "claimed": line.claimed_epsilon,
        "accounted": line.accounted_epsilon,
        "delta": delta,
        "epsilon": run.epsilon,
        "confidence": run.confidence,
        "canaries": run.canaries,
        "guesses": run.guesses,
        "correct": run.correct,
        "p_value": p_value,
        "provable": run.provable,
        "control": control.epsilon,
        "control_correct": control.correct,
        "control_half": half.epsilon,
    }


work, main = TrainingAudits.commands(__name__)
