"""The tables that commands print on the terminal: of plans and of audits."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

if TYPE_CHECKING:
    from flows.plan import Plan
    from tasks.core.rows import Row

NUMBERS = ("claimed", "accounted", "δ", "proved", "largest provable", "half the noise", "no noise")


def summarise(plans: Sequence[Plan]) -> None:
    """A row for each plan: how much there is to do, and what is first."""
    columns = [Column("leads to", no_wrap=True), Column("to run", justify="right", no_wrap=True)]
    table = make_table("`dprec check SUITE` shows every stage", *columns, Column("first, and why", overflow="fold"))
    for todo in plans:
        first = next(iter(todo.pending), None)
        why = escape(f"{first.name}: {first.why}") if first else "[green]up to date[/green]"
        table.add_row(todo.target, f"{len(todo.pending)} of {len(todo.steps)}", why)
    print_table(table)


def show(todo: Plan) -> None:
    """A row for each stage: its state, and why."""
    columns = [Column("stage", no_wrap=True), Column("state", no_wrap=True), Column("why", overflow="fold")]
    table = make_table(f"{todo.target}: {len(todo.pending)} of {len(todo.steps)} stages to run", *columns)
    for step in todo.steps:
        state = "[green]up to date[/green]" if step.cached else "will run" if step.reasons else "may run"
        table.add_row(step.name, state, "" if step.cached else escape(step.why))
    print_table(table)


def show_audits(records: Iterable[Row], total: int) -> bool:
    """Print a row for each record, and a bar until all are there; returns whether none proves more than is accounted.

    records: as they end (`tasks.stages.audit.run`); total: how many there will be.
    """
    columns = TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        ended = sorted(bar.track(records, total, description="audits"), key=lambda record: str(record["audit"]))
    title = "ε: proved is a lower bound; the last two are proved by the same audit of the same system with less noise"
    numbers = [Column(name, justify="right") for name in NUMBERS]
    table = make_table(title, Column("system", no_wrap=True), *numbers, Column("verdict"))
    keys = ("epsilon_claimed", "epsilon_accounted", "delta", "audited_epsilon", "provable")
    for record in ended:
        values = [*(record[key] for key in keys), *(record["controls"].get(control) for control in ("half", "none"))]
        cells = ["-" if number is None else f"{number:.3g}" for number in values]
        verdict = "published claim refuted" if record["verdict"] == "refuted" else str(record["verdict"])
        table.add_row(record["audit"], *cells, "[red]refuted[/red]" if record["fault"] else verdict)
    print_table(table)
    return not any(record["fault"] for record in ended)


def make_table(title: str, *columns: Column) -> Table:
    """A table with its title on the left."""
    return Table(*columns, title=title, title_justify="left")


def print_table(table: Table, width: int = 160) -> None:
    """Print a table, as wide as the terminal; `width` characters wide where there is none."""
    Console(width=None if sys.stdout.isatty() else width).print(table)
