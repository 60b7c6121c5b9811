"""Printed and ours: each table of a paper cell by cell, and the pairs of methods that we order otherwise, with reasons.

A pair is two methods of one printed column, both run. A reversed pair has the first of the paper's reasons that covers
it. A reason with a reading, that is what else was measured, covers a pair only where that reading orders it as printed
and that is decided (`significance.decide`); a reading that reverses as many pairs as it turns decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from tasks.results.claims import Kind, Reading, Reason
from tasks.results.facts import BASE
from tasks.results.load import Results
from tasks.results.paper import Column, Figure, Panel
from tasks.results.printed import COUNTED, Against, Cell, Method, is_near, parts, ratio
from tasks.results.settings import along, find_setting
from tasks.results.significance import decide, paired

if TYPE_CHECKING:
    from tasks.core.rows import Row

UNDECIDED: Kind = "not-decided"
PART: Kind = "part"
"""Kinds of reasons that do not depend on a paper."""


@dataclass(frozen=True)
class Pair:
    """Two methods of a printed column, that with the better printed number first."""

    table: str
    column: Column
    better: Cell
    worse: Cell
    ours: float
    """By how much ours of the first exceeds that of the second, over the runs that both have."""
    order: str
    """Of these: `as printed`, `equal` or `reversed`."""
    shown: bool
    """Whether a reversed order is significant."""
    reason: Reason | None = None
    """Why it is reversed: the first of the paper's reasons that covers it; None for no known one."""

    @property
    def kind(self) -> Kind:
        """Of the reason."""
        return UNDECIDED if self.reason is None else self.reason.kind


def blocks(against: Against) -> list[Row]:
    """`printed.parts` that the suite has a cell of, with rows of what needs no method, averaged over systems, above."""
    result = []
    for block in parts(against):
        rows = [row for row in block["rows"] if any(cell.n or cell.printed is not None for cell in row[1])]
        if rows:
            result.append(block | {"rows": [*_controls(against.results, block["part"].columns), *rows]})
    return result


def _controls(results: Results, columns: Sequence[Column]) -> Iterator[tuple[Method, list[Cell]]]:
    """Rows of what needs no method, such as the most frequent class."""
    for name in dict.fromkeys(name for column in columns for name in column.controls):
        metrics = [(column.controls.get(name, ""), column.k) for column in columns]
        means = [results.means.filter(metric=metric, k=k, setting=BASE)["mean"].to_list() for metric, k in metrics]
        yield (
            Method(name, None),
            [Cell(name, None, fmean(values) if values else None, n=len(values)) for values in means],
        )


def statistics(results: Results) -> list[Row]:
    """Rows of comparison.csv that are counted or set, with `near`."""
    rows = results.comparison.filter(pl.col("protocol") == COUNTED)
    return rows.with_columns(near=is_near(pl.col("ours_mean"), pl.col("published"))).to_dicts()


def pairs(against: Against, tables: Iterable[Row], reasons: Sequence[Reason]) -> list[Pair]:
    """Every pair of methods that is ordered in print and was run, with the reasons of reversed ones.

    tables: of `blocks`.
    """
    results = against.results
    columns: dict[tuple[str, ...], list[Pair]] = {}
    for block in tables:
        for index, column in enumerate(block["part"].columns):
            key = (block["table"].key, column.data, column.published, column.setting)
            cells = [line[index] for _, line in block["rows"]]
            if key not in columns and block["table"].comparable:  # of several scores of one number the first counts
                columns[key] = list(_ordered(against, block["table"].key, column, cells))
    all_pairs = [pair for column_pairs in columns.values() for pair in column_pairs]
    applicable = [reason for reason in reasons if reason.kind != PART or results.suite.kind == "part"]
    for reason in applicable:
        adjusted = _weighed(against, all_pairs, reason)
        all_pairs = [pair if pair.reason else _with_reason(against, pair, adjusted) for pair in all_pairs]
    return all_pairs


def _ordered(against: Against, table: str, column: Column, cells: Sequence[Cell]) -> Iterator[Pair]:
    sign = 1 if column.better == "higher" else -1
    run = [(sign * cell.printed, cell) for cell in cells if cell.printed is not None and cell.n]
    for (first, left), (second, right) in combinations(run, 2):
        if first != second:
            better, worse = (left, right) if first > second else (right, left)
            sources = ((cell.experiment, cell.setting, column.metric) for cell in (better, worse))
            gap, side = _compare(against, column, *sources)
            order = "as printed" if gap > 0 else "reversed" if gap < 0 else "equal"
            yield Pair(table, column, better, worse, sign * gap, order, side < 0)


Source = tuple[str, str, str]
"""What is read for a cell: experiment, setting, metric."""


