"""All attacks on embeddings and on pairs of networks as one flat table: every score beside every control."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from tasks.reporting.core import findings
from tasks.reporting.core.results import BASE, Results, System
from tasks.reporting.core.words import MAJORITY, SCORES, inference
from tasks.reporting.sections import alignment, links
from tasks.reporting.sections.controls import RANDOM

COLUMNS: dict[str, type[pl.DataType]] = {
    "experiment": pl.String,  # or the entry of `aligned`
    "setting": pl.String,
    "attack": pl.String,  # the metric of METRICS
    "k": pl.Int64,
    "seeds": pl.Int64,
    "value": pl.Float64,
    "control": pl.String,  # empty: none was measured
    "level": pl.Float64,  # of the control
    "difference": pl.Float64,
    "low": pl.Float64,  # 95 % interval of the paired t-test; empty with a single seed
    "high": pl.Float64,
}
CHANCE = "chance"
Attack = tuple[str, str, str, int, dict[int, float], str, dict[int, float]]


def frame(results: Results) -> pl.DataFrame:
    """`attacks.csv` of a suite of networks, with `COLUMNS`: every attack on every system and setting, sorted."""
    rows = [_row(results, *attack) for attack in (*_attributes(results), *_links(results), *_anchors(results))]
    order = ["experiment", "setting", "attack", "k", "control"]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row").sort(order, nulls_last=False)


def _attributes(results: Results) -> Iterator[Attack]:
    for network in results.networks:
        for attribute in network.sensitive:
            for score in SCORES:
                metric, majority = (
                    inference(network.name, name, score) for name in (attribute, f"{attribute}/{MAJORITY}")
                )
                for system, setting, values in _measured_settings(results, metric):
                    about = (system.experiment, setting, metric, 0, values)
                    yield (*about, MAJORITY, results.by_seed(system, majority, 0, setting))
                    for name, other in _controls(results, system, (RANDOM, results.layout.attribute_free)):
                        yield (*about, name, results.by_seed(other, metric, 0))


def _links(results: Results) -> Iterator[Attack]:
    for network in results.networks:
        for scorer in links.SCORERS:
            for score, chance in links.CHANCE.items():
                metric = links.metric(network, scorer, score)
                for system, setting, values in _measured_settings(results, metric):
                    about = (system.experiment, setting, metric, 0, values)
                    yield (*about, CHANCE, dict.fromkeys(values, chance))
                    for name, other in _controls(results, system, links.CONTROLS):
                        yield (*about, name, results.by_seed(other, metric, 0))


def _anchors(results: Results) -> Iterator[Attack]:
    for entry in results.aligned:
        for metric in results.metrics_of(entry.name):
            if metric.startswith("alignment/") and metric.endswith("/precision") and metric.count("/") == 2:
                for k in alignment.CUTOFFS:
                    chance = results.metric_values(entry.name, alignment.CHANCE, k)
                    yield (entry.name, BASE, metric, k, results.metric_values(entry.name, metric, k), CHANCE, chance)
            elif metric.startswith("alignment/") and "/confident/" in metric:
                yield (entry.name, BASE, metric, 0, results.metric_values(entry.name, metric), "", {})
    for name, ks in (("precision", alignment.CUTOFFS), ("confident/share", (0,)), ("confident/precision", (0,))):
        for k in ks:
            known = [results.metric_values(entry.name, alignment.CHANCE, k) for entry in results.aligned if k]
            level = float(np.mean([value for by_seed in known for value in by_seed.values()])) if any(known) else None
            for system, setting, values in _measured_settings(results, f"anchors/{name}", k):
                chance = {} if level is None else dict.fromkeys(values, level)
                control = CHANCE if chance else ""
                yield (system.experiment, setting, f"anchors/{name}", k, values, control, chance)


def _measured_settings(results: Results, metric: str, k: int = 0) -> Iterator[tuple[System, str, dict[int, float]]]:
    """Every system and setting of which a metric was measured."""
    for system in results.compared:
        for setting in results.settings(system):
            if values := results.by_seed(system, metric, k, setting):
                yield system, setting, values


def _controls(results: Results, system: System, labels: tuple[str, ...]) -> Iterator[tuple[str, System]]:
    """Systems that are controls of this one."""
    for label in labels:
        other = results.find(label)
        if other is not None and other.label == label and other is not system:
            yield label, other


def _row(
    results: Results,
    name: str,
    setting: str,
    metric: str,
    k: int,
    values: dict[int, float],
    control: str,
    level: dict[int, float],
) -> tuple[object, ...]:
    mean = float(np.mean(list(values.values()))) if values else None
    about = (name, setting, metric, k or None, len(values), mean, control)
    seeds = sorted(values.keys() & level.keys())
    if not seeds:
        return (*about, None, None, None, None)
    left, right = (np.array([by_seed[seed] for seed in seeds]) for by_seed in (values, level))
    test = findings.paired_tests(results, {"": (left, right)})[""] if len(seeds) > 1 else None
    interval = (None, None) if test is None else (test.low, test.high)
    return (*about, float(right.mean()), float((left - right).mean()), *interval)
