"""The comparisons of our numbers that test a claim of a paper (`tasks.results.claims`); `claims` judges them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tasks.reporting.core.comparison import values_by_seed
from tasks.reporting.core.layout import join_words, number
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.sweeps import NAMES, base_value, find_setting, settings_along, swept
from tasks.results.claims import Measure, Order, Side, Spec, Trend
from tasks.results.verdicts import Comparison

Curve = dict[int, NDArray[np.float64]]
"""Seed -> (n_x,) values."""


def comparisons(results: Results, spec: Spec) -> tuple[list[Comparison], list[str]]:
    """The comparisons that can be made, and what was not run."""
    made, absent = _of_order(results, spec) if isinstance(spec, Order) else _of_trend(results, spec)
    return made, unique(absent)


def compared_with_floor(results: Results, spec: Spec) -> str:
    """How many settings have a worse mean than the floor, and the furthest of them; empty where none was run."""
    below = []
    for side, measure in _praised(results, spec) if spec.floor else ():
        ours = by_seed(results, side, measure)
        floor = by_seed(results, Side(spec.floor, at=side.at), measure)
        if seeds := sorted(ours.keys() & floor.keys()):
            means = [float(np.mean([values[seed] for seed in seeds])) for values in (ours, floor)]
            below.append((measure.sign * (means[0] - means[1]), side, measure, means))
    if not below:
        return ""
    _, side, measure, means = min(below, key=lambda gap: gap[0])
    worse = sum(gap < 0 for gap, *_ in below)
    mine, theirs = (number(mean, measure.digits) for mean in means)
    furthest = f"; furthest, {measure.name} {mine} of {name_of(side)} against {theirs}" if worse else ""
    return f" Means over all runs worse than that of {spec.floor}: {worse} of {len(below)}{furthest}."


def name_of(side: Side) -> str:
    """A side of a comparison as evidence names it."""
    if side.version is not None and (side.setting or side.at):
        values = ", ".join(f"{NAMES.get(key, key)} = {value:g}" for key, value in side.at)
        return f"{side.method} ({side.version or side.setting or values})"
    return f"{side.method} ({NAMES.get(side.key, side.key)} = {side.value:g})" if side.key else side.method


def system_of(results: Results, method: str) -> System | None:
    """The system that answers to a method's name in the paper."""
    return results.find(results.layout.methods.get(method, method))


def by_seed(results: Results, side: Side, measure: Measure) -> dict[int, float]:
    """Seed -> mean over the cut-offs; empty where the system, the setting or a cut-off was not run."""
    system = system_of(results, side.method)
    if system is None:
        return {}
    setting: str | None
    if side.at:
        setting = find_setting(results, system, dict(side.at))
    else:
        wanted = _swept_setting(results, system, side) if side.key else side.setting or BASE
        setting = None if wanted is None else results.find_setting(system, wanted)
    if setting is None:
        return {}
    columns = [values_by_seed(results, system, measure.metric, measure.ratio_to, k, setting) for k in measure.ks]
    seeds = set.intersection(*(set(column) for column in columns))
    return {seed: float(np.mean([column[seed] for column in columns])) for seed in sorted(seeds)}


def _of_order(results: Results, spec: Order) -> tuple[list[Comparison], list[str]]:
    """One comparison per pair and measure."""
    made: list[Comparison] = []
    absent: list[str] = []
    for measure in spec.measures:
        for pair in spec.pairs:
            sides = (*pair, Side(spec.near)) if spec.near else pair
            values = [by_seed(results, side, measure) for side in sides]
            absent += [name_of(side) for side, known in zip(sides, values, strict=True) if not known]
            seeds = sorted(set.intersection(*(set(known) for known in values)))
            if not seeds:
                continue
            arrays = [np.array([known[seed] for seed in seeds]) for known in values]
            labels = [
                f"{name_of(side)} {number(array.mean(), measure.digits)}"
                for side, array in zip(sides, arrays, strict=True)
            ]
            text = f"{measure.name}: {', '.join(labels)}"
            group = text if spec.apart else measure.name
            left, right, against = _sides(spec, measure, arrays)
            made.append(Comparison(group, text, left, right, against))
            if spec.at_most is not None:
                limit = f"{text}, at most {100 * spec.at_most:g} % more"
                made.append(Comparison(group, limit, (1 + spec.at_most) * right, left))
    return made, absent


