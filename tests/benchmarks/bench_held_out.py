"""MovieLens 20M or Netflix with users held out: seconds and memory of every part, on a replica of any scale.

`python -m tests.benchmarks.bench_held_out` makes the replica of MovieLens 20M at scale 1.0 (20 million ratings), splits
it, and takes of every system of docs/ml-20m one sweep or epoch and the ranking of all test users, each in a process of
its own with one thread. It needs 12 GB of memory and half an hour. `--data netflix` is of docs/netflix, with 100
million ratings. `--scale 0.02` is a rehearsal, `--parts ease dpals` a selection. `--suite` runs the suite, or the
`--parts` of it, from the files to the report, in a copy of the project; `--epochs 10` shortens what takes more of them.
docs/scale.md has results.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from tasks.config.params import OWN_FILES, Evaluation, Training
from tasks.config.tasks import resolve
from tasks.core import contracts
from tasks.core.raw import read_raw
from tasks.datasets import FORMATS, SOURCES
from tasks.datasets.fetch import Places
from tasks.models import model_class
from tasks.models.base import Progress, Recommender
from tasks.models.training import EpochModel
from tasks.papers.multvae import protocol
from tasks.pipeline.parent import keep_freed_memory
from tasks.stages import preprocess
from tasks.stages.evaluators.held_out import HeldOut
from tasks.stages.inputs import Inputs
from tests.benchmarks.bench_scale import make, run, show
from tests.parameters import ROOT

REPLICAS = {"ml-20m": "ml-20m-twin-full", "netflix": "netflix-twin"}
"""Data set -> its replica's entry in params.yaml, whose scale is set here."""
HELD_OUT = {"ml-20m": 0.0732, "netflix": 0.0863}
"""Share of the users of validation, and of those of the test."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS")
SHORT = {"iterations": 1, "epochs": 1}
"""Keys that say how often everything is gone through."""
PRIVATE = {"privacy": "dpsgd", "accounting": "rigorous", "epsilon_max": 10.0, "delta": 8e-6, "clip_norm": 1.0}


def main() -> None:
    """Print a line for every part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=REPLICAS, default="ml-20m")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, help="where to work, and what is there already (default: temporary)")
    parser.add_argument("--parts", nargs="*", help="only these (default: all)")
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("--epochs", type=int, help="of every system of the suite, at most (default: as it has them)")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        part(given.data, given.run, given.folder, given.scale)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if given.suite:
            run_suite(folder / "project", given.data, given.scale, given.parts, given.epochs)
            return
        environment = os.environ | dict.fromkeys(THREADS, "1")
        known = ("--data", given.data, "--folder", folder, "--scale", str(given.scale))
        for name in given.parts or ("files", "tables", "split", *systems(given.data)):
            subprocess.run([sys.executable, "-m", __spec__.name, "--run", name, *known], env=environment, check=True)


