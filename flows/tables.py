"""The tables that commands print on the terminal: plans, audits, answers, and what suites spend together."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

if TYPE_CHECKING:
    import polars as pl

    from flows.plan import Plan
    from tasks.results.standings import Board
    from tasks.stages.composed import Composed

HEADLINE = ("utility", "accounted ε", "audited ε")
NUMBERS = ("claimed", "accounted", "δ", "proved", "largest provable", "half the noise", "no noise")


def summarise(plans: Sequence[Plan]) -> None:
    """A row for each plan: how much there is to do, and what is first."""
    columns = [Column("leads to", no_wrap=True), Column("to run", justify="right", no_wrap=True)]
    table = _table("`dprec check SUITE` shows every stage", *columns, Column("first, and why", overflow="fold"))
    for todo in plans:
        first = next(iter(todo.pending), None)
        why = escape(f"{first.name}: {first.why}") if first else "[green]up to date[/green]"
        table.add_row(todo.target, f"{len(todo.pending)} of {len(todo.steps)}", why)
    print_table(table)


def show(todo: Plan) -> None:
    """A row for each stage: its state, and why."""
    columns = [Column("stage", no_wrap=True), Column("state", no_wrap=True), Column("why", overflow="fold")]
    table = _table(f"{todo.target}: {len(todo.pending)} of {len(todo.steps)} stages to run", *columns)
    for step in todo.steps:
        state = "[green]up to date[/green]" if step.cached else "will run" if step.reasons else "may run"
        table.add_row(step.name, state, "" if step.cached else escape(step.why))
    print_table(table)


def show_composed(composed: Iterable[Composed]) -> None:
    """A row for each unit of each data set, and what is in no sum; see `tasks.stages.composed`."""
    from tasks.pages import terms

    english, clear = terms.english(), list[str]()
    numbers = [Column(name, justify="right") for name in ("releases", "without a bound", "largest ε", "ε together")]
    about = [Column(name) for name in ("data set", "suites", "network", "unit", "observer")]
    title = "ε of all settings and seeds of all suites on a data set, composed; conditional on preprocessing and splits"
    table = _table(title, *about, *numbers, Column("δ", justify="right"), Column("conditional on"))
    for of in composed:
        for group in of.together:
            names = (of.source, ", ".join(of.suites), group.network)
            words = (english["units"][group.unit], english["observers"][group.observer])
            counts = (str(group.releases), str(len(group.left_out)), f"{group.largest:.4g}")
            total = ("∞" if group.epsilon is None else f"{group.epsilon:.4g}", f"{group.delta:.3g}")
            table.add_row(*names, *words, *counts, *total, ", ".join(terms.conditions(group.given)))
        trials = [f"{count} tuning trials of {suite}" for suite, count in of.trials.items() if count]
        clear.append(f"{of.source}: released without noise, in no sum: {', '.join([*of.open, *trials]) or 'nothing'}")
    print_table(table, 200)
    print("\n".join(clear))


def show_coverage(coverage: pl.DataFrame) -> None:
    """A row for each printed table of each data set, and the total."""
    *names, _, _, _, _, _, _ = columns = coverage.columns
    aligned = [Column(name, justify="left" if name in names else "right") for name in columns]
    table = _table("numbers that papers print, by the best data that each was measured on", *aligned)
    for row in coverage.iter_rows():
        table.add_row(*map(str, row))
    table.add_section()
    totals = coverage.select(columns[len(names) :]).sum().row(0)
    table.add_row("all papers", *[""] * (len(names) - 1), *map(str, totals), style="bold")
    print_table(table)


def show_headline(suite: str) -> None:
    """The decision of a suite, with which `dprec run` ends; nothing for a pipeline without results."""
    from tasks.stages.report import collected, standing

    board = standing(suite) if suite in collected() else None
    if board is None:
        return
    numbers = [Column(name, justify="right", no_wrap=True) for name in HEADLINE]
    table = _table(f"{suite}: {board.measure.label}", Column("what"), Column("system"), *numbers)
    for name, row in decision(board).items():
        cells = ["–"] * 4 if row is None else [row["system"], f"{row['utility']:.3f}", *budget(row)]
        table.add_row(name, *map(escape, cells))
    print_table(table)


def decision(board: Board) -> dict[str, dict[str, Any] | None]:
    """Who is shown at the end of a run, by what it is: rows of a leaderboard."""
    return {
        "best private at user-level ε ≤ 1": board.best("user", 1.0),
        "noisy popularity": board.noisy,
        "ceiling, without privacy": board.ceiling,
    }


def budget(row: Mapping[str, Any]) -> tuple[str, str]:
    """What a system spends at its level, accounted and audited, as texts."""
    accounted, audited = row["accounted"], row["audited"]
    spent = "–" if accounted is None else "∞" if math.isinf(accounted) else f"{row['level']}-level {accounted:.4g}"
    return spent, "–" if audited is None else f"≥ {audited:.3g}"


def show_audits(records: Iterable[dict[str, Any]], total: int) -> bool:
    """Print a row for each record, and a bar until all are there; returns whether none proves more than is accounted.

    Args:
        records: as they end (`tasks.stages.audit_mechanisms.run`); total: how many there will be.
    """
    ended = []
    columns = TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("audits", total=total)
        for record in records:
            ended.append(record)
            bar.update(task, advance=1, description=f"audits, last {record['audit']}")
    title = "ε: proved is a lower bound; the last two are proved by the same audit of the same system with less noise"
    numbers = [Column(name, justify="right") for name in NUMBERS]
    table = _table(title, Column("system", no_wrap=True), *numbers, Column("verdict"))
    keys = ("epsilon_claimed", "epsilon_accounted", "delta", "audited_epsilon", "provable")
    for record in sorted(ended, key=lambda record: str(record["audit"])):
        values = [*(record[key] for key in keys), *(record["controls"].get(control) for control in ("half", "none"))]
        cells = ["-" if number is None else f"{number:.3g}" for number in values]
        table.add_row(record["audit"], *cells, _verdict(record))
    print_table(table)
    return not any(record["fault"] for record in ended)


def _verdict(record: dict[str, Any]) -> str:
    if record["fault"]:
        return "[red]refuted[/red]"
    if record["verdict"] == "refuted":
        return "published claim refuted"
    return str(record["verdict"])


def _table(title: str, *columns: Column) -> Table:
    return Table(*columns, title=title, title_justify="left")


def print_table(table: Table, width: int = 160) -> None:
    """Print a table, as wide as the terminal; `width` characters wide where there is none."""
    Console(width=None if sys.stdout.isatty() else width).print(table)