def _compare(against: Against, column: Column, better: Source, worse: Source) -> tuple[float, int]:
    """By how much the first is better over the runs that both have, and which side that decides; 0 and 0 without any.

    Splits differ in how hard they are: a mean over all stands for nothing next to one of the first alone.
    """
    left, right = (
        ratio(against.results, experiment, metric, column.ratio_to, column.k, setting)
        for experiment, setting, metric in (better, worse)
    )
    gap = paired(left, right, against.paper.overlap) or {"gain": 0.0, "low": None, "high": None, "runs": 0}
    sign = 1 if column.better == "higher" else -1
    return sign * gap["gain"], sign * decide(*(gap[name] for name in ("gain", "low", "high", "runs"))).side


def _weighed(against: Against, all_pairs: Iterable[Pair], reason: Reason) -> Reason:
    """The reason; not decided where its reading reverses as many pairs as it turns to the printed order."""
    flipped = broken = 0
    for pair in all_pairs if reason.reading else ():
        gap, _ = _read(against, pair, reason)
        flipped += pair.order == "reversed" and gap > 0
        broken += pair.order == "as printed" and gap < 0
    return replace(reason, kind=UNDECIDED) if broken and broken >= flipped else reason


def _with_reason(against: Against, pair: Pair, reason: Reason) -> Pair:
    if pair.order != "reversed" or not _covers(reason, pair):
        return pair
    orders = reason.reading is None or _read(against, pair, reason)[1] > 0
    return replace(pair, reason=reason) if orders else pair


def _covers(reason: Reason, pair: Pair) -> bool:
    """Whether a reason speaks of a pair, whatever its reading says of it."""
    better, worse = pair.better.method, pair.worse.method
    return (
        (not reason.tables or pair.table in reason.tables)
        and (not reason.better or any(fnmatchcase(better, pattern) for pattern in reason.better))
        and not any(fnmatchcase(worse, pattern) for pattern in reason.not_worse)
        and (not reason.rows or bool({better, worse} & set(reason.rows)))
        and (not reason.metrics or any(fnmatchcase(pair.column.published, pattern) for pattern in reason.metrics))
    )


def _read(against: Against, pair: Pair, reason: Reason) -> tuple[float, int]:
    """`_compare` by the reading of a reason; nothing where it changes neither method."""
    alternative, column = reason.reading or Reading(), pair.column
    old, new = alternative.metric
    sources = [(cell.experiment, cell.setting, column.metric) for cell in (pair.better, pair.worse)]
    read = []
    for cell in (pair.better, pair.worse):
        replaced = bool(old) and (not alternative.metric_rows or cell.method in alternative.metric_rows)
        metric = column.metric.replace(old, new) if replaced else column.metric  # ids of METRICS
        label, setting = alternative.systems.get(cell.method), cell.setting
        system = against.find(label) if label else against.results.systems[cell.experiment]
        if system and cell.method in alternative.settings:
            setting = find_setting(against.results, system, alternative.settings[cell.method]) or ""
        read.append((system.experiment if system else "", setting, metric))
    return (0.0, 0) if read == sources else _compare(against, column, *read)


def figures(against: Against) -> list[dict[str, object]]:
    """Figures of the paper, drawn of our runs: a metric of each method along one key, the other keys held.

    `figure`, and `panels` with their `points`: `name`, `x`, `y`, `low` and `high` (the least and largest run).

    Panels without a line of two points are left out, and figures without a panel.
    """
    result = []
    for figure in against.paper.figures:
        panels = [{"panel": panel, "points": list(_points(against, figure, panel))} for panel in figure.panels]
        filled = [panel for panel in panels if panel["points"]]
        if filled:
            result.append({"figure": figure, "panels": filled})
    return result


def _points(against: Against, figure: Figure, panel: Panel) -> Iterator[dict[str, object]]:
    """The points of all methods with two of them at least, on the splits that all settings have."""
    results, bases = against.results, {panel.key: panel.base} | against.paper.bases
    for method in figure.methods:
        system = against.of_method(method)
        if system is None:
            continue
        if panel.key:
            settings = along(results, system, panel.key, dict(panel.at), bases)
            at_x = {x: (setting, panel.k) for x, setting in settings.items()}
        else:
            at_x = {float(k): (BASE, k) for k in results.cutoffs(panel.metric)}
        points = []
        for x, (setting, k) in sorted(at_x.items()):
            if runs := results.on_swept(results.values(system.experiment, panel.metric, k, setting)).values():
                points.append({"name": method, "x": x, "y": fmean(runs), "low": min(runs), "high": max(runs)})
        if len(points) > 1:
            yield from points
