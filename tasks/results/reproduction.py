"""Printed and ours: each table of a paper cell by cell, and the pairs of methods that we order otherwise, with reasons.

A pair is two methods of one printed column, both run. A reversed pair has the first of the paper's reasons that covers
it. A reason with a reading, that is what else was measured, covers a pair only where that reading orders it as printed
and the test shows so; a reading that reverses as many pairs as it turns decides nothing. Tests are one-sided at 2.5 %:
paired over the runs that both methods have, or over splits, where there are several.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

import polars as pl

from tasks.evaluation.run_numbers import split_of
from tasks.results.claims import Kind, Reading, Reason
from tasks.results.coverage import NEAR, REPLICA
from tasks.results.facts import BASE
from tasks.results.load import Results
from tasks.results.paper import Column, Paper, Table
from tasks.results.settings import find_setting

COUNTED = "counted"
"""Protocol of what is counted or set, and not measured."""
ONE_SIDED = 0.025
UNDECIDED: Kind = "not decided"
PART: Kind = "our data are a part"
"""Kinds of reasons that do not depend on a paper."""


@dataclass(frozen=True)
class Value:
    """What runs measured."""

    mean: float
    std: float | None
    """None for a single run."""
    n: int


@dataclass(frozen=True)
class Cell:
    """One quantity of one method, printed and ours; None for neither."""

    method: str
    """As the row is called."""
    printed: float | None
    ours: Value | None
    experiment: str = ""
    """Whose it is; empty where none of ours has it."""
    setting: str = BASE

    @property
    def near(self) -> bool | None:
        """Whether ours is within 10 % of the printed number; None where one of them is missing."""
        if self.printed is None or self.ours is None:
            return None
        return abs(self.ours.mean - self.printed) <= NEAR * abs(self.printed)


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


def parts(results: Results, paper: Paper) -> list[dict[str, Any]]:
    """Each part of each table that the suite has a cell of: `table`, `part`, and `rows`, (method, its cells) in order.

    paper: with its tables, as parts with columns.
    """
    cells = _cells(results)
    made = []
    for table in paper.tables:
        for part in table.parts:
            rows = list(_rows(results, paper, table, part.columns, cells))
            if any(cell.ours or cell.printed is not None for _, line in rows for cell in line):
                rows[:0] = _controls(results, part.columns)
                made.append({"table": table, "part": part, "rows": rows})
    return made


def _controls(results: Results, columns: Sequence[Column]) -> Iterator[tuple[str, list[Cell]]]:
    """Rows of what needs no method, such as the most frequent class, averaged over systems."""
    for name in dict.fromkeys(name for column in columns for name in column.controls):
        measured = [
            results.means.filter(metric=column.controls.get(name, ""), k=column.k, setting=BASE)["mean"]
            for column in columns
        ]
        yield name, [Cell(name, None, Value(fmean(of), None, len(of)) if len(of) else None) for of in measured]


def statistics(results: Results) -> list[dict[str, Any]]:
    """Rows of comparison.csv that are counted or set, with `near`."""
    rows = results.comparison.filter(pl.col("protocol") == COUNTED)
    gap = (pl.col("ours_mean") - pl.col("published")).abs() <= NEAR * pl.col("published").abs()
    return rows.with_columns(near=gap).to_dicts()


def pairs(results: Results, made: Iterable[Mapping[str, Any]], reasons: Sequence[Reason]) -> list[Pair]:
    """Every pair of methods that is ordered in print and was run, with the reasons of reversed ones.

    made: of `parts`.
    """
    columns: dict[tuple[str, ...], list[Pair]] = {}
    for of in made:
        for place, column in enumerate(of["part"].columns):
            key = (of["table"].key, column.data, column.published, column.setting)
            cells = [line[place] for _, line in of["rows"]]
            if key not in columns and of["table"].comparable:  # of several scores of one number the first counts
                columns[key] = list(_ordered(results, of["table"].key, column, cells))
    every = [pair for known in columns.values() for pair in known]
    here = [reason for reason in reasons if reason.kind != PART or results.suite.kind == "part"]
    for reason in here:
        weighed = _weighed(results, every, reason)
        every = [pair if pair.reason else _with_reason(results, pair, weighed) for pair in every]
    return every


def find(results: Results, label: str) -> str:
    """The experiment with a label, or else the first whose model has this name; empty for none."""
    of = [system.experiment for system in results.suite.systems if system.label == label]
    of += [system.experiment for system in results.suite.compared if system.model == label]
    return of[0] if of else ""


def located(results: Results, experiment: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """An experiment and its setting with these values; no experiment where it was not run."""
    setting = find_setting(results, results.system(experiment), values) if experiment else None
    return (experiment, setting) if setting is not None else ("", BASE)


Key = tuple[str, str, str, str, str, str]


def _cells(results: Results) -> dict[Key, tuple[float | None, Value | None]]:
    """(artefact, protocol, part of the data, method, setting, metric) -> printed and ours."""
    known = {network.name: network.name for network in results.suite.networks}
    known |= {f"{name}{REPLICA}": name for name in known}
    cells = {}
    for row in results.comparison.iter_rows(named=True):
        text = (row[name] or "" for name in ("artefact", "protocol", "dataset", "method", "setting", "metric"))
        artefact, protocol, dataset, method, setting, metric = text
        mean = row["ours_mean"]
        ours = None if mean is None else Value(mean, row["ours_std"], row["seeds"])
        cells[artefact, protocol, known.get(dataset, ""), method, setting, metric] = (row["published"], ours)
    return cells


def _rows(
    results: Results, paper: Paper, table: Table, columns: Sequence[Column], cells: Mapping[Key, Any]
) -> Iterator[tuple[str, list[Cell]]]:
    """The rows of a part: the paper's methods or versions in its order, then those of ours alone."""
    ids: list[tuple[str, str, str, str, str]] = [  # name, method, setting of the row, experiment, our setting
        (version.name, version.method, version.setting, *located(results, find(results, version.system), version.ours))
        for version in table.versions
    ] or [(name, name, "", find(results, label), BASE) for name, label in paper.methods.items()]
    known = {(method, setting) for _, method, setting, _, _ in ids}
    for artefact, protocol, _, method, setting, metric in cells:
        of = (method, "") if not table.versions else (method, setting)
        if (
            of not in known
            and artefact == table.key
            and any((protocol, metric) == (column.protocol, column.published) for column in columns)
        ):
            known.add(of)
            ids.append((method, method, of[1], find(results, method), BASE))
    for name, method, setting, experiment, ours in ids:
        keys = [(table.key, c.protocol, c.data, method, setting or c.setting, c.published) for c in columns]
        if any(key in cells for key in keys):
            known_cells = [cells.get(key, (None, None)) for key in keys]
            yield name, [Cell(name, printed, value, experiment, ours) for printed, value in known_cells]


