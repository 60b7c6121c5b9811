"""Stage `train`: one experiment, all its settings and seeds.

Writes data/runs/<suite>/<experiment>/released/ (what a deployed system exposes: recommendations or predictions, the
interactions it was given where these are not the true ones, what untrusted parties hold) and .../train/ (models,
metrics and what they are for each user, ledger, history, inputs.json).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from typing_extensions import override

from tasks.config.fields import BASE, model_config
from tasks.config.params import Params
from tasks.core import contracts
from tasks.evaluation import pairs
from tasks.evaluation.run_numbers import seed_of
from tasks.models import model_class
from tasks.models.base import Model, RatingPredictor, Received, Replayed, own_file
from tasks.pipeline.common import copy, read_json
from tasks.pipeline.jobs import TrainingJob
from tasks.pipeline.monitor import Monitor
from tasks.pipeline.runs import SeedUnit, write_results
from tasks.pipeline.screen import Screen
from tasks.privacy.accounting.gaps import prepared_entry, secure_entry
from tasks.privacy.accounting.ledger import LedgerEntry, unprotected_entry
from tasks.privacy.remarks import because
from tasks.privacy.terms import Protected
from tasks.stages.evaluators.base import make_evaluator
from tasks.stages.inputs import Inputs, read_inputs

TABLES = "tables"
"""Of a finished unit, the folder of released tables other than its recommendations."""
USERS = "users"
"""Of a run at setting `base`, what it is worth to each user (`pairs.BY_USER`); never among results."""


class Training(TrainingJob):
    """A unit is one setting with one seed on one split; its seed is the run's number."""

    def __init__(self, name: str, params: Params) -> None:
        super().__init__(name, params)
        self.training = self.suite.training_of(self.options)
        self.cls = model_class(self.options.model)
        splits = self.suite.runs(self.options, BASE).values()
        self.reads = {data: params.features_of(self.options, data) for data in splits}

    @override
    def plan(self) -> Iterator[SeedUnit]:
        experiment = self.options
        evaluation: list[object] = [self.suite.evaluation.model_dump(), self.training.model_dump(), experiment.noise]
        evaluation += ["chosen-on-test"] * bool(experiment.chosen_on_test)
        evaluation += ["tuned-elsewhere"] * bool(experiment.tuned_elsewhere)
        for setting, config in experiment.settings().items():
            chosen, by_data = model_config(config), dict[str, Inputs]()
            for seed, data in self.suite.runs(experiment, setting).items():
                if data not in by_data:
                    by_data[data] = read_inputs(experiment, self.params, config, data)
                inputs = by_data[data]
                decides = [chosen, config.get("sensitive_share"), seed, inputs.digest]
                decides += [[experiment.data, experiment.model, self.code], evaluation]
                yield self.unit(setting, seed, inputs, *decides)

    @override
    def run(self, unit: SeedUnit, path: Path, screen: Screen) -> None:
        experiment, settings = self.options, self.options.settings()
        evaluator = make_evaluator(experiment, self.suite, unit.inputs.for_seed(unit.seed))
        data = evaluator.training_data(self.cls, unit.seed)
        model = self.cls(self.cls.Config.model_validate(model_config(settings[unit.setting])))
        named = list(experiment.settings(self.cls.Config.noise_names()))
        model.named = (self.data, self.name, named[[*settings].index(unit.setting)])
        model.noise_mode = experiment.noise or "research"
        label, validation = f"{unit.setting} seed {unit.seed}", (evaluator.validate, self.training.patience)
        test = evaluator.test if experiment.chosen_on_test else None
        monitor = Monitor(unit.progress, screen, label, *validation, evaluator.metric, test)
        model.fit(data, rng=np.random.default_rng(unit.seed), progress=monitor)
        if monitor.history:
            monitor.history[-1] |= {"cut_off": monitor.cut_off(model)}
        model.save(path / "model.safetensors")
        tested = evaluator.evaluate(model)
        contracts.write(tested.released, path / "recommendations.parquet", evaluator.contract)
        (path / TABLES).mkdir()
        for kind, (table, contract) in released_tables(model).items():
            contracts.write(table, path / TABLES / f"{kind}.parquet", contract)
        if unit.setting == BASE:
            contracts.write(pairs.by_user(tested.measured), path / f"{USERS}.parquet", pairs.BY_USER)
        best = [measured | {"metric": f"chosen-on-test/{measured['metric']}"} for measured in monitor.best_tested()]
        ledger = [entry.model_dump(mode="json") for entry in self._spent(model, unit, evaluator.protects)]
        write_results(
            path, metrics=tested.metrics + best, history=monitor.history, seconds=monitor.seconds, ledger=ledger
        )

    def _spent(self, model: Model, unit: SeedUnit, protected: Protected) -> list[LedgerEntry]:
        """What a unit spent: the model's entries, those of its features, and `none` for what nothing protects.

        protected: what the task's models are trained on.
        """
        secure = self.options.noise == "secure"
        conditions, validated = unit.inputs.schema.conditions, not self.options.tuned_elsewhere
        entries = [
            prepared_entry(secure_entry(entry) if secure else entry, conditions, validated=validated)
            for entry in model.ledger()
        ]
        if model.reads_features() and self.options.features.startswith("perturbed/"):
            recorded = read_json(unit.inputs.features_layer.parent / "ledger.json")
            budget = self.params.features_epsilon(self.options, self.options.settings()[unit.setting])
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

    @override
    def release(self, unit: SeedUnit, folder: Path) -> None:
        released, file = folder / unit.setting, f"seed-{unit.seed}.parquet"
        copy(unit.done / "recommendations.parquet", released / file)
        for table in sorted((unit.done / TABLES).iterdir()):
            copy(table, released / table.stem / file)

    @override
    def write(self, units: list[SeedUnit], path: Path) -> dict[str, object]:
        for unit in units:
            model = unit.done / "model.safetensors"
            copied = path / "models" / unit.setting / f"seed-{unit.seed}.safetensors"
            copy(model, copied)
            if own_file(model).exists():
                copy(own_file(model), own_file(copied))
            if unit.setting == BASE:
                copy(unit.done / f"{USERS}.parquet", path / USERS / f"seed-{unit.seed}.parquet")
        deltas, n_users = {entry["claimed_delta"] for entry in self.ledger(units)}, units[0].inputs.schema.n_users
        for delta in sorted(delta for delta in deltas if delta > 1 / n_users):
            print(
                f"train {self.name}: warning: delta = {delta:g} is more than one in {n_users} users; "
                "publishing everything about one random user would meet it, too",
                file=sys.stderr,
            )
        return super().write(units, path)


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


work, main = Training.commands(__name__)
