"""The comparisons of our numbers that test a claim of a paper (`tasks.results.claims`); `judging` judges them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.results.claims import Measure, Order, Side, Spec, Trend
from tasks.results.facts import BASE, System
from tasks.results.printed import Against, ratio
from tasks.results.settings import along, at_base, find_setting

Curve = dict[int, NDArray[np.float64]]
"""Run -> (n_x,) values."""


class Comparison(NamedTuple):
    """A difference of our numbers that lies above zero where the claim holds."""

    group: Any
    """The case that it belongs to."""
    about: dict[str, Any]
    """What is compared, as columns of evidence.csv: `measure`, and of sides `left`, `right`, settings and means, or of
    trends `methods`, `key`, `first`, `last` and means; `only` where it cannot contradict, or support, the claim."""
    gaps: dict[int, float]
    """Run -> difference."""


def comparisons(against: Against, spec: Spec) -> tuple[list[Comparison], list[Side]]:
    """The comparisons that can be made, and what was not run."""
    result, absent = _of_order(against, spec) if isinstance(spec, Order) else _of_trend(against, spec)
    return result, list(dict.fromkeys(absent))


def below_floor(against: Against, spec: Spec) -> list[dict[str, Any]]:
    """Of a claim with a trivial baseline: each setting that it calls better, with both means over common runs."""
    rows = []
    for side, measure in _praised(against, spec) if spec.floor else ():
        method, baseline = by_run(against, side, measure), by_run(against, Side(spec.floor, at=side.at), measure)
        if runs := sorted(method.keys() & baseline.keys()):
            left, right = (float(np.mean([values[run] for run in runs])) for values in (method, baseline))
            gap = measure.sign * (left - right)
            about = {"measure": measure.name, "left": side.method, "left_setting": json.dumps(side.values)}
            rows.append(about | {"left_mean": left, "right_mean": right, "gap": gap})
    return rows


def by_run(against: Against, side: Side, measure: Measure) -> dict[int, float]:
    """Run -> mean over the cut-offs; empty where the system, the setting or a cut-off was not run."""
    system, results = against.of_method(side.method), against.results
    if system is None:
        return {}
    wanted = dict(side.setting) | ({side.key: side.value} if side.key else {})
    if side.at:  # of keys that the system has
        existing = {*against.paper.bases, *at_base(results, system), *(key for point in system.sweep for key in point)}
        wanted |= {key: value for key, value in side.at if key in existing}
    setting = find_setting(results, system, wanted, against.paper.bases)
    return {} if setting is None else _over_cutoffs(against, system, measure, setting)


def _over_cutoffs(against: Against, system: System, measure: Measure, setting: str) -> dict[int, float]:
    columns = [
        ratio(against.results, system.experiment, measure.metric, measure.ratio_to, k, setting) for k in measure.ks
    ]
    runs = set.intersection(*(set(column) for column in columns))
    return {run: float(np.mean([column[run] for column in columns])) for run in sorted(runs)}


def _of_order(against: Against, spec: Order) -> tuple[list[Comparison], list[Side]]:
    result: list[Comparison] = []
    absent: list[Side] = []
    for measure in spec.measures:
        for pair in spec.pairs:
            sides = (*pair, Side(spec.near)) if spec.near else tuple(pair)
            values = [by_run(against, side, measure) for side in sides]
            absent += [side for side, by_side in zip(sides, values, strict=True) if not by_side]
            runs = sorted(set.intersection(*(set(by_side) for by_side in values)))
            if not runs:
                continue
            arrays = [np.array([by_side[run] for run in runs]) for by_side in values]
            about = {
                "measure": measure.name, "digits": measure.digits, "near": spec.near,
                "left": pair.better.method, "left_setting": json.dumps(pair.better.values),
                "right": pair.than.method, "right_setting": json.dumps(pair.than.values),
                "left_mean": float(arrays[0].mean()), "right_mean": float(arrays[1].mean()),
            }  # fmt: skip
            group = (measure.name, pair) if spec.apart else measure.name
            for more, gaps in _gaps(spec, measure, arrays):
                result.append(Comparison(group, about | more, dict(zip(runs, gaps.tolist(), strict=True))))
    return result, absent


def _gaps(
    spec: Order, measure: Measure, values: Sequence[NDArray[np.float64]]
) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
    """What is to lie above zero, and what is special about it."""
    if spec.near:
        first, second = (-np.abs(side - values[2]) for side in values[:2])
        yield {}, first - second
        return
    left, right = (measure.sign * side for side in values)
    yield {} if measure.against is None else {"only": "supports"}, left - measure.factor * right
    if measure.against is not None:
        yield {"only": "contradicts"}, left - measure.against * right
    if spec.at_most is not None:
        yield {"at_most": spec.at_most}, (1 + spec.at_most) * (measure.factor * right) - left


def _of_trend(against: Against, spec: Trend) -> tuple[list[Comparison], list[Side]]:
    """One comparison per measure: the slopes against zero."""
    result: list[Comparison] = []
    absent: list[Side] = []
    for measure in spec.measures:
        xs = _shared(against, spec, measure)
        curves, lacking = _curves(against, spec, measure, xs)
        absent += lacking
        runs = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
        if not runs:
            continue
        values = np.mean([[curve[run] for run in runs] for curve in curves], axis=0)  # (n_runs, n_x)
        steps = np.arange(values.shape[1]) - (values.shape[1] - 1) / 2
        slopes = (values * steps).sum(axis=1) / (steps**2).sum()  # of least squares; LAPACK's depend on alignment
        ends = values.mean(axis=0)
        about = {
            "measure": measure.name, "digits": measure.digits, "key": spec.key, "first": xs[0], "last": xs[-1],
            "methods": json.dumps(spec.methods), "left_mean": float(ends[0]), "right_mean": float(ends[-1]),
            "below": spec.below, "near": spec.near, "minus": bool(spec.minus),
        }  # fmt: skip
        gaps = (slopes if spec.rises else -slopes).tolist()
        result.append(Comparison(measure.name, about, dict(zip(runs, gaps, strict=True))))
    return result, absent


def _curves(against: Against, spec: Trend, measure: Measure, xs: list[float]) -> tuple[list[Curve], list[Side]]:
    """What is averaged of every method, and what was not run."""
    curves, absent = list[Curve](), list[Side]()
    for method in spec.methods:
        curve = _curve(against, spec, method, measure, xs)
        absent += [] if curve else [Side(method, spec.key, None)]
        curves += [curve] if curve else []
    if (other := spec.below or spec.near) and curves:
        top = _curve(against, spec, other, measure, xs)
        absent += [] if top else [Side(other)]
        curves = [{run: top[run] - curve[run] for run in curve.keys() & top.keys()} for curve in curves]
        if spec.near:
            curves = [{run: np.abs(curve[run]) for run in curve} for curve in curves]
    if spec.minus and curves:
        subtrahend = replace(spec, at=spec.minus, minus=())
        less = [_curve(against, subtrahend, method, measure, xs) for method in spec.methods]
        if len(less) != len(curves) or not all(less):
            return [], [*absent, *(Side(method, spec.key, None) for method in spec.methods)]
        curves = [
            {run: curve[run] - off[run] for run in curve.keys() & off.keys()}
            for curve, off in zip(curves, less, strict=True)
        ]
    return curves, absent


def _curve(against: Against, spec: Trend, method: str, measure: Measure, xs: list[float]) -> Curve:
    """Run -> (n_x,) values; empty where there are fewer than three, or one of them was not run."""
    system = against.of_method(method)
    if system is None or len(xs) < 3:
        return {}
    if spec.key == "K":
        columns = [_over_cutoffs(against, system, replace(measure, ks=(k,)), BASE) for k in measure.ks]
    else:
        settings = _settings(against, spec, method)
        columns = [_over_cutoffs(against, system, measure, settings[x]) if x in settings else {} for x in xs]
    if not all(columns):
        return {}
    runs = sorted(set.intersection(*(set(column) for column in columns)))
    return {run: np.array([column[run] for column in columns]) for run in runs}


def _settings(against: Against, spec: Trend, method: str) -> dict[float, str]:
    system, results = against.of_method(method), against.results
    if system is None:
        return {}
    settings = along(results, system, spec.key, dict(spec.at), against.paper.bases)
    if not spec.at and len(settings) < 2:
        return {}
    return {x: setting for x, setting in settings.items() if not spec.values or x in spec.values}


def _shared(against: Against, spec: Trend, measure: Measure) -> list[float]:
    """The x at which all methods were run that were run at three or more, and the one above them."""
    if spec.key == "K":
        return [float(k) for k in measure.ks]
    runs = [_settings(against, spec, method) for method in (*spec.methods, spec.below or spec.near) if method]
    enough = [set(settings) for settings in runs if len(settings) >= 3]
    return sorted(set.intersection(*enough)) if enough else []


def _praised(against: Against, spec: Spec) -> list[tuple[Side, Measure]]:
    """What a claim calls better, or compares with itself, and by what."""
    if isinstance(spec, Order):
        sides = dict.fromkeys(pair.better for pair in spec.pairs)
        return [(side, measure) for measure in spec.measures for side in sides]
    return [
        (Side(method, at=(*spec.at, (spec.key, x))), measure)
        for measure in spec.measures
        for method in spec.methods
        for x in _settings(against, spec, method)
    ]
