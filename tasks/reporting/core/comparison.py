"""Each printed number beside ours: the entries behind the tables of the report and behind `comparison.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.reporting.core import origins
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.results.paper import Column, Paper, Table, Version, artefact_name

COLUMNS = (
    "paper",
    "artefact",
    "dataset",
    "method",
    "setting",
    "metric",
    "published",
    "ours_mean",
    "ours_std",
    "seeds",
    "protocol",
    origins.COLUMN,
)
NEAR = 0.1
"""Relative distance up to which a number counts as reproduced."""
STATISTICS = "statistics"
"""`method` of printed statistics of a data set."""
COUNTED = "counted"
"""`protocol` of what is counted or set, and not measured."""


@dataclass(frozen=True)
class Method:
    """A row of a published table: the paper's name and our system, None where it has not been run."""

    name: str
    system: System | None
    setting: str = BASE
    """Of our system."""
    version: Version | None = None
    """What it is a version of, in a table of versions."""

    def printed_as(self, column: Column) -> tuple[str, str]:
        """`method` and `setting` in paper_tables.csv."""
        return (self.name, column.setting) if self.version is None else (self.version.method, self.version.setting)


@dataclass(frozen=True)
class Entry:
    """One quantity of one method: printed (None where the paper has no such number) and ours (empty if not run)."""

    table: Table
    column: Column
    method: Method
    printed: float | None
    ours: NDArray[np.float64]
    """(n_seeds,) values in order of seed."""


@dataclass(frozen=True)
class Count:
    """A count of the data, or a setting of the paper's method, of which the paper prints its own."""

    artefact: str
    metric: str
    ours: float | None
    """None where the data do not tell it."""
    method: str = STATISTICS
    setting: str = ""
    data: str = ""
    """As of `Column`."""

    def printed(self, results: Results) -> float | None:
        """What the paper prints of the suite's data; None for nothing."""
        if (paper := results.reproduced) is None:
            return None
        return printed_values(results, paper, self.data).get((self.artefact, self.method, self.setting, self.metric))


def is_printed(results: Results, paper: Paper) -> bool:
    """Whether the paper prints anything about the suite's data set."""
    return bool(printed_values(results, paper))


def statistics_title(results: Results) -> str:
    """What heads the statistics of the suite's data."""
    paper = results.reproduced
    share = " (part)" if origins.kind(results) == "part" else ""
    return f"{f'{artefact_name(paper.data_table)}, s' if paper else 'S'}tatistics of {results.origin}{share}"


def methods(results: Results, table: Table) -> list[Method]:
    """Rows of a table: the paper's methods in its order, then ours alone, popularity among them.

    Methods that have not been run have a row only where the paper prints their numbers.
    """
    layout, compared = results.layout, results.reproduced is not None
    if table.versions:
        return [*_versions(results, table), *(Method(system.label, system) for system in results.yardsticks)]
    rows = []
    for name in table.methods:
        system = results.find(layout.methods[name])
        if system is not None:
            rows.append(Method(name if compared else system.label, system))
        elif compared and table.comparable:
            rows.append(Method(name, None))
    if not table.alone:
        return rows
    names = table.methods if table.everyone else layout.methods
    known = [results.find(layout.methods[name]) for name in names]
    return rows + [Method(system.label, system) for system in results.compared if system not in known]


def has_table(results: Results, table: Table) -> bool:
    """Whether a table stands in the report of such data. Without a paper, tables of versions of one method do not."""
    if results.paper is None and len(table.methods) < max(len(other.methods) for other in results.layout.tables):
        return False
    return not table.data or any(name in results.dataset for name in table.data)


def entries(results: Results) -> list[Entry]:
    """Every quantity of every table, table by table, part by part, method by method."""
    paper, here = results.reproduced, [table for table in results.layout.tables if has_table(results, table)]
    parts = {column.data for table in here for part in table.parts for column in part.columns}
    numbers = {data: {} if paper is None else printed_values(results, paper, data) for data in parts}
    return [
        Entry(
            table,
            column,
            method,
            numbers[column.data].get((table.key, *method.printed_as(column), column.published))
            if table.comparable
            else None,
            measured_values(results, method, column),
        )
        for table in here
        for part in table.parts
        for method in methods(results, table)
        for column in part.columns
    ]


def printed_columns(results: Results) -> list[list[Entry]]:
    """The rows of every printed column that were run; of several scores of one number those of the first."""
    columns: dict[tuple[str, str, str, str], list[Entry]] = {}
    for entry in entries(results):
        if entry.printed is None or not len(entry.ours):
            continue
        column = entry.column
        rows = columns.setdefault((entry.table.key, column.data, column.published, column.setting), [])
        if not rows or rows[0].column == column:
            rows.append(entry)
    return [on_same_runs(rows) for rows in columns.values() if len(rows) > 1]


def on_same_runs(rows: list[Entry]) -> list[Entry]:
    """Rows of one column that may be set side by side: of the runs that all have, which are the first of each.

    Splits differ in how hard they are, and seeds in how lucky: a mean over all stands for nothing beside one of a few.
    """
    common = min((len(row.ours) for row in rows), default=0)
    return [replace(row, ours=row.ours[:common]) for row in rows]


def is_near(entry: Entry) -> bool:
    """Whether our mean is within 10 % of the printed number; False where either is missing."""
    if entry.printed is None or not len(entry.ours):
        return False
    return is_close(float(entry.ours.mean()), entry.printed)


