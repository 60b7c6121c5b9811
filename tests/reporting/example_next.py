"""Made-up results of a next-item suite, as the report stage would hand them over. No number here is a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core.results import BASE, Processed, Results, Spent, System, label
from tests.reporting import made, shown
from tests.reporting.example import COUNTS, FEATURES, entry

SEEDS = (0, 1, 2, 3, 4)
CUTOFFS = (5, 10, 20)
QUALITY = {
    "popularity": 0.05,
    "dp-popularity": 0.045,
    "bprmf": 0.05,
    "sasrec": 0.07,
    "hrnn": 0.18,
    "lightgcn": 0.08,
    "srgnn": 0.2,
    "apgnn": 0.21,
    "dpmf-implicit": 0.03,
    "dpmf-explicit": 0.035,
    "dpsgd": 0.046,
    "edgerand": 0.17,
    "dipsgnn": 0.2,
    "dipsgnn-authors-code": 0.205,
    "dipsgnn-rigorous": 0.1,
    "dipsgnn-cached": 0.15,
    "nonp": 0.22,
    "nonp-u": 0.19,
    "priv-u": 0.16,
}
"""Made-up Recall@20 at setting `base`, by label; the others are shares of it."""
CONFIG = {"epsilon": 5.0, "steps": 1, "clip": 0.2}
SWEPT = {
    "epsilon=3.0": -0.02,
    "epsilon=4.0": -0.01,
    "features_epsilon=10.0": -0.01,
    "features_epsilon=30.0": 0.01,
    "steps=0": -0.03,
    "steps=2": -0.01,
    "steps=3": -0.02,
    "steps=4": -0.03,
    "steps=5": -0.04,
    "clip=0.4": -0.005,
    "clip=0.6": -0.01,
    "clip=0.8": -0.015,
    "clip=1.0": -0.02,
}
"""Made-up differences from `base` of DIPSGNN; those of EdgeRand are twice as large."""
EDGE = entry("edge", mechanism="noisy aggregation", claimed_epsilon=5.0, claimed_delta=1e-6, reason="Made up.")
TOTAL = EDGE.model_copy(update={"accounted_epsilon": 5.0, "accounted_delta": 1e-6, "reason": ""})
AS_RELEASED = [
    EDGE.model_copy(update={"accounting": "released"}),
    EDGE.model_copy(update={"accounting": "released", "protects": "session graph", "claimed_epsilon": 25.86}),
]
SPENT = {
    "dipsgnn-authors-code": [*AS_RELEASED, FEATURES],
    "dp-popularity": [COUNTS],
    "edgerand": [EDGE, FEATURES],
    "dipsgnn": [EDGE, FEATURES],
    "dipsgnn-rigorous": [TOTAL, FEATURES],
    "dipsgnn-cached": [TOTAL, FEATURES],
    "dpsgd": [TOTAL, FEATURES],
    "priv-u": [EDGE],
}
STEPS = (
    {"step": "published", "users": 6040, "items": 3706, "interactions": 1_000_209},
    {"step": "in the ranges kept", "users": 6038, "items": 3533, "interactions": 575_281},
    {"step": "10-core", "users": 5949, "items": 2810, "interactions": 571_531},
    {"step": "last 100 of each user", "users": 5949, "items": 2810, "interactions": 365_535},
    {"step": "without test events of items not seen before", "users": 5949, "items": 2810, "interactions": 365_500},
)
"""Counts of ML-1M as docs/methods.md §10 has them; the second and the last line are made up."""


def results(suite: str = "dipsgnn-ml-1m", *, dataset: str = "ml-1m", full: bool = True, **changes: Any) -> Results:
    """A suite with all systems; `whole` adds what was left of the data, the attack on edges and the texts."""
    systems = tuple(_system(suite, name) for name in QUALITY)
    defaults: dict[str, Any] = {}
    if full:
        defaults = {
            "processed": Processed(dataset, 3, STEPS),
            "edges": edges(suite),
            "limits": "Made up: one thing.\n\nMade up: <another> thing.",
            "part": "Made up: the first users.",
        }
    given: dict[str, Any] = {
        **made.shell(suite, f"dipsgnn-{dataset}", systems),
        "metrics": pl.concat([_metrics(suite, system) for system in systems]),
    }
    return shown.results(given | defaults | changes)


def settings(name: str) -> dict[str, float]:
    """Setting -> made-up difference of its level from `base`."""
    if name == "dipsgnn":
        return {BASE: 0.0} | SWEPT
    if name == "dipsgnn-authors-code":
        clips = {key: 3 * value for key, value in SWEPT.items() if key.startswith("clip")}
        return {BASE: 0.0, "accounting=published": -0.013} | clips
    if name == "edgerand":
        return {BASE: 0.0} | {key: 2 * value for key, value in SWEPT.items() if not key.startswith("clip")}
    return {BASE: 0.0}


def edges(suite: str) -> pl.DataFrame:
    """Made-up attacks: advantage grows with the budget, and is largest without noise."""
    rows = [
        (
            f"{suite}-{name}",
            BASE,
            target,
            world,
            epsilon,
            advantage,
            advantage - 0.04,
            advantage + 0.04,
            theory,
            50,
            400,
        )
        for name in ("dipsgnn", "edgerand")
        for target in ("aggregates", "recommendations")
        for world in ("removed", "swapped")
        for epsilon, advantage in ((3.0, 0.02), (5.0, 0.1), (None, 0.8))
        for theory in (0.3 if epsilon and target == "aggregates" else None,)
    ]
    columns = [
        "system",
        "setting",
        "target",
        "world",
        "epsilon",
        "advantage",
        "low",
        "high",
        "theory",
        "targets",
        "trials",
    ]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _system(suite: str, name: str) -> System:
    experiment = f"{suite}-{name}"
    epochs = [{"epoch": n, "loss": 1 / n, "valid": QUALITY[name] * (1 - 0.5**n)} for n in range(1, 11)]
    history: dict[str, dict[str, list[dict[str, Any]]]] = {}
    if "popularity" not in name:
        history = {BASE: {str(seed): epochs[: 10 - seed] for seed in SEEDS}}
    lines: list[LedgerEntry] = SPENT.get(name, [entry("edge")])
    return System(
        experiment=experiment,
        name="bpr" if name == "bprmf" else name,
        label=label(experiment, suite),
        **made.about(CONFIG, SEEDS),
        history=history,
        spent=tuple(Spent(setting, seed, line) for setting in settings(name) for seed in SEEDS for line in lines),
    )


def _metrics(suite: str, system: System) -> pl.DataFrame:
    noise = np.random.default_rng(list(system.label.encode()))
    name = system.label
    rows = (
        (
            setting,
            f"{protocol}/{metric}",
            k,
            seed,
            share * (QUALITY[name] + shift) * (k / 20) ** 0.5 + 0.0005 * noise.normal(),
        )
        for setting, shift in settings(name).items()
        for protocol, lower in (
            ("next", 1.0),
            ("next-new", 0.9),
            *([("chosen-on-test/next", 1.05)] if name == "dipsgnn-authors-code" else []),
        )
        for metric, part in (("recall", 1.0), ("mrr", 0.25))
        for share in (lower * part,)
        for k in CUTOFFS
        for seed in SEEDS
    )
    return made.metrics(suite, system, rows)
