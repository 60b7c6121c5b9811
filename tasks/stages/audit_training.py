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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.attacks.canaries import AuditableSteps, Canaries, HasUserLosses, Watcher, draw, insert, loss_scores
from tasks.config.attacks import TrainingAudit
from tasks.config.messages import options
from tasks.config.params import Params, entry, load, own_file
from tasks.errors import ConfigurationError, PrivacyError
from tasks.models import model_class
from tasks.models.base import Model
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.privacy.audits import one_run
from tasks.privacy.controls import scaled
from tasks.stages import runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import CHECKPOINTS, RUNS, atomic_write, read_json, require_passed, write_json
from tasks.stages.inputs import read_inputs
from tasks.stages.screen import Screen

KEPT, RECORDS = CHECKPOINTS / "audit-training", "records.json"
AUDITORS = 2
"""Of a training run: one sees the released network, one what every step releases."""


@dataclass(frozen=True)
class Unit(runs.Unit):
    """One experiment, at all settings that are audited: they share the run without noise beside them."""

    experiment: str


def work(name: str) -> runs.Work[Unit]:
    """What auditing the training runs of suite `name` consists of."""
    torch.set_num_threads(1)
    params = load()
    audit = entry("suites", name, params.suites).training_audit
    if audit is None:
        raise ConfigurationError(f"{_file(name)}: training_audit: is null; there is nothing to audit")
    require_passed("processed", params.suites[name].data)
    units = plan(name, audit, params)
    return runs.Work(
        title=f"audit-training {name}",
        units=units,
        run=lambda unit, place, screen: complete(unit, name, audit, params, place, screen),
        assemble=lambda: assemble(name, units),
        kept=KEPT / name,
    )


def plan(name: str, audit: TrainingAudit, params: Params) -> list[Unit]:
    """Every experiment that is audited."""
    code, units = fingerprint("audit-training", name, params), []
    for key in audit.experiments:
        experiment = params.suites[name].experiments[key]
        inputs = read_inputs(experiment, params, experiment.config).digest
        decides = [audit.model_dump(mode="json"), experiment.model_dump(mode="json"), inputs, code]
        units.append(Unit(key, runs.folder_of(KEPT / name, key, *decides), key))
    return units


def complete(unit: Unit, name: str, audit: TrainingAudit, params: Params, place: Path, screen: Screen) -> None:
    """Audit one experiment, and write its records below `place`."""
    settings = audit.experiments[unit.experiment].settings
    screen.begin(unit.experiment, len(settings))
    records = []
    for record in audit_records(name, unit.experiment, audit, params):
        records.append(record)
        screen.step(len({made["setting"] for made in records}))
    write_json(place / RECORDS, records)


def assemble(name: str, units: list[Unit]) -> None:
    """Put the records of all experiments together as the stage's output.

    Raises:
        PrivacyError: a run proves more than is accounted for.
    """
    records = [record for unit in units for record in read_json(unit.done / RECORDS)]
    with atomic_write(RUNS / name / "one_run.json") as place:
        write_json(place, records)
    for record in records:
        if record["accounted"] is not None and record["epsilon"] > record["accounted"]:
            raise PrivacyError(
                f"{RUNS / name / 'one_run.json'}: {record['experiment']}, {record['setting']}: accounted at epsilon "
                f"{record['accounted']:.4g}, but its training proves at least {record['epsilon']:.3g}; "
                "mend the model before anything is released"
            )


def corrected_confidence(audit: TrainingAudit) -> float:
    """Of each bound, such that all bounds of a suite hold together at `audit.confidence` (Bonferroni)."""
    bounds = AUDITORS * sum(len(of.settings) for of in audit.experiments.values())
    return 1 - (1 - audit.confidence) / bounds


def _file(suite: str) -> Path:
    return own_file(suite, key="training_audit")


