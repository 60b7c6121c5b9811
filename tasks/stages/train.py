"""Stage `train`: one experiment, all its settings and seeds.

Writes data/runs/<suite>/<experiment>/released/ (what a deployed system exposes: recommendations or predictions, the
interactions it was given where these are not the true ones, what untrusted parties hold) and .../train/ (models,
metrics and what they are for each user, ledger, history, inputs.json). Every finished (setting, seed) and every epoch
of an unfinished one is kept under data/checkpoints/, named by everything that decides it, so that a rerun goes on where
it stopped and a changed sweep point does not repeat the others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tasks import contracts
from tasks.config.fields import BASE, model_config
from tasks.config.params import Params, entry
from tasks.evaluation import pairs
from tasks.evaluation.metrics import Record
from tasks.evaluation.run_numbers import seed_of
from tasks.models import model_class
from tasks.models.base import Model, RatingPredictor, Received, Replayed, own_file
from tasks.models.training import EpochModel
from tasks.privacy.accounting.gaps import prepared_entry, secure_entry
from tasks.privacy.accounting.ledger import LedgerEntry, unprotected_entry
from tasks.privacy.remarks import because
from tasks.privacy.terms import Protected
from tasks.stages import runs
from tasks.stages.command import run_stage
from tasks.stages.common import CHECKPOINTS, RUNS, atomic_write, copy, read_json, require_inputs, write_json
from tasks.stages.evaluators.base import make_evaluator
from tasks.stages.inputs import Inputs, read_inputs
from tasks.stages.jobs import Job
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


class Training(Job[Unit]):
    """What training experiment `name` consists of."""

    stage = "train"

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.experiment = entry("experiments", name, params.experiments)
        self.suite = params.suites[self.experiment.suite]
        self.training = self.suite.training_of(self.experiment)
        self.cls = model_class(self.experiment.model)
        self.title, self.kept = name, CHECKPOINTS / self.experiment.suite / name

    def checks(self) -> list[dict[str, Any]]:
        """Those of all that is read, once each."""
        checks: list[dict[str, Any]] = []
        for data in dict.fromkeys(self.suite.runs(self.experiment, BASE).values()):
            read = self.params.features_of(self.experiment, data)
            checks += [check for check in require_inputs(data, read, self.experiment.suite) if check not in checks]
        return checks

    def plan(self) -> Iterator[Unit]:
        """Every setting, seed and split."""
        experiment = self.experiment
        evaluation: list[Any] = [self.suite.evaluation.model_dump(), self.training.model_dump(), experiment.noise]
        evaluation += ["chosen-on-test"] * bool(experiment.chosen_on_test)
        evaluation += ["tuned-elsewhere"] * bool(experiment.tuned_elsewhere)
        for setting, config in experiment.settings().items():
            chosen, by_data = model_config(config), dict[str, Inputs]()
            for seed, data in self.suite.runs(experiment, setting).items():
                if data not in by_data:
                    by_data[data] = read_inputs(experiment, self.params, config, data)
                inputs, label = by_data[data], f"{setting}-seed-{seed}"
                decides = [chosen, config.get("sensitive_share"), seed, inputs.digest]
                decides += [[experiment.data, experiment.model, self.code], evaluation]
                yield Unit(label, runs.folder_of(self.kept, label, *decides), setting, seed, chosen, inputs)

    def run(self, unit: Unit, folder: Path, screen: Screen) -> None:
        """Train and evaluate one unit, and write its results into `folder`."""
        evaluator = make_evaluator(self.experiment, self.suite, unit.inputs.for_seed(unit.seed))
        data = evaluator.training_data(self.cls, unit.seed)
        model = self.cls(self.cls.Config.model_validate(unit.config))
        named = list(self.experiment.settings(self.cls.Config.noise_names()))
        model.named = (self.experiment.data, self.name, named[[*self.experiment.settings()].index(unit.setting)])
        model.noise_mode = self.experiment.noise or "research"
        history, best, seconds = list[dict[str, Any]](), list[Record](), list[float]()
        if isinstance(model, EpochModel):
            screen.begin(f"{unit.setting} seed {unit.seed}", model.config.epochs)
            test = evaluator.test if self.experiment.chosen_on_test else None
            patience = self.training.patience
            monitor = Monitor(unit.progress, evaluator.validate, screen, patience, evaluator.metric, test)
            model.fit(data, rng=np.random.default_rng(unit.seed), progress=monitor)
            history, seconds, best = monitor.history, monitor.seconds, monitor.best_tested()
            if history:
                history[-1] |= {"cut_off": monitor.cut_off(model)}
        else:
            model.fit(data, rng=np.random.default_rng(unit.seed))
        model.save(folder / "model.safetensors")
        tested = evaluator.evaluate(model)
        contracts.write(tested.released, folder / "recommendations.parquet", evaluator.contract)
        (folder / TABLES).mkdir()
        for kind, (table, contract) in released_tables(model).items():
            contracts.write(table, folder / TABLES / f"{kind}.parquet", contract)
        if unit.setting == BASE:
            contracts.write(pairs.by_user(tested.measured), folder / f"{USERS}.parquet", pairs.BY_USER)
        chosen = [measured | {"metric": f"chosen-on-test/{measured['metric']}"} for measured in best]
        write_json(folder / "metrics.json", tested.metrics + chosen)
        write_json(folder / "history.json", history)
        write_json(folder / runs.SECONDS, seconds)
        entries = self._ledger(model, unit, evaluator.protects)
        write_json(folder / "ledger.json", [entry.model_dump(mode="json") for entry in entries])

    def _ledger(self, model: Model, unit: Unit, protected: Protected) -> list[LedgerEntry]:
        """What a unit spent: the model's entries, those of its features, and `none` for what nothing protects.

        protected: what the task's models are trained on.
        """
        secure = self.experiment.noise == "secure"
        conditions, validated = unit.inputs.schema.conditions, not self.experiment.tuned_elsewhere
        entries = [
            prepared_entry(secure_entry(entry) if secure else entry, conditions, validated=validated)
            for entry in model.ledger()
        ]
        if model.reads_features() and self.experiment.features.startswith("perturbed/"):
            recorded = read_json(unit.inputs.features_layer.parent / "ledger.json")
            budget = self.params.features_epsilon(self.experiment, self.experiment.settings()[unit.setting])
            for record in recorded:
                if record.pop("epsilon") == budget and record.pop("seed") == seed_of(unit.seed):
                    entries.append(LedgerEntry.model_validate(record))
        kinds = {entry.protects for entry in entries}
        if protected not in kinds:
            entries.append(unprotected_entry(protected, because("true-data")))
        if (model.reads_features() or model.uses_attributes) and "feature" not in kinds:
            read = because("true-features" if model.reads_features() else "true-attributes")
            entries.append(unprotected_entry("feature", read))
        return entries

    def assemble(self, units: list[Unit], checks: list[dict[str, Any]]) -> None:
        """Put the finished units together as the stage's two outputs."""
        out, n_users = RUNS / self.experiment.suite / self.name, units[0].inputs.schema.n_users
        with atomic_write(out / "released") as folder:
            for unit in units:
                released, file = folder / unit.setting, f"seed-{unit.seed}.parquet"
                copy(unit.done / "recommendations.parquet", released / file)
                for table in sorted((unit.done / TABLES).iterdir()):
                    copy(table, released / table.stem / file)
        entries = runs.read_records(units, "ledger.json")
        with atomic_write(out / "train") as folder:
            for unit in units:
                model = unit.done / "model.safetensors"
                copied = folder / "models" / unit.setting / f"seed-{unit.seed}.safetensors"
                copy(model, copied)
                if own_file(model).exists():
                    copy(own_file(model), own_file(copied))
                if unit.setting == BASE:
                    copy(unit.done / f"{USERS}.parquet", folder / USERS / f"seed-{unit.seed}.parquet")
            rows, about = runs.read_records(units, "metrics.json"), self.experiment
            runs.write_metrics(rows, folder, about.suite, self.name, about.data, about.system)
            write_json(folder / "ledger.json", entries)
            for delta in sorted({entry["claimed_delta"] for entry in entries if entry["claimed_delta"] > 1 / n_users}):
                print(
                    f"train {self.name}: warning: delta = {delta:g} is more than one in {n_users} users; "
                    "publishing everything about one random user would meet it, too",
                    file=sys.stderr,
                )
            write_json(folder / "history.json", runs.by_setting(units, "history.json"))
            runs.write_inputs(folder, about.data, checks)


