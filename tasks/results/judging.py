"""What a paper says of its tables and figures, next to our numbers: `claims.csv` and `evidence.csv`.

Verdicts are in neither: `tasks.results.claims.verdict` reads them off the numbers. Intervals over runs speak of the
users and items at hand, as the paper's averages do: runs share the attacked users or the held-out items, or split the
same users again (embeddings).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.results.claims import Claim, Computed, Measure, Order, Readings, Row, Side, Spec, Trend
from tasks.results.facts import BASE, System
from tasks.results.load import CLAIMS, EVIDENCE
from tasks.results.printed import Against, ratio
from tasks.results.settings import along, at_base, find_setting
from tasks.results.significance import estimate

if TYPE_CHECKING:
    from tasks.core import rows

Function = Callable[[Against], Any]
"""What a paper's file names."""
Curve = dict[int, NDArray[np.float64]]
"""Run -> (n_x,) values."""
Comparison = tuple[Any, dict[str, Any], dict[int, float]]
"""The case that it belongs to; what is compared, as columns of evidence.csv: `measure`, and of sides `left`, `right`,
settings and means, or of trends `methods`, `key`, `first`, `last` and means; `only` where it cannot contradict, or
support, the claim; and run -> a difference of our numbers that lies above zero where the claim holds."""


def claim_tables(against: Against, k: int, functions: Mapping[str, Function]) -> dict[str, pl.DataFrame]:
    """`claims` and `evidence`: every claim of the suite's paper, table by table; no rows without a paper.

    On other data than the paper's there are none either, unless the paper is tested there, too (`Paper.elsewhere`).

    k: the cut-off of claims for which the paper names none; functions: all that the paper's file names.
    """
    paper, rows = against.paper, list[Row]()
    if against.compared and (paper.elsewhere or against.printed()):
        rows = claim_rows(against, k, functions)
    order = [paper.data_table, paper.settings_table]
    order += [table.key for table in paper.tables] + [figure.key for figure in paper.figures]
    claims, evidence = [], []
    for number, row in enumerate(sorted(rows, key=lambda each: order.index(each.artefact))):
        note = row.note if isinstance(row, Claim) else ""
        claims.append({"number": number, "artefact": row.artefact, "claim": row.claim, "note": note})
        for variant, lines in _evidence(against, row, functions).items():
            evidence += [{"number": number, "reading": variant, "absent": "[]", "most_of": 0} | line for line in lines]
    kind = pl.lit(against.results.suite.kind)
    return {
        "claims": pl.DataFrame(claims, schema={**CLAIMS, "data": pl.String}).with_columns(data=kind),
        "evidence": pl.DataFrame(evidence, schema=EVIDENCE),
    }


def claim_rows(against: Against, k: int, functions: Mapping[str, Function]) -> list[Row]:
    """What the paper claims, for these results; `k` is the cut-off of claims for which it names none."""
    paper = against.paper
    names = {
        "k": k,
        "data": against.origin,
        "printed": bool(against.printed()),
        "systems": [system.model for system in against.results.suite.compared],
    }
    return paper.claim_rows(names | (functions[paper.numbers](against) if paper.numbers else {}))


def _evidence(against: Against, row: Row, functions: Mapping[str, Function]) -> dict[str, Sequence[dict[str, object]]]:
    """Interpretation -> rows of `EVIDENCE`."""
    if isinstance(row, Readings):
        return {variant: tested(against, spec) for variant, spec in row.specs.items()}
    if isinstance(row, Computed):
        margin, numbers = functions[row.computed_by](against)
        values = [{"measure": name, "left_mean": float(value)} for name, value in numbers.items()]
        return {"": [{"case": 0, "difference": margin, "low": margin, "high": margin}, *values]}
    return {} if isinstance(row, Claim) else {"": tested(against, row)}


def tested(against: Against, spec: Spec) -> list[rows.Row]:
    """Rows of `EVIDENCE` on one interpretation of a claim; one row at least, with what was not run."""
    compared, absent = _of_order(against, spec) if isinstance(spec, Order) else _of_trend(against, spec)
    cases = {group: case for case, group in enumerate(dict.fromkeys(group for group, *_ in compared))}
    rows = list[dict[str, Any]]()
    for group, about, gaps in compared:
        measured = estimate(gaps, against.paper.overlap)
        rows.append(about | {"case": cases[group], "difference": measured.pop("gain")} | measured)
    floor = {"floor": spec.floor, "right": spec.floor, "right_setting": "{}"}
    rows += [floor | row for row in below_floor(against, spec)]
    lacking = json.dumps([{"method": side.method, "setting": side.values} for side in dict.fromkeys(absent)])
    shared = {"absent": lacking, "most_of": spec.cases if spec.most else 0}
    return [shared | row for row in rows or [{}]]


def below_floor(against: Against, spec: Spec) -> list[rows.Row]:
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
                result.append((group, about | more, dict(zip(runs, gaps.tolist(), strict=True))))
    return result, absent


def _gaps(
    spec: Order, measure: Measure, values: Sequence[NDArray[np.float64]]
) -> Iterator[tuple[rows.Row, NDArray[np.float64]]]:
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
        result.append((measure.name, about, dict(zip(runs, gaps, strict=True))))
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
