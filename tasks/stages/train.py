"""Stage `train`: one experiment, all its settings and seeds.

Writes data/runs/<suite>/<experiment>/released/ (what a deployed system exposes: recommendations or predictions, the
interactions it was given where these are not the true ones, what untrusted parties hold) and .../train/ (models,
metrics and what they are for each user, ledger, history, inputs.json). Every finished (setting, seed) and every epoch
of an unfinished one is kept under data/checkpoints/, named by everything that decides it, so that a rerun goes on where
it stopped and a changed sweep point does not repeat the others.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import torch

from tasks import contracts
from tasks.config.fields import BASE, model_config
from tasks.config.params import Experiment, Params, entry, load
from tasks.evaluation import pairs
from tasks.evaluation.metrics import Record
from tasks.evaluation.run_numbers import seed_of
from tasks.models import model_class
from tasks.models.base import SILENT, Model, RatingPredictor, own_file
from tasks.models.replayed import Informing, Replaying
from tasks.models.training import EpochModel
from tasks.privacy.accounting.gaps import prepared_entry, secure_entry
from tasks.privacy.accounting.ledger import LedgerEntry, unprotected_entry
from tasks.privacy.terms import Protected, because
from tasks.stages import replayed, runs
from tasks.stages.code import fingerprint
from tasks.stages.command import run_stage
from tasks.stages.common import (
    CHECKPOINTS,
    RUNS,
    atomic_write,
    read_json,
    require_inputs,
    write_json,
)
from tasks.stages.evaluators.base import evaluator_class
from tasks.stages.inputs import Inputs, read_inputs
from tasks.stages.monitor import Monitor
from tasks.stages.screen import Screen

TABLES = "tables"
"""Of a finished unit, the folder of released tables other than its recommendations."""
USERS = "users"
"""Of a run at setting `base`, what it is worth to each user (`pairs.BY_USER`); never among results."""


@dataclass(frozen=True)
class Unit(runs.SeedUnit):
    """One setting with one seed on one split: what is trained and evaluated at a time; `seed` is the run's number."""

    config: dict[str, Any]
    inputs: Inputs


def work(name: str) -> runs.Work[Unit]:
    """What training experiment `name` consists of."""
    torch.set_num_threads(1)
    params = load()
    experiment = entry("experiments", name, params.experiments)
    checks: list[dict[str, Any]] = []
    for data in dict.fromkeys(params.suites[experiment.suite].runs(experiment, BASE).values()):
        more = require_inputs(data, params.features_of(experiment, data), experiment.suite)
        checks += [check for check in more if check not in checks]
    units = plan(name, params)
    return runs.Work(
        title=name,
        units=units,
        run=lambda unit, place, screen: complete(unit, name, params, place, screen),
        assemble=lambda: assemble(name, params, units, checks),
        kept=CHECKPOINTS / experiment.suite / name,
    )


def plan(name: str, params: Params) -> list[Unit]:
    """Every setting, seed and split of experiment `name`."""
    experiment = params.experiments[name]
    suite, code = params.suites[experiment.suite], fingerprint("train", name, params)
    shared = [experiment.data, experiment.model, code]
    evaluation: list[Any] = [
        suite.evaluation.model_dump(),
        suite.training_of(experiment).model_dump(),
        experiment.noise,
    ]
    evaluation += ["chosen on test"] * bool(experiment.chosen_on_test)
    units = []
    for setting, config in experiment.settings().items():
        share = config.get("sensitive_share")
        own = model_config(config)
        by_data: dict[str, Inputs] = {}
        for seed, data in suite.runs(experiment, setting).items():
            if data not in by_data:
                by_data[data] = read_inputs(experiment, params, config, data)
            inputs = by_data[data]
            label, kept = f"{setting}-seed-{seed}", CHECKPOINTS / experiment.suite / name
            folder = runs.folder_of(kept, label, own, share, seed, inputs.digest, shared, evaluation)
            units.append(Unit(label, folder, setting, seed, own, inputs))
    return units


def complete(unit: Unit, name: str, params: Params, place: Path, screen: Screen) -> None:
    """Train and evaluate one unit, and write its results below `place`."""
    experiment = params.experiments[name]
    cls = model_class(experiment.model)
    inputs = unit.inputs.for_seed(unit.seed)
    suite = params.suites[experiment.suite]
    training = suite.training_of(experiment)
    evaluator = evaluator_class(suite.task)(inputs, suite.evaluation, training)
    data = evaluator.training_data(cls, unit.seed)
    model = cls(cls.Config.model_validate(unit.config))
    noise_settings = dict(zip(experiment.settings(), experiment.settings(cls.Config.noise_names()), strict=True))
    model.named = (experiment.data, name, noise_settings[unit.setting])
    model.noise_mode = experiment.noise or "research"
    history: list[dict[str, Any]] = []
    best: list[Record] = []
    seconds: list[float] = []
    if isinstance(model, EpochModel):
        screen.begin(f"{unit.setting} seed {unit.seed}", model.config.epochs)
        test = evaluator.test if experiment.chosen_on_test else None
        monitor = Monitor(unit.progress, evaluator.validate, screen, training.patience, evaluator.metric, test)
        model.fit(data, rng=np.random.default_rng(unit.seed), progress=monitor)
        history, seconds, best = monitor.history, monitor.seconds, monitor.best_tested()
        if history:
            history[-1] |= {"cut_off": monitor.cut_off(model)}
    else:
        screen.skip()
        model.fit(data, rng=np.random.default_rng(unit.seed), progress=SILENT)
    model.save(place / "model.safetensors")
    tested = evaluator.evaluate(model)
    contracts.write(tested.released, place / "recommendations.parquet", evaluator.contract)
    (place / TABLES).mkdir()
    for kind, (table, contract) in released_tables(model).items():
        contracts.write(table, place / TABLES / f"{kind}.parquet", contract)
    if unit.setting == BASE:
        contracts.write(pairs.by_user(tested.measured), place / f"{USERS}.parquet", pairs.BY_USER)
    chosen = [measured | {"metric": f"chosen-on-test/{measured['metric']}"} for measured in best]
    write_json(place / "metrics.json", tested.metrics + chosen)
    write_json(place / "history.json", history)
    write_json(place / runs.SECONDS, seconds)
    entries = ledger(model, experiment, unit, params, evaluator.protects)
    write_json(place / "ledger.json", [entry.model_dump(mode="json") for entry in entries])


