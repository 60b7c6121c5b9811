"""How the systems of a suite stand at setting `base`: utility, role, difference from noisy popularity, budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from tasks.evaluation.pairs import verdicts
from tasks.privacy.terms import Level
from tasks.results.budgets import BUDGETS, budgets
from tasks.results.facts import BASE, BASELINES, System
from tasks.results.load import Results
from tasks.results.paper import Paper

Role = Literal["ceiling", "baseline", "private", "other"]
SMALL_EPSILON = 1.0
"""The user-level ε up to which the best private system is named."""
STANDINGS: dict[str, Any] = {
    "experiment": pl.String,
    "model": pl.String,
    "label": pl.String,
    "role": pl.String,
    "own": pl.Boolean,
    "utility": pl.Float64,
    "utility_std": pl.Float64,
    "n": pl.Int64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "verdict": pl.String,
}


@dataclass(frozen=True)
class Measure:
    """What systems are compared by, and against which: facts that the suite's paper gives."""

    metric: str
    """`metric` in METRICS; empty where none of the paper's is measured."""
    k: int
    """Its cut-off; 0 for none."""
    label: str
    """With its cut-off: "NDCG@10"."""
    spoken: str
    """What is ranked, in running text: "full ranking"."""
    digits: int
    lower: bool
    """Whether less is better."""
    run: str
    """What is repeated: "seed" or "fold"."""
    open: tuple[str, ...]
    """Labels of systems whose best is the ceiling."""
    noisy: str
    """Label of noisy popularity, or of what stands for it; empty for none."""
    own: str
    """Label of the paper's own method; empty for none."""
    overlap: float | None
    """Of the folds that runs are (`Paper.overlap`); None where runs are seeds."""

    def best_first(self, utility: float | None) -> float:
        """What systems are sorted by; those without a value stand last."""
        return math.inf if utility is None or math.isnan(utility) else utility if self.lower else -utility


@dataclass(frozen=True)
class Headline:
    """Who answers the questions of the first screen, as rows of `standings`; None: no such system."""

    best: dict[str, Any] | None
    ceiling: dict[str, Any] | None
    noisy: dict[str, Any] | None
    own: dict[str, Any] | None
    private: dict[str, Any] | None
    """`best_bounded` at user-level ε ≤ `SMALL_EPSILON`."""
    cost: float | None
    """What of the ceiling's utility `private` loses, as a share of it; None without both."""


def measure(results: Results, paper: Paper) -> Measure:
    """What the systems of a suite are compared by: the first of the paper's metrics that was measured for any.

    Its cut-off is the measured one next to the paper's.
    """
    known = set(results.metrics["metric"])
    ranked = (paper.utility, *paper.qualities)
    quality = next((quality for quality in ranked if quality.metric in known), paper.utility)
    wanted = quality.cutoff(paper.headline_k)
    measured = set(results.metrics.filter(metric=quality.metric)["k"])
    k = min(measured, key=lambda cutoff: (abs(cutoff - wanted), cutoff), default=0)
    return Measure(
        metric=quality.metric if measured else "",
        k=k,
        label=quality.at(k) if k else quality.label,
        spoken=quality.spoken,
        digits=quality.digits,
        lower=quality.lower,
        run=paper.run,
        open=paper.open,
        noisy=paper.private_yardstick,
        own=paper.methods.get(paper.name, "") if results.suite.paper else "",
        overlap=paper.overlap,
    )


def standings(results: Results, by: Measure) -> pl.DataFrame:
    """`STANDINGS`: a row for each compared system, best first.

    `utility`, `utility_std`, `n`: over runs at setting `base`; `own`: whether the paper is of it; `difference`: from
    noisy popularity, mean over the runs that both have; `low`, `high`, `verdict`: its interval and what follows, null
    without stored pairs.
    """
    private = set(base_budgets(results).filter(pl.col("private"))["experiment"])
    systems = {system.label: system for system in results.suite.compared}
    utility = {label: _values(results, system, by) for label, system in systems.items()}
    means = {label: sum(values.values()) / len(values) for label, values in utility.items() if values}
    ceiling = _ceiling(systems.values(), private, means, by)
    compared = _verdicts(results, by, systems[by.noisy].experiment) if by.noisy in systems else {}
    rows: list[dict[str, Any]] = []
    for label, system in systems.items():
        values = pl.Series(list(utility[label].values()), dtype=pl.Float64)
        role: Role = "private" if system.experiment in private else "other"
        if system.model in BASELINES:
            role = "baseline"
        about = {"experiment": system.experiment, "model": system.model, "label": label, "own": label == by.own}
        about |= {"role": "ceiling" if label == ceiling else role, "n": len(values)}
        about |= {"utility": means.get(label), "utility_std": values.std() if len(values) > 1 else None}
        about |= {"difference": _difference(utility[label], utility.get(by.noisy, {}), label == by.noisy)}
        rows.append(about | compared.get(system.experiment, {}))
    rows.sort(key=lambda row: by.best_first(row["utility"]))
    return pl.DataFrame(rows, schema=STANDINGS)


