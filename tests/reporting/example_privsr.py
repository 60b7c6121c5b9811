"""Made-up results of a suite of PrivSR, as the report stage would hand them over. No number here is a result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from tasks.privacy.accounting.ledger import LedgerEntry
from tasks.reporting.core.results import BASE, Processed, Results, Spent, System, label
from tasks.stages.papers import describe
from tests.reporting import made, shown
from tests.reporting.example import entry

PRIVSR = describe("privsr")
SHARE = "sensitive_share"
SHARES, VALUES = PRIVSR.figures[0].values, PRIVSR.figures[2].values
SENSITIVE_BUDGETS = {0.1: 0.11, 0.05: 0.055}
"""PrivSR's budgets -> (1 + β) ε, what they come to for sensitive ratings at β = 0.1."""
SEEDS = (0, 1, 2, 3, 4)
ERROR = {
    "global-mean": 0.846,
    "user-mean": 0.815,
    "item-mean": 0.759,
    "bias": 0.731,
    "dp-bias": 0.74,
    "mf": 0.76,
    "soreg": 0.758,
    "dpmf": 0.87,
    "privsr": 0.826,
    "nonoise": 0.752,
    "rigorous": 0.95,
    "rigorous-local": 0.93,
}
"""Made-up MAE at setting `base`."""
MODELS = {
    "bias": "rating-means",
    "dp-bias": "dp-rating-means",
    "mf": "mf-ratings",
    "dpmf": "dpmf-ratings",
    "nonoise": "privsr",
    "rigorous": "privsr-rigorous",
    "rigorous-local": "privsr-rigorous",
} | dict.fromkeys(("global-mean", "user-mean", "item-mean"), "rating-means")
CONFIG: dict[str, dict[str, Any]] = {
    "privsr": {"epsilon": 0.1, "beta": 0.1, "epochs": 5},
    "nonoise": {"epsilon": "inf", "beta": 0.1, "epochs": 5},
    "dpmf": {"epsilon": 0.1, "epochs": 5},
    "rigorous": {"epsilon": 1.0, "epochs": 5},
    "rigorous-local": {"epsilon": 1.0, "epochs": 5, "towards": "recommender"},
    "dp-bias": {"epsilon": 0.1},
}
EPOCHS = (1, 5, 20, 50)
TOTALS = (0.1, 1.0, 10.0)
PER_EPOCH = 2
"""Iterations of an epoch."""
CONTROL = 0.80
"""Made-up error of published ratings alone where nothing else is said."""
ATTACKED = ("mf", "soreg", "dpmf", "privsr", "nonoise", "rigorous", "rigorous-local")
REACH = {
    "published": 0.03, "tuned": 0.04, "averaged": 0.25, "weighted": 0.5, "first": 0.7, "replayed": 0.7, "friend": -0.05,
}  # fmt: skip
"""By how much an attacker would beat the control without any noise."""
STEPS = (
    {"step": "published", "users": 7375, "items": 105_114, "interactions": 284_086},
    {"step": "users with 1 or more", "users": 7340, "items": 21_880, "interactions": 183_837},
    {"step": "links between users kept", "users": 7340, "items": 21_880, "interactions": 183_837, "links": 111_527},
)


def results(suite: str = "privsr", *, origin: str = "ciao", **changes: Any) -> Results:
    """A suite with all systems, their sweeps and attacks."""
    systems = tuple(_system(suite, name) for name in ERROR)
    given = made.shell(suite, f"privsr-{origin}", systems) | {
        "metrics": pl.concat([made.metrics(suite, system, _rows(system.label)) for system in systems]),
        "processed": Processed(origin, 0, STEPS),
        "limits": "Made up: one thing.",
    }
    return shown.results(given | changes)


def replica() -> Results:
    """The same systems on generated data."""
    return results("privsr-ciao-twin", origin="twin-trust", synthetic=True)


def settings(name: str) -> dict[str, dict[str, float]]:
    """Setting -> what it has other than the base."""
    points: list[dict[str, float]] = []
    if name in ("mf", "soreg", "privsr", "dpmf"):
        points += [{SHARE: share} for share in SHARES if share != PRIVSR.bases[SHARE]]
    if name in ("privsr", "dpmf"):
        points += [{"epsilon": 0.05} | ({} if share == 0.1 else {SHARE: share}) for share in SHARES]
    if name == "dpmf":
        points += [
            {"epsilon": same} | ({} if share == 0.1 else {SHARE: share})
            for same in SENSITIVE_BUDGETS.values() for share in SHARES if share
        ]  # fmt: skip
    if name == "privsr":
        points += [{"beta": 1.0, "epsilon": value} for value in VALUES]
        points += [{"beta": value, "epsilon": 0.01} for value in VALUES if value != 1.0]
        points += [{"epochs": epochs} for epochs in EPOCHS if epochs != 5]
    if name.startswith("rigorous"):
        points += [{"epochs": epochs, "epsilon": total} for epochs in EPOCHS for total in TOTALS]
    if name == "dp-bias":
        points += [{"epsilon": value} for value in (0.01, 1.0, 10.0)]
    named = {",".join(f"{key}={value}" for key, value in point.items()): point for point in points}
    return {BASE: {}} | named