def _ordered(results: Results, table: str, column: Column, cells: Sequence[Cell]) -> Iterator[Pair]:
    sign = 1 if column.better == "higher" else -1
    run = [(sign * cell.printed, cell) for cell in cells if cell.printed is not None and cell.ours is not None]
    for (first, left), (second, right) in combinations(run, 2):
        if first != second:
            better, worse = (left, right) if first > second else (right, left)
            own = ((cell.experiment, cell.setting, column.metric) for cell in (better, worse))
            gap, p = _compare(results, column, *own)
            order = "as printed" if gap > 0 else "reversed" if gap < 0 else "equal"
            yield Pair(table, column, better, worse, sign * gap, order, order == "reversed" and 1 - p < ONE_SIDED)


Source = tuple[str, str, str]
"""What is read for a cell: experiment, setting, metric."""


def _compare(results: Results, column: Column, better: Source, worse: Source) -> tuple[float, float]:
    """By how much the first is better over the runs that both have, and one-sided p; 0 and one half without any.

    Splits differ in how hard they are: a mean over all stands for nothing next to one of the first alone.
    """
    left, right = (_runs(results, column, source) for source in (better, worse))
    sign = 1 if column.better == "higher" else -1
    gaps = {seed: sign * (left[seed] - right[seed]) for seed in left.keys() & right.keys()}
    splits = {split_of(seed) for seed in gaps}
    if len(splits) > 1:
        gaps = {split: fmean(gap for seed, gap in gaps.items() if split_of(seed) == split) for split in splits}
    mean, deviation = fmean(gaps.values()) if gaps else 0.0, stdev(gaps.values()) if len(gaps) > 1 else 0.0
    if not deviation:
        return mean, 0.5  # equal in all runs, or single: says nothing about chance
    from scipy.special import stdtr  # a fifth of a second to import, and not every page compares

    return mean, float(stdtr(len(gaps) - 1, -mean / (deviation / math.sqrt(len(gaps)))))


