"""Made-up results of a suite of DP-VAE, as the report stage would hand them over. No number here is a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core.results import BASE, Processed, Results, Spent, System, label
from tasks.stages.papers import describe
from tests.reporting import made, shown
from tests.reporting.example import COUNTS, entry

DPVAE = describe("dpvae")
STANDARD, USER = "prior=standard", "prior=user"
NONE, CONSTANT, OPTIMAL = "privacy=none", "privacy=dpsgd", "privacy=dpsgd-optimal-clip"
PLAIN, BOTH = f"{STANDARD},{CONSTANT}", f"{USER},{OPTIMAL}"
NDCG, RECALL = "full/ndcg", "full/recall-reachable"
SEEDS = (0, 1, 2, 3, 4)
CUTOFFS = (5, 10, *range(20, 101, 10))
QUALITY = {
    "popularity": 0.30,
    "dp-popularity": 0.28,
    "knn": 0.38,
    "svd": 0.37,
    "mf": 0.33,
    "ae": 0.40,
    "lightfm": 0.39,
    "vae": 0.42,
    "dpmf": 0.10,
    "dpae": 0.22,
    "dpals": 0.31,
    "dpvae": 0.35,
    "dpvae-rigorous": 0.20,
    "dpvae-compact": 0.29,
}
"""Made-up NDCG@100 at setting `base`."""
EPSILONS = (0.3, 0.5, 1.5, 4.0, 8.0)
RISE = dict(zip(EPSILONS, (-0.05, -0.03, 0.01, 0.04, 0.06), strict=True))
"""Made-up differences from the base, at ε = 1."""
SETTINGS: dict[str, dict[str, float]] = {
    "dpvae": {CONSTANT: -0.02, STANDARD: -0.01, PLAIN: -0.03},
    "vae": {STANDARD: -0.01},
    **{name: {CONSTANT: -0.15, OPTIMAL: -0.1} for name in ("svd", "mf", "ae")},
}
WITHOUT_METADATA: dict[str, dict[str, float]] = {"dpvae": {CONSTANT: -0.02}}
"""The same of data that have no metadata, where the prior of `base` is the standard one already."""
SWEPT = {"dpvae": "epsilon_max", "dpvae-rigorous": "epsilon_max", "dpvae-compact": "epsilon_max"}
SWEPT |= {"dpals": "epsilon", "dp-popularity": "epsilon"}
CONFIG = {
    "dpvae": {"batch_size": 10, "epochs": 30, "beta": 0.5, "dimension": 20, "hidden": 80},
    "dpvae-compact": {"batch_size": 40, "epochs": 20, "beta": 0.2, "dimension": 16},
}
VALUES = {"dpvae": BOTH, "vae": f"{USER},{NONE}", **dict.fromkeys(("svd", "mf", "ae"), NONE)}
"""What configurations say besides, as a setting names it."""
STEPS = tuple(
    {"step": step, "users": 943, "items": 1682, "interactions": 100_000}
    for step in (
        "published",
        "in the ranges kept",
        "one row per user and item",
        "users omitted below 3",
        "most recent 1772 of each user",
    )
)
ONE_RUN = (
    {"experiment": "dpvae", "setting": BASE, "epsilon": 2.5, "accounted": None, "correct": 95},
    {"experiment": "dpvae-rigorous", "setting": BASE, "epsilon": 1.4, "accounted": 1.0, "correct": 70},
    {"experiment": "dpvae-rigorous", "setting": "epsilon_max=8.0", "epsilon": 0.3, "accounted": 8.0, "correct": 60},
)
HASHED = {
    "name": "made-up",
    "vectors": "hashed",
    "dimension": 20,
    "vocabulary": None,
    "n_users": 943,
    "attributes": {"gender": {}, "occupation": {}},
    "words": {
        "female": {"how": "hashed", "parts": [], "users": 300},
        "healthcare": {"how": "hashed", "parts": [], "users": 20},
    },
    "origins": {
        "vocabulary": {"words": 0, "users": 0},
        "sub-words": {"words": 0, "users": 0},
        "hashed": {"words": 2, "users": 310},
    },
}
GLOVE = HASHED | {
    "vectors": "glove",
    "vocabulary": {"name": "made-up.zip", "words": 400_000, "variance_kept": 0.512},
    "words": {
        "female": {"how": "vocabulary", "parts": [], "users": 300},
        "<healthcare>": {"how": "sub-words", "parts": ["health", "care"], "users": 20},
    },
    "origins": {
        "vocabulary": {"words": 1, "users": 300},
        "sub-words": {"words": 1, "users": 20},
        "hashed": {"words": 0, "users": 0},
    },
}


def results(
    suite: str = "dpvae",
    *,
    dataset: str = "ml-100k",
    origin: str = "ml-100k",
    metadata: bool = True,
    **changes: Any,
) -> Results:
    """A suite with all systems, their sweeps, the audit by one run and the embeddings.

    metadata: whether the data have any of their users, so that `base` has user-level priors.
    """
    systems = tuple(_system(suite, name, metadata=metadata) for name in QUALITY)
    audited = [
        {"auditor": "steps", "confidence": 0.95, "canaries": 1000, "guesses": 100, "provable": 4.1, "control": 3.9}
        | record
        | {"experiment": f"{suite}-{record['experiment']}"}
        for record in ONE_RUN
    ]
    given: dict[str, Any] = {
        **made.shell(suite, f"dpvae-{dataset}", systems),
        "metrics": pl.concat([_metrics(suite, system, metadata=metadata) for system in systems]),
        "processed": Processed(origin, 3, STEPS),
        "one_run": tuple(audited),
        "words": (GLOVE,),
        "limits": "Made up: one thing.",
    }
    return shown.results(given | changes)


def replica(**changes: Any) -> Results:
    """The same systems on generated data without metadata."""
    made: dict[str, Any] = {"dataset": "ml-20m-twin", "origin": "twin-movielens", "synthetic": True, "words": (HASHED,)}
    made["metadata"] = False
    return results("dpvae-ml-20m", **(made | changes))


def with_original(results: Results) -> Results:
    """The same with two methods on the original data too, where they rank far better (made up) than all on the others.

    One of them, SVD, was run nowhere else.
    """
    added = []
    for name in ("knn", "svd"):
        system = results.find(name)
        assert system is not None
        experiment = f"{system.experiment}-original"
        dataset = f"{results.dataset}-original"
        added.append(replace(system, experiment=experiment, label=label(experiment, results.suite), dataset=dataset))
    metrics = [
        results.metrics.filter(pl.col("experiment") == system.experiment.removesuffix("-original")).with_columns(
            pl.lit(system.experiment).alias("experiment"), pl.col("value") + 0.5 + 0.01 * pl.col("seed")
        )
        for system in added
    ]
    kept = tuple(system for system in results.systems if system.label != "svd")
    return replace(results, systems=(*added, *kept), metrics=pl.concat([results.metrics, *metrics]))


def settings(name: str, *, metadata: bool = True) -> dict[str, float]:
    """Setting -> made-up difference of its level from `base`."""
    swept = {f"{SWEPT[name]}={value}": RISE[value] for value in EPSILONS} if name in SWEPT else {}
    return {BASE: 0.0} | (SETTINGS if metadata else WITHOUT_METADATA).get(name, {}) | swept


def spent(name: str, setting: str) -> list[LedgerEntry]:
    """Made-up entries: what is published claims ε and has no finite one, what is rigorous has both."""
    if name not in (*SWEPT, "dpmf", "dpae"):
        return [entry("interaction")]
    key, _, value = setting.partition("=")
    epsilon = float(value) if key.startswith("epsilon") else 1.0
    if name == "dp-popularity":
        return [COUNTS.model_copy(update={"claimed_epsilon": epsilon, "accounted_epsilon": epsilon})]
    rigorous = name in ("dpvae-rigorous", "dpvae-compact", "dpals")
    return [
        entry(
            "interaction",
            neighbouring="one user added",
            mechanism="noisy gradients",
            accounting="rigorous" if rigorous else "published",
            claimed_epsilon=epsilon,
            accounted_epsilon=epsilon if rigorous else None,
            accounted_delta=1e-5 if rigorous else 0.0,
            reason="" if rigorous else "Made up: the clip is chosen from gradients without noise.",
        )
    ]


def _system(suite: str, name: str, *, metadata: bool) -> System:
    experiment = f"{suite}-{name}"
    config: dict[str, Any] = CONFIG.get(name, {}) | ({SWEPT[name]: 1.0} if name in SWEPT else {})
    named = VALUES.get(name, "") if metadata else VALUES.get(name, "").replace(USER, STANDARD)
    config |= dict(part.split("=") for part in named.split(",") if part)
    epochs = [{"epoch": n, "loss": 1 / n, "valid": QUALITY[name] * (1 - 0.5**n)} for n in range(1, 11)]
    history: dict[str, dict[str, list[dict[str, Any]]]] = {}
    if "popularity" not in name and name not in ("knn", "dpals"):
        history = {BASE: {str(seed): epochs for seed in SEEDS}}
    return System(
        experiment=experiment,
        name="dpvae" if name.startswith("dpvae") else name,
        label=label(experiment, suite),
        **made.about(config, SEEDS),
        history=history,
        spent=tuple(
            Spent(setting, seed, entry)
            for setting in settings(name, metadata=metadata)
            for seed in SEEDS
            for entry in spent(name, setting)
        ),
    )


def _metrics(suite: str, system: System, *, metadata: bool) -> pl.DataFrame:
    noise = np.random.default_rng(list(system.label.encode()))
    name = system.label
    rows = (
        (setting, metric, k, seed, share * (QUALITY[name] + shift) * (k / 100) ** 0.25 + 0.001 * noise.normal())
        for setting, shift in settings(name, metadata=metadata).items()
        for metric, share in ((NDCG, 1.0), (RECALL, 1.2))
        for k in CUTOFFS
        for seed in SEEDS
    )
    return made.metrics(suite, system, rows)