def base_budgets(results: Results) -> pl.DataFrame:
    """`BUDGETS` of the compared systems at setting `base`."""
    compared = [system.experiment for system in results.suite.compared]
    known = budgets(results).filter(pl.col("setting") == BASE, pl.col("experiment").is_in(compared))
    return known.select(*BUDGETS)


def headline(table: pl.DataFrame, spent: pl.DataFrame, by: Measure) -> Headline:
    """The answers of the first screen.

    Args:
        table: of `standings`.
        spent: of `base_budgets`.
    """
    rows = table.to_dicts()
    measured = [row for row in rows if row["utility"] is not None]
    ceiling = next((row for row in measured if row["role"] == "ceiling"), None)
    private = best_bounded(table, spent, "user", SMALL_EPSILON)
    cost = None
    if ceiling and private and ceiling["utility"]:
        cost = (1 - private["utility"] / ceiling["utility"]) * (-1 if by.lower else 1)
    return Headline(
        best=next(iter(measured), None),
        ceiling=ceiling,
        noisy=next((row for row in measured if row["label"] == by.noisy), None),
        own=next((row for row in rows if row["own"]), None),
        private=private,
        cost=cost,
    )


def best_bounded(
    table: pl.DataFrame, spent: pl.DataFrame, level: Level, most: float = math.inf
) -> dict[str, Any] | None:
    """The best system with a finite accounted ε of a level, and of every other level that its ledger has.

    It is a row of `table` with the columns of `BUDGETS` of that level; None without any.

    Args:
        table: of `standings`.
        spent: of `base_budgets`.
        most: ε up to which a system counts.
    """
    unbounded = set(spent.filter(pl.col("accounted").is_infinite())["experiment"])
    counted = spent.filter(pl.col("level") == level, pl.col("accounted") <= most)
    bounded = {row["experiment"]: row for row in counted.to_dicts() if row["experiment"] not in unbounded}
    for row in table.filter(pl.col("utility").is_not_null()).to_dicts():
        if row["experiment"] in bounded:
            return bounded[row["experiment"]] | row
    return None


def _values(results: Results, system: System, by: Measure) -> dict[int, float]:
    return results.values(system.experiment, by.metric, by.k) if by.metric else {}


def _ceiling(systems: Any, private: set[str], means: dict[str, float], by: Measure) -> str:
    """The best of what the paper compares protection with, or else of all that neither protects nor is a baseline."""
    free = [s.label for s in systems if s.experiment not in private and s.model not in BASELINES and s.label in means]
    return min([label for label in free if label in by.open] or free, key=lambda label: by.best_first(means[label]),
               default="")  # fmt: skip


def _verdicts(results: Results, by: Measure, noisy: str) -> dict[str, dict[str, Any]]:
    """Experiment -> interval of its difference from noisy popularity over users and runs, and its verdict."""
    stored = results.pairs.filter(pl.col("b") == noisy, metric=by.metric, facet="all")
    stored = stored.filter(pl.col("k").fill_null(0) == by.k)
    compared = verdicts(stored, overlap=by.overlap or 0.0)
    return {row["a"]: {name: row[name] for name in ("low", "high", "verdict")} for row in compared.to_dicts()}


def _difference(values: dict[int, float], noisy: dict[int, float], same: bool) -> float | None:
    """Mean over common runs; None for noisy popularity itself or without any."""
    common: Sequence[int] = sorted(values.keys() & noisy.keys())
    return None if same or not common else sum(values[run] - noisy[run] for run in common) / len(common)
