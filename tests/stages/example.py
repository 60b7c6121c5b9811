"""A tiny project folder with made-up runs, as the stages before `collect` leave it. No number here is a result."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks.core import contracts
from tasks.evaluation.gains import GAINS
from tasks.evaluation.pairs import BY_USER
from tasks.privacy.accounting.ledger import Event, LedgerEntry, unbounded_entry, unprotected_entry
from tasks.privacy.remarks import because, gap
from tests import parameters
from tests.parameters import ROOT
from tests.results.made import entry
from tests.systems import systems

CUTOFFS = (5, 10)
SEEDS = (0, 1, 2)
ATTACKERS = ("neural", "knn")
MAJORITY = 0.6
QUALITY = {"popularity": 0.30, "dp-popularity": 0.29, "bpr": 0.33, "gcn": 0.36, "gerai": 0.20, "gerai-nf": 0.31}
"""System -> level of its made-up ranking metrics."""
LEAK = {"bpr": 0.05, "gcn": 0.08, "gerai": 0.03, "gerai-nf": 0.04}
"""System -> made-up gain of the neural attacker."""
SWEEP = [*({"epsilon": value} for value in (0.1, 0.2, 0.8)), {"dimension": 20}]
"""Of GERAI."""
COUNTS = entry(
    1.0,
    neighbouring="add-or-remove",
    events=(Event(kind="discrete-laplace", parameters={"noise_parameter": 0.1, "sensitivity": 10.0}),),
)
FEATURES = COUNTS.model_copy(
    update={"protects": "feature", "unit": "features", "neighbouring": "replace", "mechanism": "optimised-unary"}
    | {"claimed_epsilon": 20.0, "accounted_epsilon": 20.0, "gaps": (gap("seed"),)}
    | {"events": (Event(kind="pure-local", parameters={"epsilon": 20.0}),)}
)
LOSS = unbounded_entry(
    "interaction", "training-triple", "objective-items", because("loss-alone"), claimed=(0.4, 0.0), events=()
)
PLAIN = unprotected_entry("interaction", because("true-data"))
AUDITED = {
    "counts-discrete-laplace": "dp-popularity",
    "optimised-unary": "features/categories",
    "objective-items": "dpmf",
}
SPENT = {"dp-popularity": [COUNTS], "gerai": [LOSS, FEATURES], "gerai-nf": [PLAIN, FEATURES]}


def build(
    place: Path,
    *,
    suite: str = "gerai",
    synthetic: bool = False,
    models: tuple[str, ...] = tuple(QUALITY),
    sweep: bool = False,
    word: str = "made-up",
    attributes: tuple[str, ...] = ("gender", "age"),
) -> Path:
    """Fill `place` with the inputs of `collect` for `suite`; `word` goes into every text that a run may hold."""
    params = parameters.read(suite)
    dataset = params["suites"][suite]["data"]
    params["suites"][suite] |= {"title": f"Example {word}", "splits": []}
    params["suites"][suite]["ceilings"] = {f"{suite}-gerai": f"{suite}-gcn"}
    experiments = params["suites"][suite]["experiments"] = {
        f"{suite}-{system}": {
            "data": dataset,
            "features": f"processed/{dataset}",
            "model": systems()[system],
            "system": system,
            "seeds": list(SEEDS),
            "config": {"epsilon": 0.4, "dimension": 60} if system in SPENT else {},
            "sweep": SWEEP if sweep and system == "gerai" else [],
        }
        for system in models
    }
    parameters.write(params, place)
    reference = place / "data/reference/paper_tables.csv"
    reference.parent.mkdir(parents=True)
    shutil.copy(ROOT / "data/reference/paper_tables.csv", reference)
    processed, runs = place / "data/processed" / dataset, place / "data/runs" / suite
    source = {"dataset": dataset, "address": word, "synthetic": synthetic, "licence": word}
    write(processed / "source.json", source)
    write(processed / "schema.json", {"dataset": dataset, "features": []})
    counts = {"step": "published", "numbers": {}, "users": 10, "items": 20, "interactions": 100}
    write(processed / "counts.json", [counts])
    for name, experiment in experiments.items():
        run(place, suite, name, experiment, synthetic=synthetic, word=word, attributes=attributes)
    write(place / f"data/quality/metrics/{suite}.json", check("metrics", suite) | {"checked": {}, "results": []})
    write(runs / "audit.json", [audit for line in (COUNTS, LOSS, FEATURES) for audit in audits(line, experiments)])
    return place


def run(
    place: Path,
    suite: str,
    name: str,
    experiment: dict[str, Any],
    *,
    synthetic: bool,
    word: str,
    attributes: tuple[str, ...],
) -> None:
    """The train and attack folders of one experiment."""
    system, folder = experiment["system"], place / "data/runs" / suite / name
    known = settings(experiment)
    spent = [
        {"setting": setting, "seed": seed} | line.model_dump(mode="json")
        for setting in known
        for seed in SEEDS
        for line in SPENT.get(system, [PLAIN])
    ]
    write(folder / "train/ledger.json", spent)
    epochs = [{"epoch": n, "loss": 1.0 / n, "valid": 0.1 * n} for n in (1, 2, 3)]
    trained = {} if "popularity" in system else {setting: {str(seed): epochs for seed in SEEDS} for setting in known}
    write(folder / "train/history.json", trained)
    about = {"suite": suite, "experiment": name, "dataset": experiment["data"], "model": system}
    columns = {key: pl.lit(value) for key, value in about.items()}
    for stage, rows in (("train", ranking(system)), ("attack", attack(system, attributes))):
        checks = [check("processed", experiment["data"]), check("recommendations", name), check(word, word)]
        targets = {"targets": 189} if stage == "attack" else {}
        write(folder / stage / "inputs.json", {"checks": checks, "synthetic": synthetic} | targets)
        provenance(place, stage, name, word, known if trained and stage == "train" else [])
        table = pl.concat([rows.with_columns(setting=pl.lit(setting), **columns) for setting in known])
        contracts.write(table, folder / stage / "metrics.parquet", contracts.METRICS)
    users(ranking(system), folder / "train/users")
    contracts.write(gains(system, attributes, known), folder / "attack/gains.parquet", GAINS)


def provenance(place: Path, stage: str, name: str, word: str, timed: list[str]) -> None:
    """The record of a stage; timed: settings of which it has the time of every epoch."""
    record = {"stage": stage, "name": name, "revision": f"0123456789abcdef+{word}", "seconds": 12.3}
    record |= {"started": "2026-01-01T00:00:00+00:00", "cpu_seconds": 4.0, "peak_memory_mb": 456}
    record |= {"processor": word, "cores": 2, "packages": {"numpy": word}}
    record["units"] = {f"base-seed-{seed}": {"cpu_seconds": 1.5, "peak_memory_mb": 7} for seed in SEEDS}
    if timed:
        record["epoch_seconds"] = {f"{setting}-seed-{seed}": [1.0, 1.5, 2.0] for seed in SEEDS for setting in timed}
    write(place / "data/provenance" / stage / f"{name}.json", record)


def settings(experiment: dict[str, Any]) -> list[str]:
    """Of an experiment: `base`, and all points of its sweep, each of one key."""
    return ["base", *(f"{key}={value}" for point in experiment["sweep"] for key, value in point.items())]


def audits(line: LedgerEntry, experiments: dict[str, Any]) -> list[dict[str, Any]]:
    """An audit of an entry of ledgers, of all systems that have it."""
    covers = {name: settings(of) for name, of in experiments.items() if line in SPENT.get(of["system"], ())}
    record = line.model_dump(mode="json", include={"protects", "unit", "neighbouring", "mechanism", "observer"})
    record |= {"audit": AUDITED[line.mechanism], "covers": covers, "network": "", "delta": 0.0, "samples": 1000}
    record |= {"epsilon_claimed": line.claimed_epsilon, "epsilon_accounted": line.accounted_epsilon}
    record |= {"audited_epsilon": 0.93, "confidence": 0.999, "provable": 5.5, "controls": {"half": 1.75, "none": 5.5}}
    return [record] if covers else []


def ranking(system: str) -> pl.DataFrame:
    """Made-up ranking metrics of every seed: columns metric, k, seed, value."""
    noise = np.random.default_rng(list(system.encode()))
    return pl.DataFrame(
        [
            {"metric": f"{protocol}/{metric}", "k": k, "seed": seed}
            | {"value": QUALITY[system] * scale + k / 100 + noise.normal(0, 0.002)}
            for protocol, scale in (("sampled-100", 1.0), ("full", 0.3))
            for metric in ("hit", "ndcg", "mrr")
            for k in CUTOFFS
            for seed in SEEDS
        ]
    )


def users(metrics: pl.DataFrame, folder: Path) -> None:
    """The tables of users of every seed: four who are 0.1 apart around each metric, with one example each."""
    folder.mkdir(parents=True)
    of_user = pl.DataFrame({"user": range(4), "above": [-0.15, -0.05, 0.05, 0.15]})
    for (seed,), rows in metrics.group_by("seed"):
        table = rows.join(of_user, how="cross").with_columns(total=pl.col("value") + pl.col("above"), examples=1)
        contracts.write(table.select(BY_USER.names), folder / f"seed-{seed}.parquet", BY_USER)


def attack(system: str, attributes: tuple[str, ...]) -> pl.DataFrame:
    """Made-up attack metrics of every seed; only the neural attacker gains anything."""
    noise = np.random.default_rng(list(system.encode()))
    rows: list[tuple[str, int, int, float]] = []
    for attribute in attributes:
        for seed in SEEDS:
            rows.append((f"attribute/{attribute}/majority/f1", 0, seed, MAJORITY))
            for attacker in ATTACKERS:
                for k in (0, *CUTOFFS):
                    gained = LEAK.get(system, 0.0) if attacker == "neural" and k else 0.0
                    value = MAJORITY + gained + (noise.normal(0, 0.003) if attacker == "neural" else -0.05)
                    rows.append((f"attribute/{attribute}/{attacker}/f1", k, seed, value))
                    rows.append((f"attribute/{attribute}/{attacker}/advantage", k, seed, value - MAJORITY))
    return pl.DataFrame(rows, schema=["metric", "k", "seed", "value"], orient="row")


def gains(system: str, attributes: tuple[str, ...], known: list[str]) -> pl.DataFrame:
    """Made-up gains of 0.02 to both sides: a neural attacker that sees lists gains `LEAK`, others nothing."""
    return pl.DataFrame(
        [
            {"setting": setting, "attribute": attribute, "attacker": attacker, "k": k, "control": control}
            | {"gain": gain, "low": gain - 0.02, "high": gain + 0.02}
            for setting in known
            for attribute in attributes
            for attacker in ATTACKERS
            for k in CUTOFFS
            for control in ("majority", "ratings", *(["random"] if k == 10 else []))
            for gain in [LEAK.get(system, 0.0) if attacker == "neural" else -0.05 * (control != "ratings")]
        ]
    )


def check(contract: str, name: str) -> dict[str, Any]:
    """Summary of a check that passed."""
    return {"contract": contract, "name": name, "success": True, "evaluated": 7, "failed": 0}


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