def error(name: str, keys: dict[str, float]) -> float:
    """Made-up MAE: noise hurts by its scale, sensitive ratings hurt who does not get them."""
    known = {SHARE: 0.1} | CONFIG.get(name, {}) | keys
    if name in ("mf", "soreg"):
        return ERROR[name] + 0.2 * (known[SHARE] - 0.1)
    epsilon = known.get("epsilon", "inf")
    if epsilon == "inf":
        return ERROR[name]
    base = CONFIG[name]["epsilon"]
    hurt = 0.05 * np.log(base / epsilon)
    if "epochs" in known:
        hurt += 0.02 * np.log(known["epochs"] / 5)
    return float(ERROR[name] + max(hurt, -0.1) + 0.05 * (known[SHARE] - 0.1))


def reconstructed(name: str, attacker: str, keys: dict[str, float]) -> float:
    """Made-up error of an attacker: its reach, shrunk by noise, below a control that grows with x."""
    known = {SHARE: 0.1} | CONFIG.get(name, {}) | keys
    control = CONTROL + 0.1 * (known[SHARE] - 0.1)
    epsilon = known.get("epsilon", "inf")
    kept = 1.0 if epsilon == "inf" else min(1.0, 0.3 * epsilon ** (0.3 if attacker == "weighted" else 1.0))
    shrunk = kept * (0.8 + 0.2 * known["beta"] if "beta" in known else 1.0)
    return control - REACH[attacker] * shrunk + (0.1 if kept < 1 and attacker != "weighted" else 0.0)


def _rows(name: str) -> Iterator[tuple[str, str, int | None, int, float]]:
    noise = np.random.default_rng(list(name.encode()))
    for setting, keys in settings(name).items():
        share = keys.get(SHARE, 0.1)
        for seed in SEEDS:
            level = error(name, keys) + 0.002 * seed
            measured = {kind: level + 0.0005 * noise.normal() for kind in ("mae", "mae/public", "mae/uncut")}
            if share:
                measured["mae/sensitive"] = level + 0.01
            if name in ATTACKED:
                epochs = keys.get("epochs", CONFIG.get(name, {}).get("epochs", 5))
                measured |= {"iterations": PER_EPOCH * epochs, "communication/messages": 400_000}
                measured["communication/bytes"] = 12_000_000
                if share:
                    drift = CONTROL + 0.1 * (share - 0.1) + 0.001 * seed
                    measured["reconstruction/public/mae"] = drift
                    attackers = ("published", "tuned") if name in ("mf", "soreg") else tuple(REACH)
                    for attacker in attackers:
                        own = reconstructed(name, attacker, keys) + 0.001 * seed + 0.002 * noise.normal()
                        measured[f"reconstruction/{attacker}/mae"] = own
            yield from ((setting, metric, None, seed, value) for metric, value in measured.items())


def spent(name: str, keys: dict[str, float]) -> list[LedgerEntry]:
    """Made-up entries: what is published claims ε and has no finite one, what is rigorous has both."""
    if name not in ("privsr", "dpmf", "dp-bias", "rigorous", "rigorous-local"):
        return [entry("interaction")]
    epsilon = keys.get("epsilon", CONFIG[name]["epsilon"])
    published = name in ("privsr", "dpmf")
    return [
        entry(
            "interaction",
            neighbouring="one rating changed",
            mechanism="noisy objective",
            accounting="published" if published else "rigorous",
            claimed_epsilon=epsilon,
            accounted_epsilon=None if published else epsilon,
            reason="Made up: the recommender drew the scale of the noise itself." if published else "",
        )
    ]


def _system(suite: str, name: str) -> System:
    experiment = f"{suite}-{name}"
    learns = MODELS.get(name, "") not in ("rating-means", "dp-rating-means")
    epochs = [{"epoch": n, "loss": 1 / n, "valid": -ERROR[name] - 0.1 / n} for n in range(1, 6)]
    return System(
        experiment=experiment,
        name=MODELS.get(name, name),
        label=label(experiment, suite),
        **made.about(CONFIG.get(name, {}), SEEDS),
        history={BASE: {str(seed): epochs for seed in SEEDS}} if learns else {},
        spent=tuple(
            Spent(setting, seed, entry)
            for setting, keys in settings(name).items()
            for seed in SEEDS
            for entry in spent(name, keys)
        ),
    )
