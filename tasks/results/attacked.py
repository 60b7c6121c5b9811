"""Tables of `attacks.parquet` that follow from metrics alone: reconstructed ratings, and attacks on embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from tasks.results.facts import BASE, WAYS, System
from tasks.results.load import Results
from tasks.results.significance import paired

if TYPE_CHECKING:
    from tasks.core.rows import Columns

ATTACKERS = ("published", "tuned", "averaged", "weighted", "first", "replayed", "joint", "friend")
"""Who reconstructs ratings: `published` and `tuned` see released vectors alone, the others messages, too."""
CONTROL = "public"
RATINGS: Columns = {
    **dict.fromkeys(("experiment", "setting", "attacker"), pl.String),
    "seeds": pl.Int64,
    **dict.fromkeys(("mae", "control", "difference", "low", "high"), pl.Float64),
}
"""`difference`: the attacker's error minus the control's, with its 95 % interval."""
VECTORS: Columns = {
    **dict.fromkeys(("experiment", "setting", "attack"), pl.String),
    **{"k": pl.Int64, "seeds": pl.Int64, "value": pl.Float64, "control": pl.String},
    **dict.fromkeys(("difference", "low", "high"), pl.Float64),
}
"""`experiment`: or the entry of `aligned`; `attack`: the metric; `control`: empty where none was measured;
`difference`: `value` less the control's; `low`, `high`: 95 % interval of the paired t-test, empty with a single run."""
CHANCE, MAJORITY, RANDOM = "chance", "majority", "random"
SCORES = ("precision", "precision-swapped", "micro-f1")
SCORERS = ("cosine", "dot", "hadamard")
LINKS = {"auc": 0.5, "tpr": 0.01}
"""Score of stolen links -> what chance gives."""
LINK_CONTROLS = ("attributes", "degree", RANDOM)
"""Labels of the systems whose vectors are controls: users' attributes alone, how many friends they have, noise. An
attack has to beat these; to beat the most frequent class says nothing, as its precision is low."""
ANCHORS = (("precision", 1), ("precision", 10), ("confident/share", 0), ("confident/precision", 0))
"""What is measured of matched accounts, with its cut-offs; 0 for none."""
ALIGNED = "alignment/chance"


def ratings(results: Results, overlap: float | None) -> pl.DataFrame:
    """`RATINGS`: every attacker on every system and setting, sorted.

    overlap: of the folds that runs are, as of `significance.estimate`.
    """
    rows = []
    for system, setting in _settings(results):
        control = results.values(system.experiment, _error(CONTROL), 0, setting)
        for attacker in ATTACKERS:
            errors = results.values(system.experiment, _error(attacker), 0, setting)
            if gap := paired(errors, control, overlap):
                about = system.experiment, setting, attacker, len(errors)
                rows.append((*about, fmean(errors.values()), fmean(control.values()), *_interval(gap)))
    return pl.DataFrame(rows, RATINGS, orient="row").sort("experiment", "setting", "attacker")


def vectors(results: Results, overlap: float | None) -> pl.DataFrame:
    """`VECTORS`: every attack on every system and setting with each of its controls, sorted.

    overlap: as of `ratings`.
    """
    rows = [_row(attack, overlap) for attack in (*_attributes(results), *_links(results), *_anchors(results))]
    return pl.DataFrame(rows, VECTORS, orient="row").sort("experiment", "setting", "attack", "k", "control")


def _error(attacker: str) -> str:
    return f"reconstruction/{attacker}/mae"


def _settings(results: Results) -> Iterator[tuple[System, str]]:
    for system in results.suite.compared:
        for setting in results.settings(system.experiment):
            yield system, setting


def _interval(gap: dict[str, object]) -> tuple[object, ...]:
    return tuple(gap.get(name) for name in ("gain", "low", "high"))


Attack = tuple[str, str, str, int, dict[int, float], str, dict[int, float]]
"""Experiment, setting, metric, cut-off, values by run, control and its values by run."""


def _of_systems(
    results: Results, metric: str, labels: tuple[str, ...], chance: float | None = None, baseline: str = ""
) -> Iterator[Attack]:
    """Every system and setting of which a metric was measured, over chance or a baseline of its own, and over systems.

    labels: of the systems that are controls.
    """
    controls = [system for label in labels for system in results.suite.systems if system.label == label]
    for system, setting in _settings(results):
        if values := results.values(system.experiment, metric, 0, setting):
            about = (system.experiment, setting, metric, 0, values)
            if chance is None:
                yield (*about, MAJORITY, results.values(system.experiment, baseline, 0, setting))
            else:
                yield (*about, CHANCE, dict.fromkeys(values, chance))
            for other in controls:
                if other.experiment != system.experiment:
                    yield (*about, other.label, results.values(other.experiment, metric))


def _attributes(results: Results) -> Iterator[Attack]:
    for network in results.suite.networks:
        for target in (f"{network.name}/{attribute}" for attribute in network.sensitive):
            for score in SCORES:
                labels = (RANDOM, "rgcn-attribute-free")
                yield from _of_systems(results, f"{target}/{score}", labels, baseline=f"{target}/{MAJORITY}/{score}")


def _links(results: Results) -> Iterator[Attack]:
    for network in results.suite.networks:
        for scorer in SCORERS:
            for score, chance in LINKS.items():
                yield from _of_systems(results, f"{network.name}/links/{scorer}/{score}", LINK_CONTROLS, chance)


def _anchors(results: Results) -> Iterator[Attack]:
    aligned = results.suite.aligned
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


def _row(attack: Attack, overlap: float | None) -> tuple[object, ...]:
    name, setting, metric, k, values, control, level = attack
    about = (name, setting, metric, k or None, len(values), fmean(values.values()) if values else None, control)
    return (*about, *_interval(paired(values, level, overlap)))