def released_tables(model: Model) -> dict[str, tuple[pl.DataFrame, pa.Schema]]:
    """What others than the users hold of a fitted model and is no recommendation: kind -> table and its contract."""
    tables: dict[str, tuple[pl.DataFrame, pa.Schema]] = {}
    if profiles := model.profiles():
        tables["profiles"] = pl.DataFrame(dict(zip(("user", "item"), profiles, strict=True))), contracts.PROFILES
    if not isinstance(model, RatingPredictor) or (observed := model.observed()) is None:
        return tables
    size = observed.items.shape[1]
    for kind, vectors in (("items", observed.items), ("mean-items", observed.mean_items)):
        table = pl.DataFrame({"node": np.arange(len(vectors), dtype=np.int32), "vector": vectors})
        tables[kind] = table, contracts.embeddings_schema(size)
    received: dict[str, Received | Replayed | None] = {
        "submissions": observed.submissions, "friends": observed.friends, "replayed": model.replayed(),
    }  # fmt: skip
    for kind, messages in received.items():
        if messages is not None:
            columns = dict(vars(messages))
            ids = {"sender": columns.pop("senders"), "subject": columns.pop("subjects")}
            schema = contracts.replayed_schema if kind == "replayed" else contracts.received_schema
            tables[kind] = pl.DataFrame(ids | columns), schema(size)
    if information := model.information():
        counts = np.unique(information.senders, return_counts=True)[1]
        rows = np.split(information.matrix, np.cumsum(np.repeat(counts, counts))[:-1])
        names = {"sender": "senders", "subject": "subjects", "guess": "guess", "gradient": "gradient"}
        columns = {column: getattr(information, name) for column, name in names.items()}
        row = pl.Series("row", rows, dtype=pl.List(pl.Float64))
        tables["information"] = pl.DataFrame(columns | {"row": row}), contracts.INFORMATION
    return tables


work, main = Training.work, Training.main

if __name__ == "__main__":
    run_stage(main, units=True)