def _runs(results: Results, column: Column, source: Source) -> dict[int, float]:
    """Seed -> value, as a share of the sum of other metrics where the column is that; empty where that is not known."""
    experiment, setting, metric = source
    values = results.values(experiment, metric, column.k, setting)
    if not column.ratio_to:
        return values
    others = [results.values(experiment, name, column.k, setting) for name in column.ratio_to]
    totals = {seed: sum(other.get(seed, math.nan) for other in others) for seed in values}
    return {seed: value / totals[seed] for seed, value in values.items() if totals[seed] > 0}


def _weighed(results: Results, every: Iterable[Pair], reason: Reason) -> Reason:
    """The reason; not decided where its reading reverses as many pairs as it turns to the printed order."""
    turned = broken = 0
    for pair in every if reason.reading else ():
        gap, _ = _read(results, pair, reason)
        turned += pair.order == "reversed" and gap > 0
        broken += pair.order == "as printed" and gap < 0
    return replace(reason, kind=UNDECIDED) if broken and broken >= turned else reason


def _with_reason(results: Results, pair: Pair, reason: Reason) -> Pair:
    if pair.order != "reversed" or not _covers(reason, pair):
        return pair
    held = reason.reading is None or _read(results, pair, reason)[1] < ONE_SIDED
    return replace(pair, reason=reason) if held else pair


def _covers(reason: Reason, pair: Pair) -> bool:
    """Whether a reason speaks of a pair, whatever its reading says of it."""
    better, worse = pair.better.method, pair.worse.method
    return (
        not reason.claims
        and (not reason.tables or pair.table in reason.tables)
        and (not reason.better or any(fnmatchcase(better, pattern) for pattern in reason.better))
        and not any(fnmatchcase(worse, pattern) for pattern in reason.not_worse)
        and (not reason.rows or bool({better, worse} & set(reason.rows)))
        and (not reason.metrics or pair.column.published.startswith(tuple(reason.metrics)))
    )


def _read(results: Results, pair: Pair, reason: Reason) -> tuple[float, float]:
    """`_compare` by the reading of a reason; nothing where it changes neither method."""
    reading, column = reason.reading or Reading(), pair.column
    old, new = reading.metric
    own = [(cell.experiment, cell.setting, column.metric) for cell in (pair.better, pair.worse)]
    read = []
    for cell in (pair.better, pair.worse):
        label = reading.systems.get(cell.method)
        replaced = bool(old) and (not reading.metric_rows or cell.method in reading.metric_rows)
        metric = column.metric.replace(old, new) if replaced else column.metric  # ids of METRICS
        experiment = find(results, label) if label else cell.experiment
        setting = cell.setting
        if cell.method in reading.settings:
            experiment, setting = located(results, experiment, reading.settings[cell.method])
        read.append((experiment, setting, metric))
    return (0.0, 0.5) if read == own else _compare(results, column, *read)
