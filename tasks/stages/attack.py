"""Stage `attack`: attribute inference against everything one experiment released.

Reads only what an attacker may see: data/runs/<suite>/<experiment>/released/, the rated items (train and valid), and
the users' labels, of which the targets' are used to score. Writes data/runs/<suite>/<experiment>/attack/. Every
distinct release is attacked once and kept under data/checkpoints/attack/, named by everything that decides the
result: a rerun goes on where it stopped, and equal releases (or the ratings alone) are not attacked again.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # stages run side by side, and sums must not depend on thread counts

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from tasks import contracts
from tasks.attacks import attribute
from tasks.contracts import Schema
from tasks.errors import ConfigurationError, DataError
from tasks.stages.common import (
    CHECKPOINTS,
    PROCESSED,
    RUNS,
    code_digest,
    digest,
    require_passed,
    run_stage,
    text_digest,
    whole,
    write_json,
)
from tasks.stages.params import Attack, Experiment, load
from tasks.stages.provenance import provenance

TARGETS = pa.schema([pa.field("user", pa.int32(), nullable=False)])
SCORES = pa.schema(
    [
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("attacker", pa.string(), nullable=False),
        pa.field("k", pa.int32(), nullable=False),
        pa.field("f1", pa.float64(), nullable=False),
        pa.field("advantage", pa.float64(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Known:
    """What does not depend on a release. users, items: (n,) rated items; labels: attribute -> class of every user."""

    schema: Schema
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    labels: dict[str, attribute.Labels]
    is_target: NDArray[np.bool_]
    digest: str


@dataclass(frozen=True)
class Unit:
    """One release to attack. recommended: (n_users, K), of which the first k of each cut-off are shown."""

    title: str
    recommended: NDArray[np.int32]
    ks: tuple[int, ...]
    checkpoint: Path


def main(name: str) -> None:
    """Attack experiment `name`."""
    started = time.monotonic()
    torch.set_num_threads(1)
    params = load()
    if name not in params.experiments:
        raise ConfigurationError(f"experiments.{name} is not in params.yaml; known: {', '.join(params.experiments)}")
    experiment = params.experiments[name]
    checks = [require_passed("recommendations", name)]
    known = read_known(experiment, params.attack)
    alone = unit("ratings alone", np.empty((known.schema.n_users, 0), np.int32), (0,), known)
    units = {
        (setting, seed): release(name, experiment, setting, seed, known, params.attack)
        for setting in experiment.settings()
        for seed in experiment.seeds
    }
    complete(name, [alone, *units.values()], known, params.attack)
    tables = []
    for (setting, seed), one in units.items():
        scores = pl.concat([contracts.read(path, SCORES) for path in (alone.checkpoint, one.checkpoint)])
        tables.append(as_metrics(scores, known).with_columns(setting=pl.lit(setting), seed=pl.lit(seed, pl.Int64)))
    metrics = pl.concat(tables).with_columns(
        suite=pl.lit(experiment.suite),
        experiment=pl.lit(name),
        dataset=pl.lit(experiment.data),
        model=pl.lit(experiment.model),
    )
    with whole(RUNS / experiment.suite / name / "attack") as place:
        place.mkdir()
        contracts.write(metrics, place / "metrics.parquet", contracts.METRICS)
        targets = pl.DataFrame({"user": np.flatnonzero(known.is_target).astype(np.int32)})
        contracts.write(targets, place / "targets.parquet", TARGETS)
        record = provenance(
            "attack",
            name,
            parameters=params.attack.model_dump(mode="json"),
            seeds=experiment.seeds,
            checks=checks,
            dataset=experiment.data,
            synthetic=known.schema.synthetic,
            started=started,
        )
        write_json(place / "run.json", record)


def read_known(experiment: Experiment, attack: Attack) -> Known:
    """Read ratings and labels, and choose the targets."""
    folder = PROCESSED / experiment.data
    schema = contracts.read_schema(folder / "schema.json")
    rated = contracts.read(folder / "interactions.parquet", contracts.INTERACTIONS)
    rated = rated.filter(pl.col("split") != "test").select("user", "item").sort("user", "item")
    people = contracts.read(folder / "users.parquet", contracts.users_schema(schema.features)).sort("user")
    if not schema.sensitive:
        raise DataError(f"{folder}/schema.json: no feature is marked sensitive; there is nothing to infer")
    labels = {}
    for feature in schema.sensitive:
        if feature.kind != "categorical":
            raise DataError(
                f"{folder}/schema.json: sensitive feature {feature.name!r} is numeric; group it into classes"
            )
        codes = people[feature.name].replace_strict(
            feature.categories, range(len(feature.categories)), default=None, return_dtype=pl.Int64
        )
        if codes.null_count():
            row = int(codes.is_null().arg_max() or 0)
            raise DataError(f"{folder}/users.parquet: column {feature.name!r}, row {row}: not one of its categories")
        if feature.unknown is not None:
            missing = feature.categories.index(feature.unknown)
            codes = codes.replace(missing, attribute.UNKNOWN)
        labels[feature.name] = codes.to_numpy()
    is_target = attribute.split_users(schema.n_users, attack.target_share, attack.split_seed, labels)
    for attacker in attack.attackers:
        attribute.attacker(attacker)  # so that its code is loaded and counts
    decides = [attack.model_dump(mode="json", exclude={"k"}), digest(folder), code_digest()]
    return Known(
        schema, rated["user"].to_numpy(), rated["item"].to_numpy(), labels, is_target, text_digest(json.dumps(decides))
    )


def release(name: str, experiment: Experiment, setting: str, seed: int, known: Known, attack: Attack) -> Unit:
    """The released recommendations of one setting and seed."""
    path = RUNS / experiment.suite / name / "released" / setting / f"seed-{seed}.parquet"
    table = contracts.read(path, contracts.RECOMMENDATIONS).sort("user", "rank")
    length = len(table) // known.schema.n_users
    if len(table) != length * known.schema.n_users or length < max(attack.k):
        raise DataError(
            f"{path}: {len(table)} rows for {known.schema.n_users} users hold no lists of {max(attack.k)} items, which "
            "attack.k asks for; lower it or raise evaluation.k"
        )
    recommended = table["item"].to_numpy().reshape(-1, length)
    return unit(f"{setting} seed {seed}", recommended, tuple(attack.k), known)


def unit(title: str, recommended: NDArray[np.int32], ks: tuple[int, ...], known: Known) -> Unit:
    """A release with the place of its checkpoint."""
    shown = recommended[:, : max(ks)]
    key = text_digest(json.dumps([known.digest, ks, shown.tolist()]))[:24]
    return Unit(title, recommended, ks, CHECKPOINTS / "attack" / f"{key}.parquet")


def complete(name: str, units: list[Unit], known: Known, attack: Attack) -> None:
    """Attack every release that has no checkpoint yet, with a bar on a terminal and a line for each elsewhere."""
    missing: dict[Path, Unit] = {}
    for one in units:
        if not one.checkpoint.exists():
            missing.setdefault(one.checkpoint, one)
    bar = sys.stderr.isatty()
    steps = track(missing.values(), f"attack {name}", console=Console(stderr=True), disable=not bar)
    started, done, total = time.monotonic(), 0, sum(len(one.ks) for one in missing.values())
    for number, one in enumerate(steps, start=1):
        rows = []
        for k in one.ks:
            seen = attribute.profiles(known.users, known.items, one.recommended[:, :k], known.schema.n_items)
            scores = attribute.attack(seen, known.labels, known.is_target, attack.attackers, attack.split_seed)
            rows += [(score.attribute, score.attacker, k, score.f1, score.advantage) for score in scores]
        with whole(one.checkpoint) as place:
            contracts.write(pl.DataFrame(rows, SCORES.names, orient="row"), place, SCORES)
        done += len(one.ks)
        if not bar:
            left = (time.monotonic() - started) / done * (total - done)
            print(
                f"attack {name}: {one.title} ({number}/{len(missing)}), {left:.0f} s left", file=sys.stderr, flush=True
            )


def as_metrics(scores: pl.DataFrame, known: Known) -> pl.DataFrame:
    """Columns metric, k and value: every score, and the majority guess of each attribute as k = 0."""
    named = []
    for value in ("f1", "advantage"):
        metric = pl.concat_str(pl.lit("attribute"), "attribute", "attacker", pl.lit(value), separator="/")
        named.append(scores.select(metric.alias("metric"), "k", value=pl.col(value)))
    majority = [
        (f"attribute/{name}/majority/f1", 0, attribute.majority_f1(labels, known.is_target))
        for name, labels in known.labels.items()
    ]
    columns = {"metric": pl.String, "k": pl.Int32, "value": pl.Float64}
    return pl.concat([*named, pl.DataFrame(majority, columns, orient="row")])


if __name__ == "__main__":
    run_stage(main)
