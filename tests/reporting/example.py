"""A tiny project folder with made-up runs, as the stages before `report` would leave it. No number here is a result."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tasks import contracts
from tasks.evaluation.gains import GAINS
from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core.words import ATTACKERS
from tests import parameters
from tests.systems import systems

ROOT = Path(__file__).resolve().parents[2]
CUTOFFS = (5, 10, 15, 20, 25, 30)
SEEDS = (0, 1, 2)
MAJORITY = {"gender": 0.7, "age": 0.58, "occupation": 0.2}
QUALITY = {
    "popularity": 0.30,
    "dp-popularity": 0.29,
    "bpr": 0.33,
    "gcn": 0.36,
    "gerai": 0.20,
    "gerai-nf": 0.31,
    "ease": 0.37,
    "blurm": 0.32,
    "dpae": 0.18,
    "dpne": 0.22,
    "dpmf": 0.17,
    "rap": 0.34,
    "gerai-nl": 0.28,
}
"""Level of the made-up ranking metrics per system."""
LEAK = dict.fromkeys(QUALITY, 0.0) | {"bpr": 0.05, "gcn": 0.08, "gerai": 0.03, "gerai-nf": 0.04, "rap": 0.03}
"""Made-up advantage of the neural attacker per system."""
WIDTH = 0.02
"""Made-up intervals of gains reach so far on both sides."""
SMALL = ("popularity", "dp-popularity", "bpr", "gcn", "gerai", "gerai-nf")
ALL = (*SMALL[:2], "ease", "bpr", "gcn", "blurm", "dpae", "dpne", "dpmf", "rap", "gerai", "gerai-nl", "gerai-nf")
CONFIG = {"epsilon": 0.4, "dimension": 60}
SWEEPS: dict[str, list[dict[str, Any]]] = {
    "gerai": [
        *({"epsilon": value} for value in (0.1, 0.2, 0.8, 1.6, 3.2)),
        *({"features_epsilon": value} for value in (0.5, 5.0, 10.0)),
        *({"dimension": value} for value in (20, 40, 80, 100)),
    ],
    "dpae": [{"epsilon": 1.0}, {"epsilon": 10.0}],
    "dpmf": [{"accounting": "rigorous"}],
}


def entry(protects: str, **values: Any) -> LedgerEntry:
    """A ledger entry; unless told otherwise, of something that nothing protects."""
    fields = {
        "neighbouring": "any change",
        "mechanism": "none",
        "accounting": "published",
        "claimed_epsilon": None,
        "claimed_delta": 0.0,
        "accounted_epsilon": None,
        "accounted_delta": 0.0,
        "reason": "Made up: trained without noise.",
    }
    return LedgerEntry.model_validate({"protects": protects} | fields | values)


COUNTS = entry(
    "interaction",
    neighbouring="one user added",
    mechanism="noisy counts",
    claimed_epsilon=1.0,
    accounted_epsilon=1.0,
    reason="",
)
FEATURES = entry(
    "feature",
    neighbouring="one user's features replaced",
    mechanism="optimised unary encoding",
    claimed_epsilon=20.0,
    accounted_epsilon=20.0,
    reason="",
    gaps=("Made up: scaling is fitted.",),
)
LOSS = entry(
    "interaction",
    neighbouring="one triple replaced",
    mechanism="noisy loss",
    claimed_epsilon=0.4,
    reason="Made up: other parameters see the interactions.",
)
SPENT = {"dp-popularity": [COUNTS], "gerai": [LOSS, FEATURES], "gerai-nf": [entry("interaction"), FEATURES]}
PROVED = 0.93
"""Made up, of every audit."""


def build(
    place: Path,
    *,
    suite: str = "gerai",
    synthetic: bool = False,
    models: tuple[str, ...] = SMALL,
    sweep: bool = False,
    word: str = "made-up",
    attributes: tuple[str, ...] = ("gender", "age", "occupation"),
) -> Path:
    """Fill `place` with the inputs of `report` for `suite`; `word` goes into every text that a run may hold."""
    params = parameters.read(suite)
    dataset = params["suites"][suite]["data"]
    params["suites"][suite] |= {"title": f"Example {word}", "splits": []}
    experiments = params["suites"][suite]["experiments"] = {
        f"{suite}-{system}": {
            "data": dataset,
            "features": f"perturbed/gerai-{dataset}" if sweep and system == "gerai" else f"processed/{dataset}",
            "model": systems()[system],
            "system": system,
            "seeds": list(SEEDS),
            "config": CONFIG if system in SPENT else {},
            "sweep": SWEEPS.get(system, []) if sweep else [],
        }
        for system in models
    }
    parameters.write(params, place)
    reference = place / "data/reference/paper_tables.csv"
    reference.parent.mkdir(parents=True)
    shutil.copy(ROOT / "data/reference/paper_tables.csv", reference)
    source = {"dataset": dataset, "address": word, "synthetic": synthetic, "licence": word}
    write(place / "data/processed" / dataset / "source.json", source)
    for experiment in experiments.items():
        run(place, suite, *experiment, dataset=dataset, synthetic=synthetic, word=word, attributes=attributes)
    verdict = check("metrics", suite) | {"checked": {}, "results": []}
    write(place / f"data/quality/metrics/{suite}.json", verdict)
    write(place / "data/runs" / suite / "audit.json", audits({f"{suite}-{system}": system for system in models}, word))
    write(place / "data/processed" / dataset / "schema.json", {"dataset": dataset, "features": []})
    count = {"step": f"published {word}", "users": 10, "items": 20, "interactions": 100}
    write(place / "data/processed" / dataset / "counts.json", [count])
    return place


def run(
    place: Path,
    suite: str,
    name: str,
    experiment: dict[str, Any],
    *,
    dataset: str,
    synthetic: bool,
    word: str,
    attributes: tuple[str, ...],
) -> None:
    """The train and attack folders of one experiment."""
    system = experiment["system"]
    folder = place / "data/runs" / suite / name
    settings = ["base", *(f"{key}={value}" for point in experiment["sweep"] for key, value in point.items())]
    spent = [
        {"setting": setting, "seed": seed} | marked(spent, word)
        for setting in settings
        for seed in SEEDS
        for spent in SPENT.get(system, [entry("interaction")])
    ]
    write(folder / "train/ledger.json", spent)
    epochs = [{"epoch": n, "loss": 1.0 / n, "valid": 0.1 * n} for n in (1, 2, 3)]
    trained = {} if "popularity" in system else {setting: {str(seed): epochs for seed in SEEDS} for setting in settings}
    write(folder / "train/history.json", trained)
    attacked = pl.concat([attack(system, attributes), blurring(attributes if system == "blurm" else ())])
    for stage, rows in (("train", ranking(system)), ("attack", attacked)):
        checks = [check("processed", dataset), check("recommendations", name), check(word, word)]
        targets = {"targets": 189} if stage == "attack" else {}
        write(folder / stage / "inputs.json", {"checks": checks, "synthetic": synthetic} | targets)
        record = {
            "stage": stage,
            "name": name,
            "revision": f"0123456789abcdef+{word}",
            "started": "2026-01-01T00:00:00+00:00",
            "seconds": 12.3,
            "cpu_seconds": 4.0,
            "peak_memory_mb": 456,
            "processor": word,
            "cores": 2,
            "packages": {"numpy": word},
        }
        seconds = {f"{setting}-seed-{seed}": [1.0, 1.5, 2.0] for seed in SEEDS for setting in settings}
        units = {f"base-seed-{seed}": {"cpu_seconds": 1.5, "peak_memory_mb": 7} for seed in SEEDS}
        timed = {"units": units} | ({"epoch_seconds": seconds} if stage == "train" and trained else {})
        write(place / "data/provenance" / stage / f"{name}.json", record | timed)
        about = {"suite": suite, "experiment": name, "dataset": dataset, "model": system}
        table = pl.concat(
            [
                rows.with_columns(setting=pl.lit(setting), **{key: pl.lit(value) for key, value in about.items()})
                for setting in settings
            ]
        )
        contracts.write(table, folder / stage / "metrics.parquet", contracts.METRICS)
    contracts.write(gains(system, attributes, settings), folder / "attack/gains.parquet", GAINS)


def audits(systems: dict[str, str], word: str) -> list[dict[str, Any]]:
    """An audit of each budget that is claimed, of all systems that claim it; experiment -> system."""
    result = []
    for metric in (COUNTS, LOSS, FEATURES):
        covers = {name: [*settings(system)] for name, system in systems.items() if metric in SPENT.get(system, ())}
        about = {key: marked(metric, word)[key] for key in ("protects", "mechanism", "neighbouring", "observer")}
        proved = {"audited_epsilon": PROVED, "confidence": 0.999, "samples": 1000, "provable": 5.5}
        proved |= {"delta": 0.0, "worst_case": word, "controls": {"half": 1.75, "none": 5.5}}
        named = {"audit": "made up", "covers": covers, "network": "", "epsilon_claimed": metric.claimed_epsilon}
        named |= {"epsilon_accounted": metric.accounted_epsilon}
        result.append(about | proved | named | {"verdict": word})
    return [record for record in result if record["covers"]]


def settings(system: str) -> list[str]:
    """Of a system: `base`, and all points of its sweep."""
    return [
        "base",
        *(",".join(f"{key}={value}" for key, value in settings.items()) for settings in SWEEPS.get(system, [])),
    ]


def marked(entry: LedgerEntry, word: str) -> dict[str, Any]:
    """A ledger entry as JSON with `word` in its texts."""
    record = entry.model_dump(mode="json")
    record["neighbouring"] += f" {word}"
    record["gaps"] = [f"{gap} {word}" for gap in record["gaps"]]
    if record["mechanism"] != "none":
        record["mechanism"] += f" {word}"
    if record["reason"]:
        record["reason"] += f" {word}"
    return record


def ranking(system: str) -> pl.DataFrame:
    """Made-up ranking metrics of every seed: columns metric, k, seed, value."""
    noise = np.random.default_rng(list(system.encode()))
    return pl.DataFrame(
        [
            {
                "metric": f"{protocol}/{metric}",
                "k": k,
                "seed": seed,
                "value": QUALITY[system] * scale + k / 100 + noise.normal(0, 0.002),
            }
            for protocol, scale in (("sampled-100", 1.0), ("full", 0.3))
            for metric in ("hit", "ndcg", "mrr")
            for k in CUTOFFS
            for seed in SEEDS
        ]
    )


def attack(system: str, attributes: tuple[str, ...]) -> pl.DataFrame:
    """Made-up attack metrics of every seed; only the neural attacker gains anything."""
    noise = np.random.default_rng(list(system.encode()))
    rows = []
    for attribute in attributes:
        majority = MAJORITY.get(attribute, 0.5)
        for seed in SEEDS:
            rows.append((f"attribute/{attribute}/majority/f1", 0, seed, majority))
            for attacker in ATTACKERS:
                for k in (0, *CUTOFFS):
                    gain = LEAK[system] if attacker == "neural" and k else 0.0
                    value = majority + gain + (noise.normal(0, 0.003) if attacker == "neural" else -0.05)
                    rows.append((f"attribute/{attribute}/{attacker}/f1", k, seed, value))
                    rows.append((f"attribute/{attribute}/{attacker}/advantage", k, seed, value - majority))
    return pl.DataFrame(rows, schema=["metric", "k", "seed", "value"], orient="row")


def gains(system: str, attributes: tuple[str, ...], settings: list[str]) -> pl.DataFrame:
    """Made-up gains: a neural attacker that sees recommendations gains `LEAK` over everything, no other gains."""
    rows = [
        {"setting": setting, "attribute": attribute, "attacker": attacker, "k": k, "control": control}
        | {"gain": gain, "low": gain - WIDTH, "high": gain + WIDTH}
        for setting in settings
        for attribute in attributes
        for attacker in ATTACKERS
        for k in (0, *CUTOFFS)
        for control in ("majority", *(["ratings"] if k else []), *(["random"] if k == 10 else []))
        for gain in [(LEAK[system] if k else 0.0) if attacker == "neural" else -0.05 * (control != "ratings")]
    ]
    return pl.DataFrame(rows)


def blurring(attributes: tuple[str, ...]) -> pl.DataFrame:
    """Made-up attacks on blurred profiles: 0.02 below those on the true ones; and on the blurring itself."""
    about = [("auc", 0.9), ("low", 0.85), ("high", 0.94)] if attributes else []
    rows = [(f"blurring/detector/{name}", 0, seed, value) for name, value in about for seed in SEEDS]
    rows += [
        (f"attribute-blurred/{attribute}/{attacker}/f1", k, seed, MAJORITY.get(attribute, 0.5) - 0.02 - seed / 1000)
        for attribute in attributes
        for attacker in ATTACKERS
        for k in (0, *CUTOFFS)
        for seed in SEEDS
    ]
    return pl.DataFrame(rows, schema=["metric", "k", "seed", "value"], orient="row").cast(
        {"metric": pl.String, "k": pl.Int64, "seed": pl.Int64, "value": pl.Float64}
    )


def check(contract: str, name: str) -> dict[str, Any]:
    """Summary of a check that passed."""
    return {"contract": contract, "name": name, "success": True, "evaluated": 7, "failed": 0}


def write(path: Path, value: Any) -> None:
    """Write JSON, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