def _sides(spec: Order, measure: Measure, values: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
    """The two sides of a comparison, larger being better, and what contradicts it."""
    if spec.near:
        first, second = (-np.abs(side - values[2]) for side in values[:2])
        return first, second, second
    left, right = (measure.sign * side for side in values)
    against = measure.factor if measure.against is None else measure.against
    return left, measure.factor * right, against * right


def _of_trend(results: Results, spec: Trend) -> tuple[list[Comparison], list[str]]:
    """One comparison per measure: the slopes against zero."""
    made: list[Comparison] = []
    absent: list[str] = []
    for measure in spec.measures:
        xs = _shared(results, spec, measure)
        curves, lacking = _curves(results, spec, measure, xs)
        absent += lacking
        seeds = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
        if not seeds:
            continue
        values = np.mean([[curve[seed] for seed in seeds] for curve in curves], axis=0)  # (n_seeds, n_x)
        slopes = np.polyfit(np.arange(values.shape[1]), values.T, 1)[0]
        ends = values.mean(axis=0)
        name = NAMES.get(spec.key, spec.key)
        what = f"{spec.below} minus the other, {measure.name}" if spec.below else measure.name
        what = f"distance from {spec.near}, {measure.name}" if spec.near else what
        what = f"difference of {what}" if spec.minus else what
        first, last = (number(end, measure.digits) for end in (ends[0], ends[-1]))
        text = f"{what}: {first} at {name} = {xs[0]:g}, {last} at {xs[-1]:g}"
        made.append(Comparison(measure.name, text, slopes if spec.rises else -slopes, np.zeros(len(slopes))))
    return made, absent


def _curves(results: Results, spec: Trend, measure: Measure, xs: list[float]) -> tuple[list[Curve], list[str]]:
    """What is averaged of every method, and what was not run."""
    curves, absent = list[Curve](), list[str]()
    for method in spec.methods:
        curve = _curve(results, spec, method, measure, xs)
        absent += [] if curve else [f"{method} at three values of {NAMES.get(spec.key, spec.key)}"]
        curves += [curve] if curve else []
    if (other := spec.below or spec.near) and curves:
        top = _curve(results, spec, other, measure, xs)
        absent += [] if top else [other]
        curves = [{seed: top[seed] - curve[seed] for seed in curve.keys() & top.keys()} for curve in curves]
        if spec.near:
            curves = [{seed: np.abs(curve[seed]) for seed in curve} for curve in curves]
    if spec.minus and curves:
        subtrahend = replace(spec, at=spec.minus, minus=())
        less = [_curve(results, subtrahend, method, measure, xs) for method in spec.methods]
        if len(less) != len(curves) or not all(less):
            return [], [*absent, f"{join_words(spec.methods)} at the same values"]
        curves = [
            {seed: curve[seed] - off[seed] for seed in curve.keys() & off.keys()}
            for curve, off in zip(curves, less, strict=True)
        ]
    return curves, absent


def _curve(results: Results, spec: Trend, method: str, measure: Measure, xs: list[float]) -> Curve:
    """Seed -> (n_x,) values; empty where there are fewer than three, or one of them was not run."""
    if spec.key == "K":
        columns = [by_seed(results, Side(method), replace(measure, ks=(k,))) for k in measure.ks]
    else:
        settings = _settings(results, spec, method)
        columns = [by_seed(results, Side(method, setting=settings[x]), measure) if x in settings else {} for x in xs]
    if len(xs) < 3 or not all(columns):
        return {}
    seeds = sorted(set.intersection(*(set(column) for column in columns)))
    return {seed: np.array([column[seed] for column in columns]) for seed in seeds}


def _settings(results: Results, spec: Trend, method: str) -> dict[float, str]:
    """Value of the swept key -> setting, of a method."""
    system = system_of(results, method)
    if system is None:
        return {}
    if spec.at:
        settings = settings_along(results, system, spec.key, dict(spec.at))
    else:
        settings = swept(results, system).get(spec.key, {})
    return {x: setting for x, setting in settings.items() if not spec.values or x in spec.values}


def _shared(results: Results, spec: Trend, measure: Measure) -> list[float]:
    """The x at which all methods were run that were run at three or more, and the one above them."""
    if spec.key == "K":
        return [float(k) for k in measure.ks]
    runs = [_settings(results, spec, method) for method in (*spec.methods, spec.below or spec.near) if method]
    enough = [set(settings) for settings in runs if len(settings) >= 3]
    return sorted(set.intersection(*enough)) if enough else []


def _praised(results: Results, spec: Spec) -> list[tuple[Side, Measure]]:
    """What a claim calls better, or compares with itself, and by what."""
    if isinstance(spec, Order):
        return [(side, measure) for measure in spec.measures for side in unique([pair.better for pair in spec.pairs])]
    name = NAMES.get(spec.key, spec.key)
    return [
        (Side(method, at=(*spec.at, (spec.key, x)), version=f"{name} = {x:g}"), measure)
        for measure in spec.measures
        for method in spec.methods
        for x in _settings(results, spec, method)
    ]


def _swept_setting(results: Results, system: System, side: Side) -> str | None:
    """The setting that has the value of a key: `base`, too, where nothing else varies that key."""
    setting = swept(results, system).get(side.key, {}).get(side.value)
    return BASE if setting is None and base_value(system, side.key) == side.value else setting
