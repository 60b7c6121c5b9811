"""Whose account is whose: how often accounts of one person are matched across two networks (re-identification).

Precision@k is the share of judged anchors whose true account is among the k nearest; chance guesses among all accounts.
A way fails at a seed where so many first guesses would be right by chance with a probability above `AT_CHANCE`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from tasks.results.facts import Aligned
from tasks.results.leakage import significance
from tasks.results.leakage.kind import Kind
from tasks.results.load import Results

WAYS = (
    "adversarial", "cycle", "attributes", "attribute-start", "anchors-1%", "anchors-5%", "anchors-10%", "anchors-80%",
)  # fmt: skip
SUPERVISED = WAYS[4:]
"""Ways that are given a share of the true anchors: positive controls of what an attacker without any can do."""
AT_CHANCE = 0.001


def gains(results: Results) -> pl.DataFrame:
    """`significance.GAINS`: precision at the first guess over chance, for each way of each alignment, over people."""
    rows = []
    for row in _ways(results):
        about = {"target": "accounts", "experiment": row["entry"], "attacker": row["way"], "k": 1, "control": "chance"}
        about |= {"value": row["precision"], "gain": row["precision"] - row["chance"]}
        low, high = (bound - row["chance"] for bound in wilson(row["precision"], row["judged"]))
        rows.append(about | {"low": low, "high": high, "is_control": row["way"] in SUPERVISED})
    return significance.table(rows)


def shown(results: Results, judged: pl.DataFrame) -> dict[str, Any]:
    """`ways`: each alignment's precision, seeds at chance, and who is named with confidence; `released`: vectors."""
    del judged
    released = []
    for system in results.suite.compared:
        row = {
            name: results.mean(system.experiment, f"anchors/{metric}", k)
            for name, metric, k in (("precision", "precision", 1), *_CONFIDENT)
        }
        if row["precision"] is not None or row["share"] is not None:
            released.append({"label": system.label} | row)
    return {"ways": _ways(results), "released": released}


_CONFIDENT = (("share", "confident/share", 0), ("right", "confident/precision", 0))


def _ways(results: Results) -> list[dict[str, Any]]:
    rows = []
    for entry in results.suite.aligned:
        by_seed = results.values(entry.name, "alignment/chance", 1)
        chance = sum(by_seed.values()) / len(by_seed) if by_seed else None
        for way in WAYS:
            seeds = results.values(entry.name, f"alignment/{way}/precision", 1)
            if seeds and chance is not None:
                row: dict[str, Any] = {"entry": entry.name, "way": way, "judged": entry.judged, "seeds": seeds}
                row |= {"chance": chance, "precision": sum(seeds.values()) / len(seeds)}
                row["precision_10"] = results.mean(entry.name, f"alignment/{way}/precision", 10)
                row |= {
                    name: results.mean(entry.name, f"alignment/{way}/{metric}", k) for name, metric, k in _CONFIDENT
                }
                rows.append(row | {"failed": failed(entry, seeds, chance)})
    return rows


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share of n people (Wilson 1927): for other people, at the seeds that were run."""
    z = 1.959964
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def failed(entry: Aligned, seeds: Mapping[int, float], chance: float) -> list[int]:
    """Seeds whose first guesses are no better than chance, by the binomial test."""
    from scipy.special import bdtrc  # a fifth of a second to import, for suites with alignments alone

    n = entry.judged
    right = {seed: round(value * n) for seed, value in sorted(seeds.items())}
    return [seed for seed, count in right.items() if not count or float(bdtrc(count - 1, n, chance)) > AT_CHANCE]


KIND = Kind("accounts", "embeddings", gains, shown=shown)