def audit_records(suite: str, name: str, audit: TrainingAudit, params: Params) -> Iterator[dict[str, Any]]:
    """The records of an experiment: two for each setting, one per auditor."""
    settings, control_config = audit.experiments[name].settings, audit.experiments[name].control
    experiment = params.suites[suite].experiments[name]
    known = experiment.settings()
    if not set(settings) <= set(known):
        raise ConfigurationError(
            f"{_file(suite)}: training_audit.experiments.{name}: a setting other than {', '.join(known)}"
        )
    controls: dict[str, dict[str, one_run.OneRun]] = {}
    for setting in settings:
        config = known[setting]
        if "features_epsilon" in config:
            raise ConfigurationError(f"{_file(suite)}: training_audit: {name}, {setting} sweeps its features")
        run = Audited(name, config, suite, audit, params)
        model, scores = run.scores(config)
        entry = next(entry for entry in model.ledger() if entry.protects == "interaction")
        delta = entry.accounted_delta or entry.claimed_delta
        without_noise = json.dumps(config | control_config, sort_keys=True) + f" {delta}"
        if without_noise not in controls:
            _, of_control = run.scores(config | control_config)
            controls[without_noise] = {auditor: run.evaluate(guesses, delta) for auditor, guesses in of_control.items()}
        with scaled(0.5):
            _, of_half = run.scores(config)
        for auditor, guesses in scores.items():
            control, half = controls[without_noise][auditor], run.evaluate(of_half[auditor], delta)
            about = {"experiment": name, "setting": setting, "model": experiment.system, "auditor": auditor}
            yield about | _record(run.evaluate(guesses, delta), control, half, entry, delta)


class Audited:
    """An experiment's training data with canaries, and what auditors make of training on them."""

    def __init__(self, name: str, config: dict[str, Any], suite: str, audit: TrainingAudit, params: Params) -> None:
        experiment = params.experiments[name]
        self._cls = model_class(experiment.model)
        if not issubclass(self._cls, Model) or not hasattr(self._cls, "losses"):
            raise ConfigurationError(
                f"{_file(suite)}: training_audit.experiments.{name}: {experiment.model} does not say what users "
                "lose; audit models that have `losses`"
            )
        self._where, self._audit = (f"experiments.{name}", own_file(suite)), audit
        self._control = config | audit.experiments[name].control
        self._data = read_inputs(experiment, params, config).training_data(self._cls, audit.seed)
        if not self._model(config).reads_ratings():
            self._data = replace(self._data, ratings=None)
        self._seeds = np.random.SeedSequence(audit.seed).spawn(4)
        self._canaries = draw(self._data, audit.canaries, audit.items, self._rng(0))

    def scores(self, config: dict[str, Any]) -> tuple[Model, dict[str, NDArray[np.float64]]]:
        """The model that was trained once with canaries; auditor -> its scores of the canaries, (m,)."""
        model = self._model(config)
        watcher = None
        if isinstance(model, AuditableSteps):
            model.watch = watcher = Watcher(model, self._canaries, self._data)
        self._fit(model, self._canaries, self._rng(1))
        assert isinstance(model, HasUserLosses)
        scores = {"network": loss_scores(model, self._reference, self._canaries, self._data.n_items)}
        return model, scores | ({} if watcher is None else {"steps": watcher.scores})

    def evaluate(self, scores: NDArray[np.float64], delta: float) -> one_run.OneRun:
        """What scores prove."""
        audit = self._audit
        return one_run.audit(scores, self._canaries.included, audit.guesses, delta, corrected_confidence(audit))

    @cached_property
    def _reference(self) -> HasUserLosses:
        """What an auditor trains who knows the real users: without noise, and without any canary."""
        model = self._fit(self._model(self._control), self._canaries.all_out(), self._rng(2))
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
    run: one_run.OneRun, control: one_run.OneRun, half: one_run.OneRun, entry: LedgerEntry, delta: float
) -> dict[str, Any]:
    """What is written: the claim is what is accounted for, or what the paper claims where nothing is.

    control, half: the same audit of training without noise, and with half of it.
    """
    claim = entry.claimed_epsilon if entry.accounted_epsilon is None else entry.accounted_epsilon
    p_value = None if claim is None else one_run.p_value(run.canaries, run.guesses, run.correct, claim, delta)
    return {
        "unit": entry.unit,
        "neighbouring": entry.neighbouring,
        "accounting": entry.accounting,
        "claimed": entry.claimed_epsilon,
        "accounted": entry.accounted_epsilon,
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


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
