"""What attacks found where metrics have all of it: `attacks.parquet` of reconstructed ratings and of embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.evaluation import statistics
from tasks.results.facts import BASE, WAYS, System
from tasks.results.judging import paired_tests
from tasks.results.load import Results
from tasks.results.paper import Paper
from tasks.results.printed import Against

ATTACKERS = ("published", "tuned", "averaged", "weighted", "first", "replayed", "joint", "friend")
"""Who reconstructs ratings: `published` and `tuned` see released vectors alone, the others messages, too."""
CONTROL = "public"
RATINGS: dict[str, Any] = {
    **dict.fromkeys(("experiment", "setting", "attacker"), pl.String),
    "seeds": pl.Int64,
    **dict.fromkeys(("mae", "control", "difference", "low", "high"), pl.Float64),
}
"""`difference`: the attacker's error minus the control's, with its 95 % interval."""
VECTORS: dict[str, Any] = {
    **dict.fromkeys(("experiment", "setting", "attack"), pl.String),
    "k": pl.Int64,
    "seeds": pl.Int64,
    "value": pl.Float64,
    "control": pl.String,
    **dict.fromkeys(("level", "difference", "low", "high"), pl.Float64),
}
"""`experiment`: or the entry of `aligned`; `attack`: the metric; `control`: empty where none was measured; `level`: of
the control; `low`, `high`: 95 % interval of the paired t-test, empty with a single run."""
CHANCE, MAJORITY, RANDOM = "chance", "majority", "random"
SCORES = ("precision", "precision-swapped", "micro-f1")
SCORERS = ("cosine", "dot", "hadamard")
LINKS = {"auc": 0.5, "tpr": 0.01}
"""Score of stolen links -> what chance gives."""
LINK_CONTROLS = ("attributes", "degree", RANDOM)
ANCHORS = (("precision", 1), ("precision", 10), ("confident/share", 0), ("confident/precision", 0))
"""What is measured of matched accounts, with its cut-offs; 0 for none."""
ALIGNED = "alignment/chance"


def ratings(results: Results, paper: Paper) -> pl.DataFrame:
    """`RATINGS`: every attacker on every system and setting, sorted."""
    rows = []
    for system, setting in _settings(results):
        control = results.values(system.experiment, _error(CONTROL), 0, setting)
        for attacker in ATTACKERS:
            errors = results.values(system.experiment, _error(attacker), 0, setting)
            if runs := sorted(errors.keys() & control.keys()):
                gap = np.array([errors[run] - control[run] for run in runs])
                means = fmean(errors.values()), fmean(control.values()), float(gap.mean())
                about = system.experiment, setting, attacker, len(errors)
                rows.append((*about, *means, *_interval(results, paper, gap)))
    return pl.DataFrame(rows, RATINGS, orient="row").sort("experiment", "setting", "attacker")


def vectors(results: Results, paper: Paper) -> pl.DataFrame:
    """`VECTORS`: every attack on every system and setting with each of its controls, sorted."""
    against = Against(results, paper)
    rows = [_row(against, attack) for attack in (*_attributes(against), *_links(against), *_anchors(against))]
    return pl.DataFrame(rows, VECTORS, orient="row").sort("experiment", "setting", "attack", "k", "control")


def _error(attacker: str) -> str:
    return f"reconstruction/{attacker}/mae"


def _settings(results: Results) -> Iterator[tuple[System, str]]:
    for system in results.suite.compared:
        for setting in results.settings(system.experiment):
            yield system, setting


def _interval(results: Results, paper: Paper, gap: NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of a mean: bootstrapped over seeds; by the t-test over folds, or over splits.

    A bootstrap takes values for independent, which those of folds and those of one split are not.
    """
    suite = results.suite
    splits = suite.n_splits > 1 and len(gap) == max(len(system.seeds) for system in suite.compared)
    if len(gap) < 2 or (paper.overlap is None and not splits):
        over_seeds = statistics.summary(gap)
        return over_seeds.low, over_seeds.high
    test = paired_tests(Against(results, paper), {"": (gap, np.zeros(len(gap)))})[""]
    return test.low, test.high


Attack = tuple[str, str, str, int, dict[int, float], str, dict[int, float]]
"""Experiment, setting, metric, cut-off, values by run, control and its values by run."""


def _of_systems(
    against: Against, metric: str, labels: tuple[str, ...], chance: float | None = None, baseline: str = ""
) -> Iterator[Attack]:
    """Every system and setting of which a metric was measured, over chance or a baseline of its own, and over systems.

    labels: of the systems that are controls.
    """
    results = against.results
    controls = [(label, other) for label in labels if (other := against.find(label)) and other.label == label]
    for system, setting in _settings(results):
        if values := results.values(system.experiment, metric, 0, setting):
            about = (system.experiment, setting, metric, 0, values)
            if chance is None:
                yield (*about, MAJORITY, results.values(system.experiment, baseline, 0, setting))
            else:
                yield (*about, CHANCE, dict.fromkeys(values, chance))
            for label, other in controls:
                if other.experiment != system.experiment:
                    yield (*about, label, results.values(other.experiment, metric))


def _attributes(against: Against) -> Iterator[Attack]:
    for network in against.results.suite.networks:
        for target in (f"{network.name}/{attribute}" for attribute in network.sensitive):
            for score in SCORES:
                labels = (RANDOM, "rgcn-attribute-free")
                yield from _of_systems(against, f"{target}/{score}", labels, baseline=f"{target}/{MAJORITY}/{score}")


def _links(against: Against) -> Iterator[Attack]:
    for network in against.results.suite.networks:
        for scorer in SCORERS:
            for score, chance in LINKS.items():
                yield from _of_systems(against, f"{network.name}/links/{scorer}/{score}", LINK_CONTROLS, chance)


def _anchors(against: Against) -> Iterator[Attack]:
    results, aligned = against.results, against.results.suite.aligned
    for entry, (name, k), approach in product(aligned, ANCHORS, WAYS):
        metric = f"alignment/{approach}/{name}"
        if values := results.values(entry.name, metric, k):
            chance = results.values(entry.name, ALIGNED, k) if k else {}
            yield (entry.name, BASE, metric, k, values, CHANCE if k else "", chance)
    for name, k in ANCHORS:
        by_chance = [results.values(entry.name, ALIGNED, k) for entry in aligned if k]
        chances = [value for values in by_chance for value in values.values()]
        for system, setting in _settings(results):
            if values := results.values(system.experiment, f"anchors/{name}", k, setting):
                chance = dict.fromkeys(values, fmean(chances)) if chances else {}
                yield (system.experiment, setting, f"anchors/{name}", k, values, CHANCE if chances else "", chance)


def _row(against: Against, attack: Attack) -> tuple[object, ...]:
    name, setting, metric, k, values, control, level = attack
    about = (name, setting, metric, k or None, len(values), fmean(values.values()) if values else None, control)
    runs = sorted(values.keys() & level.keys())
    if not runs:
        return (*about, None, None, None, None)
    left, right = (np.array([by_run[run] for run in runs]) for by_run in (values, level))
    test = paired_tests(against, {"": (left, right)})[""] if len(runs) > 1 else None
    interval = (None, None) if test is None else (test.low, test.high)
    return (*about, float(right.mean()), float((left - right).mean()), *interval)