def is_close(ours: float, printed: float) -> bool:
    """Whether one of our numbers is within 10 % of the printed one."""
    return abs(ours - printed) <= NEAR * abs(printed)


def measured_values(results: Results, method: Method, column: Column) -> NDArray[np.float64]:
    """Our values of one quantity of one method: (n_seeds,), empty where it was not run or the ratio is to nothing."""
    by_seed = measured_by_seed(results, method, column)
    return np.array([by_seed[seed] for seed in sorted(by_seed)], dtype=np.float64)


def measured_by_seed(results: Results, method: Method, column: Column) -> dict[int, float]:
    """The same by seed."""
    if method.system is None:
        return {}
    return values_by_seed(results, method.system, column.metric, column.ratio_to, column.k, method.setting)


def values_by_seed(
    results: Results, system: System, metric: str, ratio_to: Sequence[str], k: int, setting: str
) -> dict[int, float]:
    """Seed -> value of a metric, divided by the sum of those of `ratio_to`, if any; empty where one is lacking."""
    first, *others = (results.by_seed(system, name, k, setting) for name in (metric, *ratio_to))
    if not others:
        return first
    totals = {seed: sum(other[seed] for other in others) for seed in first if all(seed in other for other in others)}
    return {seed: first[seed] / total for seed, total in totals.items()} if all(t > 0 for t in totals.values()) else {}


def frame(results: Results, counts: Sequence[tuple[Results, Count]] = ()) -> pl.DataFrame:
    """`comparison.csv`: one row per quantity that was printed, measured or counted, sorted.

    Columns `COLUMNS`: `published`, `ours_mean` and `ours_std` (sample standard deviation, from two seeds on) are
    text in a fixed format, empty where there is no such number; `seeds` counts the runs behind `ours_mean`, 0 where
    nothing ran.

    counts: each with the results by the data that it was counted in (`origins.counted`).
    """
    paper, rows = results.reproduced, []
    for entry in entries(results):
        if entry.printed is None and not len(entry.ours):
            continue
        column = entry.column
        metric, _, k = column.published.partition("@")
        method, setting = entry.method.printed_as(column)
        key = (entry.table.key, column.protocol, method, setting, metric, int(k or 0), column.data)
        values = (
            _dataset(results, column.data),
            method,
            setting,
            column.published,
            "" if entry.printed is None else f"{entry.printed:g}",
            f"{entry.ours.mean():.6f}" if len(entry.ours) else "",
            f"{entry.ours.std(ddof=1):.6f}" if len(entry.ours) > 1 else "",
            len(entry.ours),
            column.protocol,
            origins.kind(results),
        )
        rows.append((key, values))
    for of, count in counts:
        printed = count.printed(of)
        if printed is None and count.ours is None:
            continue
        key = (count.artefact, COUNTED, count.method, count.setting, count.metric, 0, count.data)
        ours = "" if count.ours is None else f"{count.ours:.6f}"
        theirs = "" if printed is None else f"{printed:.10g}"
        what = _dataset(of, count.data), count.method, count.setting, count.metric
        rows.append((key, (*what, theirs, ours, "", 0, COUNTED, origins.kind(of))))
    rows.sort(key=lambda row: row[0])
    types = {name: pl.Int64 if name == "seeds" else pl.String for name in COLUMNS}
    filled = [(paper.key if paper else "", key[0], *values) for key, values in rows]
    return pl.DataFrame(filled, schema=types, orient="row")


def _dataset(results: Results, data: str) -> str:
    """The suite's data, or a part of them; of generated data no part has the name of the published one."""
    return f"{data}-twin" if data and results.synthetic else data or results.dataset


def _versions(results: Results, table: Table) -> list[Method]:
    """Those that were run, and where the suite is set beside the paper also those that it prints."""
    compared = results.reproduced is not None
    rows = []
    for version in table.versions:
        system = results.find(version.system)
        setting = None if system is None else results.find_setting(system, version.ours)
        if system is not None and setting is not None:
            name = version.name if compared else ", ".join(unique([system.label, version.kind or system.label]))
            rows.append(Method(name, system, setting, version))
        elif compared and table.comparable:
            rows.append(Method(version.name, None, version.ours, version))
    return rows


def printed_values(results: Results, paper: Paper, data: str = "") -> dict[tuple[str, str, str, str], float]:
    """(artefact, method, setting, metric) -> what the paper prints of the suite's data set, in our unit of metrics.

    Statistics of data sets are counts and stay as they are.

    data: a part of the data, such as one network of a pair, instead of the whole; of networks that others published
        under the same names nothing is printed.
    """
    pair = tuple(network.name for network in results.networks)
    if data and pair and paper.joined(pair) != results.origin:
        return {}
    rows = results.published.filter((pl.col("paper") == paper.key) & (pl.col("dataset") == (data or results.origin)))
    return {
        (row["artefact"], row["method"], row["setting"] or "", row["metric"]): row["value"]
        * (1.0 if row["method"] == STATISTICS else paper.unit)
        for row in rows.iter_rows(named=True)
    }


def printed_statistics(results: Results, paper: Paper) -> dict[str, float]:
    """Metric -> what the paper's table of its data prints."""
    return {
        metric: value
        for (artefact, method, _, metric), value in printed_values(results, paper).items()
        if (artefact, method) == (paper.data_table, STATISTICS)
    }
