"""Printed and ours: each table of a paper cell by cell, and the pairs of methods that we order otherwise, with reasons.

A pair is two methods of one printed column, both run. A reversed pair has the first of the paper's reasons that covers
it. A reason with a reading, that is what else was measured, covers a pair only where that reading orders it as printed
and the test shows so; a reading that reverses as many pairs as it turns decides nothing. Tests are Welch's over runs
(one-sided, 2.5 %), of the means, deviations and counts that the tables have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any

import polars as pl

from tasks.results.coverage import NEAR, REPLICA
from tasks.results.facts import BASE
from tasks.results.load import Results

COUNTED = "counted"
"""Protocol of what is counted or set, and not measured."""
ONE_SIDED = 0.025
UNDECIDED, PART = "not decided", "our data are a part"
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
    column: Any
    better: Cell
    worse: Cell
    order: str
    """Of our means: `as printed`, `equal` or `reversed`."""
    shown: bool
    """Whether a reversed order is significant."""
    reason: Any = None
    """Why it is reversed: the first of the paper's reasons that covers it; None for no known one."""

    @property
    def kind(self) -> str:
        """Of the reason."""
        return UNDECIDED if self.reason is None else str(self.reason.kind)


def parts(results: Results, paper: Any) -> list[dict[str, Any]]:
    """Each part of each table that the suite has a cell of: `table`, `part`, and `rows`, (method, its cells) in order.

    paper: with its tables, as parts with columns.
    """
    cells = _cells(results)
    made = []
    for table in paper.tables:
        for part in table.parts:
            rows = list(_rows(results, paper, table, part.columns, cells))
            if any(cell.ours or cell.printed is not None for _, line in rows for cell in line):
                made.append({"table": table, "part": part, "rows": rows})
    return made


def statistics(results: Results) -> list[dict[str, Any]]:
    """Rows of comparison.csv that are counted or set, with `near`."""
    rows = results.comparison.filter(pl.col("protocol") == COUNTED)
    gap = (pl.col("ours_mean") - pl.col("published")).abs() <= NEAR * pl.col("published").abs()
    return rows.with_columns(near=gap).to_dicts()


def pairs(results: Results, paper: Any, made: Iterable[Mapping[str, Any]], reasons: Sequence[Any]) -> list[Pair]:
    """Every pair of methods that is ordered in print and was run, with the reasons of reversed ones.

    made: of `parts`.
    """
    columns: dict[tuple[str, ...], list[Pair]] = {}
    for of in made:
        for place, column in enumerate(of["part"].columns):
            key = (of["table"].key, column.data, column.published, column.setting)
            cells = [line[place] for _, line in of["rows"]]
            if key not in columns and of["table"].comparable:  # of several scores of one number the first counts
                columns[key] = list(_ordered(of["table"].key, column, cells))
    every = [pair for known in columns.values() for pair in known]
    here = [reason for reason in reasons if reason.kind != PART or results.suite.kind == "part"]
    for reason in here:
        weighed = _weighed(results, every, reason)
        every = [pair if pair.reason else _with_reason(results, pair, weighed) for pair in every]
    return every


def greater(left: Value, right: Value) -> float:
    """One-sided p of Welch's test that the first mean is larger; 1 where runs do not vary or are single."""
    from scipy.special import stdtr  # a fifth of a second to import, and not every page compares

    if left.std is None or right.std is None:
        return 1.0
    first, second = left.std**2 / left.n, right.std**2 / right.n
    if not first + second:
        return 1.0
    freedom = (first + second) ** 2 / (first**2 / (left.n - 1) + second**2 / (right.n - 1))
    return float(stdtr(freedom, (right.mean - left.mean) / math.sqrt(first + second)))


def find(results: Results, label: str) -> str:
    """The experiment with a label, or else the first whose model has this name; empty for none."""
    of = [system.experiment for system in results.suite.systems if system.label == label]
    of += [system.experiment for system in results.suite.compared if system.model == label]
    return of[0] if of else ""


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
    results: Results, paper: Any, table: Any, columns: Sequence[Any], cells: Mapping[Key, Any]
) -> Iterator[tuple[str, list[Cell]]]:
    """The rows of a part: the paper's methods or versions in its order, then those of ours alone."""
    ids: list[tuple[str, str, str, str, str]] = [  # name, method, setting of the row, experiment, our setting
        (version.name, version.method, version.setting, find(results, version.system), version.ours)
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
            yield name, [Cell(name, *cells.get(key, (None, None)), experiment, ours) for key in keys]


def _ordered(table: str, column: Any, cells: Sequence[Cell]) -> Iterator[Pair]:
    sign = 1 if column.better == "higher" else -1
    run = [cell for cell in cells if cell.printed is not None and cell.ours is not None]
    for first, second in combinations(run, 2):
        if first.printed != second.printed:
            better, worse = (first, second) if sign * (first.printed - second.printed) > 0 else (second, first)
            gap = sign * (better.ours.mean - worse.ours.mean)
            order = "as printed" if gap > 0 else "reversed" if gap < 0 else "equal"
            shown = order == "reversed" and _p(column, worse.ours, better.ours) < ONE_SIDED
            yield Pair(table, column, better, worse, order, shown)


def _p(column: Any, better: Value, worse: Value) -> float:
    return greater(better, worse) if column.better == "higher" else greater(worse, better)


def _weighed(results: Results, every: Iterable[Pair], reason: Any) -> Any:
    """The reason; not decided where its reading reverses as many pairs as it turns to the printed order."""
    if reason.reading is None:
        return reason
    turned = broken = 0
    for pair in every:
        better, worse = _read(results, pair, reason)
        if better is not None and worse is not None:
            gap = (better.mean - worse.mean) * (1 if pair.column.better == "higher" else -1)
            turned += pair.order == "reversed" and gap > 0
            broken += pair.order == "as printed" and gap < 0
    return replace(reason, kind=UNDECIDED) if broken and broken >= turned else reason


def _with_reason(results: Results, pair: Pair, reason: Any) -> Pair:
    if pair.order != "reversed" or not _covers(reason, pair):
        return pair
    if reason.reading is not None:
        better, worse = _read(results, pair, reason)
        if better is None or worse is None or _p(pair.column, better, worse) >= ONE_SIDED:
            return pair
    return replace(pair, reason=reason)


def _covers(reason: Any, pair: Pair) -> bool:
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


def _read(results: Results, pair: Pair, reason: Any) -> tuple[Value | None, Value | None]:
    """What the reading of a reason says of both methods of a pair; None where it changes neither or was not run."""
    reading, values, changed = reason.reading, [], False
    old, new = reading.metric
    for cell in (pair.better, pair.worse):
        own = cell.method in reading.systems or cell.method in reading.settings
        metric = pair.column.metric
        if old and (not reading.metric_rows or cell.method in reading.metric_rows):
            metric = metric.replace(old, new)  # ids of METRICS
        if not own and metric == pair.column.metric:
            values.append(cell.ours)
            continue
        changed = True
        label = reading.systems.get(cell.method)
        experiment = find(results, label) if label else cell.experiment
        setting = reading.settings.get(cell.method, cell.setting)
        found = results.means.filter(experiment=experiment, setting=setting, metric=metric, k=pair.column.k)
        values.append(Value(*found.row(0)[-2:], found["n"][0]) if found.height else None)
    return (values[0], values[1]) if changed else (None, None)
