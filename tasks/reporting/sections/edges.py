"""The attack on single interactions: whether somebody who sees what is released can tell that one of them is there.

Advantage is the attacker's true positive rate minus its false positive rate: 0 is chance and 1 is certainty. The other
world lacks an earlier interaction ("removed") or the last one ("last"), or has two neighbouring ones in the opposite
order ("swapped"). Theory is the advantage of the best attacker there is, where it is known in closed form. Settings in
which nothing but the budget varies are shown as setting `base`, each with its budget beside it.
"""

from __future__ import annotations

import math

import polars as pl

from tasks.errors import DataError
from tasks.reporting.core.chart import Chart, Level, Panel, Point, Series
from tasks.reporting.core.layout import NUMBER, Cell, Heading, Row, Table, missing_cell, number
from tasks.reporting.core.results import BASE, Results, System, unique
from tasks.reporting.core.section import Section, optional, paragraph

COLUMNS: dict[str, type[pl.DataType]] = {
    "system": pl.String,  # experiment, or its label
    "setting": pl.String,
    "target": pl.String,  # a key of SEEN
    "world": pl.String,  # a key of WORLDS
    "epsilon": pl.Float64,  # null: no noise
    "advantage": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "theory": pl.Float64,  # null: nothing is known
    "targets": pl.Int64,
    "trials": pl.Int64,
}
"""Columns of `edges.parquet`, of one row per attack."""
SEEN = {
    "aggregates": "noisy aggregates",
    "recommendations": "recommendations",
    "every list": "recommendations after every event",
}
WORLDS = {
    "removed": "one interaction is removed",
    "last": "the last interaction is removed",
    "swapped": "two are in the opposite order",
}
CONTROLS = ("popular lists", "random lists")
"""What stands in place of a system: lists that no event has changed."""
KEYS = ("system", "setting", "target", "world", "epsilon")


def check_columns(attacks: pl.DataFrame) -> pl.DataFrame:
    """The rows with the columns of the contract, their integers and floats widened.

    Raises:
        DataError: a column is not there or does not fit, a value is unknown, or an attack is given twice.
    """
    absent = [name for name in COLUMNS if name not in attacks.columns]
    if absent:
        raise DataError(f"edges.parquet: no column {', '.join(absent)}; run the attack on interactions again")
    try:
        rows = attacks.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())
    except pl.exceptions.PolarsError as error:
        problem = " ".join(str(error).split())
        raise DataError(f"edges.parquet: columns of other types ({problem}); run the attack again") from error
    for column, known in (("target", SEEN), ("world", WORLDS)):
        if strange := set(rows[column].to_list()) - set(known):
            raise DataError(f"edges.parquet: {column} is one of {', '.join(known)}, not {sorted(map(str, strange))}")
    if rows.select(KEYS).is_duplicated().any():
        raise DataError("edges.parquet: an attack is given twice; run the attack on interactions again")
    return rows


def section(results: Results) -> Section:
    """The attack on single interactions."""
    return Section(
        "edges",
        "Attack on single interactions",
        [optional(chart(results)), table(results)],
        link="Attack on interactions",
        about=paragraph(
            "An attacker who knows everything else tells two worlds apart: the true one, and one where an interaction "
            "is removed or two are in the opposite order. Advantage is its true positive rate minus its false positive "
            "rate: 0 is chance, and an interval above 0 is bold. Without noise the same attack shows what it can do at "
            "all. Noisy aggregates are what the events of a tested sequence would have released in training: once in "
            "each epoch that ran, or once for all where they are cached."
        ),
    )


def table(results: Results) -> Table | None:
    """Every attack beside its control without noise and beside chance; None where nothing was attacked."""
    rows = _rows(results)
    if not rows:
        return None
    control = {tuple(row[key] for key in KEYS[:-1]): row for row in rows if row["epsilon"] is None}
    shown = []
    for row in rows:
        if row["epsilon"] is None and any(other["epsilon"] is not None and _is_same(other, row) for other in rows):
            continue  # it stands beside the others
        without = control.get(tuple(row[key] for key in KEYS[:-1]))
        shown.append(
            Row(
                row["system"] if row["setting"] == BASE else f"{row['system']}, {row['setting']}",
                [
                    Cell(SEEN[row["target"]], kind=""),
                    Cell(WORLDS[row["world"]], kind=""),
                    Cell("no noise" if row["epsilon"] is None else f"{row['epsilon']:g}"),
                    _advantage(row),
                    missing_cell("not run") if without is None else _advantage(without),
                    Cell(number(0.0)),
                    missing_cell() if row["theory"] is None else Cell(number(row["theory"])),
                    Cell(f"{row['targets']:,}", (f"{row['trials']:,} trials",)),
                ],
            )
        )
    headings = [
        "System",
        "attacker sees",
        "other world",
        "ε",
        "advantage",
        "without noise",
        "chance",
        "theory",
        "targets",
    ]
    return Table(
        "Attack on single interactions: advantage, its 95 % interval, and the best attacker where that is known",
        [Heading(text, NUMBER if index > 2 else "") for index, text in enumerate(headings)],
        shown,
    )


