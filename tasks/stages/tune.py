"""Tuning: try configurations of one experiment on validation data and record every trial; the test is never read.

Not part of the DVC graph: it proposes what a person then writes into the suite's params.yaml.
`dprec tune EXPERIMENT` (or `python -m tasks.stages.tune EXPERIMENT`) tries every combination of `tuning.grid.<model>`,
each with the one tuning seed, which no result uses, and adds all of them to data/results/<suite>/tuning.csv: what was
tried before stays there. The same configuration has a row for every other result that it had; the last of them is of
the latest code.
"""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import torch

from tasks.config.fields import model_config
from tasks.config.params import Params, entry, load, own_file
from tasks.core import contracts
from tasks.core.errors import ConfigurationError, DivergenceError
from tasks.models import model_class
from tasks.models.training import EpochModel
from tasks.pipeline import runs
from tasks.pipeline.command import run_stage
from tasks.pipeline.common import CHECKPOINTS, PROCESSED, RESULTS, atomic_write, require_passed
from tasks.pipeline.keys import fingerprint
from tasks.pipeline.monitor import Monitor
from tasks.pipeline.provenance import git_revision
from tasks.pipeline.screen import Screen
from tasks.results.facts import kind_of
from tasks.stages.evaluators.base import make_evaluator
from tasks.stages.inputs import Inputs, read_inputs

if TYPE_CHECKING:
    from tasks.core.rows import Row

DRAWS = 10  # fits of a model without epochs that are averaged: its result is mostly its own noise
COLUMNS = {
    "experiment": pl.String,
    "config": pl.String,
    "seed": pl.Int64,
    "best_epoch": pl.Int64,
    "epochs": pl.Int64,
    "metric": pl.String,
    "valid": pl.Float64,  # -inf where training diverged
    "seconds": pl.Float64,  # of training; of models without epochs all draws
    "data": pl.String,
    "revision": pl.String,  # of the code that had this result first
}
OUTCOME = ["experiment", "config", "seed", "best_epoch", "epochs", "valid"]
DIGITS = 6  # of what is recorded


def main(name: str) -> None:
    """Try the whole grid for experiment `name`, best trial last printed."""
    torch.set_num_threads(1)
    params = load()
    experiment = entry("experiments", name, params.experiments)
    require_passed("processed", experiment.data)
    tuning = params.suites[experiment.suite].tuning
    grid = tuning.grid.get(experiment.system)
    if not grid:
        why = tuning.untried.get(experiment.system) or (tuning.of and f"the trials of {tuning.of} chose it")
        raise ConfigurationError(
            f"{own_file(experiment.suite, key='tuning')}: tuning.grid: nothing to try for {experiment.system!r}"
            f"{f' ({why})' if why else ''}; add its keys and values"
        )
    overrides = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    with Screen(name, len(overrides)) as screen:
        trials = [trial(name, params, experiment.config | override, screen) for override in overrides]
    synthetic = contracts.read_schema(PROCESSED / experiment.data / "schema.json").synthetic
    kind = kind_of(params.stands_for(experiment.data), synthetic=synthetic)
    about = {"data": kind, "revision": git_revision()}
    table = pl.DataFrame([record | about for record in trials], schema=COLUMNS)
    path = RESULTS / experiment.suite / "tuning.csv"
    if path.exists():
        before = pl.read_csv(path, schema=COLUMNS)
        table = pl.concat([before, table.with_columns(pl.col("valid").round(DIGITS))])
        first = pl.col("seconds", "revision").first().over(OUTCOME)
        table = table.with_columns(first).unique(OUTCOME, keep="last", maintain_order=True)
    with atomic_write(path) as target:
        table.sort("experiment", maintain_order=True).write_csv(target, float_precision=DIGITS)
    best = max(trials, key=lambda row: row["valid"])
    validation = f"{best['metric']} {best['valid']:.4f}"
    print(f"{len(trials)} trials in {path}; best on validation: {best['config']} ({validation})")


def trial(name: str, params: Params, config: dict[str, object], screen: Screen) -> Row:
    """Train once with the tuning seed; the record of the trial."""
    experiment = params.experiments[name]
    cls, suite = model_class(experiment.model), params.suites[experiment.suite]
    inputs, seed = read_inputs(experiment, params, config), suite.tuning.seed
    evaluator = make_evaluator(experiment, suite, inputs.for_seed(experiment.seeds[0]))
    data = evaluator.training_data(cls, experiment.seeds[0])
    model = cls(cls.Config.model_validate(model_config(config)))
    text = json.dumps(config, sort_keys=True)
    screen.next()
    if isinstance(model, EpochModel):
        folder, patience = checkpoint(name, params, config, inputs), suite.training_of(experiment).patience
        monitor = Monitor(folder, screen, text, evaluator.validate, patience, evaluator.metric)
        try:
            model.fit(data, rng=np.random.default_rng(seed), progress=monitor)
            best: Row = max(monitor.history, key=lambda record: record["valid"])
        except DivergenceError:
            best = {"valid": -np.inf, "epoch": 0}
        valid, best_epoch, epochs = best["valid"], best["epoch"], len(monitor.history)
        seconds = sum(monitor.seconds)  # also of those before an interruption
    else:
        started, values = time.monotonic(), []
        for draw in range(DRAWS):
            model.fit(data, rng=np.random.default_rng([seed, draw]))
            values.append(evaluator.validate(model))
        valid, best_epoch, epochs, seconds = float(np.mean(values)), 0, 0, time.monotonic() - started
    outcome = (name, text, seed, best_epoch, epochs, evaluator.metric, valid, round(seconds, 1))
    return dict(zip(COLUMNS, outcome, strict=False))


def checkpoint(name: str, params: Params, config: dict[str, object], inputs: Inputs) -> Path:
    """The folder of a trial's states, named by everything that decides its result."""
    experiment = params.experiments[name]
    suite = params.suites[experiment.suite]
    # the first seed is that of the fold, or of the perturbed features
    decides = [config, suite.tuning.seed, experiment.seeds[0], inputs.digest, fingerprint("train", name, params)]
    decides += [suite.evaluation.seed, suite.training_of(experiment).model_dump()]
    return runs.folder_of(CHECKPOINTS / "tuning" / name, "trial", *decides)


if __name__ == "__main__":
    run_stage(main)