class Clock(Progress):
    """Prints what passed since it last printed; also after an epoch."""

    def __init__(self, name: str) -> None:
        self._name, self._then = name, self._now()

    def __call__(self, what: str) -> None:
        now = self._now()
        wall, cpu = now[0] - self._then[0], now[1] - self._then[1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{self._name:<24}{what:<24}{wall:>9.1f} s{cpu:>9.1f} CPU s{peak:>9.0f} MB at most until now", flush=True)
        self._then = self._now()

    def restore(self, model: Any) -> bool:
        """Before the first epoch."""
        self("initial state")
        return super().restore(model)

    def epoch(self, model: Any, loss: float) -> bool:
        """After an epoch."""
        self("an epoch")
        return super().epoch(model, loss)

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()


def part(dataset: str, name: str, folder: Path, scale: float) -> None:
    """Time one part of a data set, whose inputs earlier ones left in `folder`."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as the stages do
    raw, interim, processed = (folder / step for step in ("raw", "interim", "processed"))
    clock = Clock(name)
    if name in ("files", "tables", "split"):
        (place := {"files": raw, "tables": interim, "split": processed}[name]).mkdir(parents=True, exist_ok=True)
        replica = _replica(dataset, scale)
        if name == "files":
            source = resolve(SOURCES[replica["source"]])
            source.obtain(place, Places(None, place, place), source.ObtainOptions.model_validate(replica["obtain"]))
        elif name == "tables":
            reader = resolve(FORMATS[replica["format"]])
            reader.convert(raw, place, reader.ReadOptions())
        else:
            prepared = protocol.prepare(read_raw(interim), protocol.Options.model_validate(_options(dataset)))
            preprocess.write(prepared, place, {"dataset": dataset, "protocol": "multvae", "synthetic": True})
        clock("written")
        return
    of = evaluator(dataset, processed)
    experiment = systems(dataset)[name]
    cls = model_class(experiment["model"])
    assert issubclass(cls, Recommender)
    data = of.training_data(cls, 0)
    clock("read")
    model = cls(cls.Config.model_validate(experiment["config"]))
    model.fit(data, rng=np.random.default_rng(0), progress=clock)
    if not isinstance(model, EpochModel):
        clock("fit, one sweep")
    metrics = of.evaluate(model).metrics
    clock("test users ranked")
    ndcg = next(record["value"] for record in metrics if (record["metric"], record["k"]) == ("full/ndcg", 100))
    print(f"{name:<24}{len(data.users)} interactions, {data.n_items} items, NDCG@100 {ndcg:.4f}")


def evaluator(dataset: str, processed: Path) -> HeldOut:
    """That of the suite."""
    table = _read(f"docs/{dataset}/params.yaml")
    rows = contracts.read(processed / "interactions.parquet", contracts.INTERACTIONS)
    inputs = Inputs(contracts.read_schema(processed / "schema.json"), rows, processed, processed)
    return HeldOut(inputs, Evaluation.model_validate(table["evaluation"]), Training.model_validate(table["training"]))


def systems(dataset: str) -> dict[str, dict[str, Any]]:
    """Systems of the suite, with one sweep or epoch; and Mult-VAE in private."""
    experiments = _read(f"docs/{dataset}/params.yaml")["experiments"]
    result = {name.removeprefix(f"{dataset}-"): dict(experiment) for name, experiment in experiments.items()}
    result["mult-vae-private"] = result["mult-vae"] | {"config": result["mult-vae"]["config"] | PRIVATE}
    for experiment in result.values():
        config = experiment.get("config", {})
        experiment["config"] = config | {key: value for key, value in SHORT.items() if key in config}
    return result


def run_suite(root: Path, dataset: str, scale: float, parts: list[str] | None, epochs: int | None) -> None:
    """The suite in a copy of the project, with a replica for its data, and what its stages recorded of themselves.

    A folder that has the copy already goes on where it was.
    """
    if not (root / ".dvc").exists():
        params = _read("params.yaml")
        processed = {"dataset": dataset, "protocol": "multvae", "options": _options(dataset)}
        params |= {"perturbed": {}, "words": {}, "processed": {f"multvae-{dataset}": processed}}
        params["datasets"] = {dataset: _replica(dataset, scale)}
        files = {name: _chosen(_read(f"docs/{dataset}/{name}"), dataset, parts, epochs) for name in OWN_FILES}
        make(root, params, dataset, files)
    run(root, dataset)
    show(root)


def _chosen(table: dict[str, Any], dataset: str, parts: list[str] | None, epochs: int | None) -> dict[str, Any]:
    """What a file of the suite says, of these systems alone."""
    if "experiments" in table:
        chosen = table["experiments"]
        if parts:
            chosen = {f"{dataset}-{name}": chosen[f"{dataset}-{name}"] for name in parts}
        for experiment in chosen.values():
            if epochs and "epochs" in experiment.get("config", {}):
                experiment["config"]["epochs"] = min(epochs, experiment["config"]["epochs"])
        table["experiments"] = chosen
    if parts and "tuning" in table:
        table["tuning"]["grid"] = {}
    return table


def _replica(dataset: str, scale: float) -> dict[str, Any]:
    """Entry of a replica in params.yaml, at this scale."""
    replica: dict[str, Any] = _read("params.yaml")["datasets"][REPLICAS[dataset]]
    return replica | {"obtain": replica["obtain"] | {"scale": scale}}


def _options(dataset: str) -> dict[str, Any]:
    """Of the protocol."""
    options: dict[str, Any] = _read("params.yaml")["processed"]["multvae-ml-20m"]["options"]
    return options | {"held_out": HELD_OUT[dataset]}


def _read(name: str) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return table


if __name__ == "__main__":
    main()