def released_tables(model: Model) -> dict[str, tuple[pl.DataFrame, pa.Schema]]:
    """What others than the users hold of a fitted model beside what it recommends: kind -> table and its contract."""
    tables: dict[str, tuple[pl.DataFrame, pa.Schema]] = {}
    if profiles := model.profiles():
        tables["profiles"] = pl.DataFrame(dict(zip(("user", "item"), profiles, strict=True))), contracts.PROFILES
    observed = model.observed() if isinstance(model, RatingPredictor) else None
    if observed is None:
        return tables
    size = observed.items.shape[1]
    for kind, vectors in (("items", observed.items), ("mean-items", observed.mean_items)):
        table = pl.DataFrame({"node": np.arange(len(vectors), dtype=np.int32), "vector": vectors})
        tables[kind] = table, contracts.embeddings_schema(size)
    for kind, received in (("submissions", observed.submissions), ("friends", observed.friends)):
        if received is not None:
            columns = vars(received)
            table = pl.DataFrame({"sender": columns.pop("senders"), "subject": columns.pop("subjects")} | columns)
            tables[kind] = table, contracts.received_schema(size)
    if isinstance(model, Replaying) and (recalled := model.replayed()):
        tables["replayed"] = replayed.table(recalled)
    if isinstance(model, Informing) and (information := model.information()):
        tables["information"] = replayed.information_table(information)
    return tables


def ledger(
    model: Model, experiment: Experiment, unit: Unit, params: Params, learnt: Protected = "interaction"
) -> list[LedgerEntry]:
    """What this unit spent: the model's entries, those of its features, and `none` for what nothing protects.

    learnt: what the task's models are trained on.
    """
    secure = experiment.noise == "secure"
    entries = [prepared_entry(secure_entry(entry) if secure else entry) for entry in model.ledger()]
    if model.reads_features() and experiment.features.startswith("perturbed/"):
        recorded = read_json(unit.inputs.features_layer.parent / "ledger.json")
        budget = params.features_epsilon(experiment, experiment.settings()[unit.setting])
        for record in recorded:
            if record.pop("epsilon") == budget and record.pop("seed") == seed_of(unit.seed):
                entries.append(LedgerEntry.model_validate(record))
    protected = {entry.protects for entry in entries}
    if learnt not in protected:
        entries.append(unprotected_entry(learnt, because("true-data")))
    if (model.reads_features() or model.uses_attributes) and "feature" not in protected:
        read = because("true-features" if model.reads_features() else "true-attributes")
        entries.append(unprotected_entry("feature", read))
    return entries


def assemble(name: str, params: Params, units: list[Unit], checks: list[dict[str, Any]]) -> None:
    """Put the finished units together as the stage's two outputs."""
    experiment = params.experiments[name]
    schema = units[0].inputs.schema
    out = RUNS / experiment.suite / name
    with atomic_write(out / "released") as place:
        for unit in units:
            (place / unit.setting).mkdir(parents=True, exist_ok=True)
            shutil.copy(unit.done / "recommendations.parquet", place / unit.setting / f"seed-{unit.seed}.parquet")
            for file in sorted((unit.done / TABLES).iterdir()):
                (place / unit.setting / file.stem).mkdir(exist_ok=True)
                shutil.copy(file, place / unit.setting / file.stem / f"seed-{unit.seed}.parquet")
    entries = runs.read_records(units, "ledger.json")
    with atomic_write(out / "train") as place:
        for unit in units:
            models = place / "models" / unit.setting
            models.mkdir(parents=True, exist_ok=True)
            model, copied = unit.done / "model.safetensors", models / f"seed-{unit.seed}.safetensors"
            shutil.copy(model, copied)
            if own_file(model).exists():
                shutil.copy(own_file(model), own_file(copied))
            if unit.setting == BASE:
                (place / USERS).mkdir(exist_ok=True)
                shutil.copy(unit.done / f"{USERS}.parquet", place / USERS / f"seed-{unit.seed}.parquet")
        rows = runs.read_records(units, "metrics.json")
        runs.write_metrics(rows, place, experiment.suite, name, experiment.data, experiment.system)
        write_json(place / "ledger.json", entries)
        for delta in sorted(
            {entry["claimed_delta"] for entry in entries if entry["claimed_delta"] > 1 / schema.n_users}
        ):
            print(
                f"train {name}: warning: delta = {delta:g} is more than one in {schema.n_users} users; "
                "publishing everything about one random user would meet it, too",
                file=sys.stderr,
            )
        write_json(place / "history.json", runs.by_setting(units, "history.json"))
        runs.write_inputs(place, experiment.data, checks)


main = runs.stage(work)

if __name__ == "__main__":
    run_stage(main, units=True)