def chart(results: Results) -> Chart:
    """Advantage against the budget, a panel per thing seen and other world; no noise stands at the right end."""
    rows = _rows(results)
    budgets = sorted({row["epsilon"] for row in rows if row["epsilon"] is not None})
    ticks = [epsilon for epsilon in budgets if epsilon > 0] + [math.inf]
    names = unique([(row["system"], row["setting"]) for row in rows])
    noisy = [row for row in rows if row["epsilon"] is not None]
    panels = []
    for target in SEEN:
        for world in WORLDS:
            here = [row for row in rows if (row["target"], row["world"]) == (target, world)]
            series = []
            for style, (system, setting) in enumerate(names):
                name = system if setting == BASE else f"{system}, {setting}"
                mine = [row for row in here if (row["system"], row["setting"]) == (system, setting)]
                points = [_point(name, row) for row in mine if row["epsilon"] in (None, *ticks)]
                series.append(Series(name, style, sorted(points, key=lambda point: point.x)))
                predicted = [
                    Point(row["epsilon"], row["theory"], f"{name}, theory: {number(row['theory'])}")
                    for row in mine
                    if row["theory"] is not None and row["epsilon"] in ticks
                ]
                predicted.sort(key=lambda point: point.x)
                series.append(Series(f"{name}, theory", len(names) + style, predicted, muted=True))
            series = [line for line in series if line.points]
            if series:
                title = f"{SEEN[target].capitalize()}; {WORLDS[world]}"
                panels.append(Panel(title, "ε", "advantage", series, [Level("chance", 0.0, "dashed")], ticks, log=True))
    systems = {system for system, _ in names if system not in CONTROLS}
    return Chart(
        "chart-edges",
        "Can one interaction be detected?",
        "0 is chance, 1 is certainty; the mark at ∞ is the control without noise, which shows what the attack can "
        "do at all. Bars: 95 % intervals over targets and trials.",
        panels,
        finding=f"{sum(row['low'] > 0 for row in noisy)} of {len(noisy)} attacks on noisy releases beat chance",
        sample=f"n = {len(systems)} systems, {_range(rows, 'targets')} targets, {_range(rows, 'trials')} trials each",
    )


def _rows(results: Results) -> list[dict]:
    """The attacks with systems by their labels, in the order of the suite's systems."""
    if results.edges is None:
        return []
    known: dict[str, System] = {system.experiment: system for system in results.systems}
    known |= {system.label: system for system in results.systems}
    rows = [dict(row) for row in check_columns(results.edges).iter_rows(named=True)]
    for row in rows:
        if row["system"] not in known and row["system"] not in CONTROLS:
            raise DataError(f"edges.parquet: {row['system']} is no experiment of suite {results.suite}; run it again")
        row["system"] = known[row["system"]].label if row["system"] in known else row["system"]
        if row["setting"].startswith("epsilon=") and "," not in row["setting"]:
            row["setting"] = BASE
    order = [*(system.label for system in results.systems), *CONTROLS]
    rows.sort(
        key=lambda row: (
            order.index(row["system"]),
            row["setting"] != BASE,
            row["setting"],
            list(SEEN).index(row["target"]),
            list(WORLDS).index(row["world"]),
            math.inf if row["epsilon"] is None else row["epsilon"],
        )
    )
    return rows


def _range(rows: list[dict], column: str) -> str:
    """The smallest and the largest number of a column."""
    values = sorted({row[column] for row in rows})
    return " to ".join(f"{value:,}" for value in unique([*values[:1], *values[-1:]]))


def _is_same(row: dict, other: dict) -> bool:
    return all(row[key] == other[key] for key in KEYS[:-1])


def _advantage(row: dict) -> Cell:
    above_zero = row["low"] > 0
    return Cell(
        number(row["advantage"]),
        (f"{number(row['low'])} to {number(row['high'])}",),
        f"{NUMBER} found" if above_zero else NUMBER,
    )


def _point(name: str, row: dict) -> Point:
    x = math.inf if row["epsilon"] is None else row["epsilon"]
    budget = "no noise" if row["epsilon"] is None else f"ε = {row['epsilon']:g}"
    text = f"{name}, {budget}: {number(row['advantage'])} (95 % {number(row['low'])} to {number(row['high'])})"
    return Point(x, row["advantage"], text, y_interval=(row["low"], row["high"]))
