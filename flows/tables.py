"""The tables that commands print on the terminal: plans, and what suites spend together."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from flows.plan import Plan


def summarise(plans: Sequence[Plan]) -> None:
    """A row for each plan: how much there is to do, and what is first."""
    table = Table(title="`dprec check SUITE` shows every stage", title_justify="left")
    table.add_column("leads to", no_wrap=True)
    table.add_column("to run", justify="right", no_wrap=True)
    table.add_column("first, and why", overflow="fold")
    for todo in plans:
        first = next(iter(todo.pending), None)
        why = f"{first.name}: {first.why}" if first else "[green]up to date[/green]"
        table.add_row(todo.target, f"{len(todo.pending)} of {len(todo.steps)}", escape(why) if first else why)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def show(todo: Plan) -> None:
    """A row for each stage: its state, and why."""
    table = Table(title=f"{todo.target}: {len(todo.pending)} of {len(todo.steps)} stages to run", title_justify="left")
    table.add_column("stage", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("why", overflow="fold")
    for step in todo.steps:
        state = "[green]up to date[/green]" if step.cached else "will run" if step.reasons else "may run"
        table.add_row(step.name, state, "" if step.cached else escape(step.why))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def composed_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A row for each kind of private release of each data set; see `tasks.stages.composed`."""
    table = Table(title="ε of all settings and seeds of all suites on a data set, composed", title_justify="left")
    for column in columns:
        table.add_column(column, justify="right" if column == "releases" or "ε" in column else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 200).print(table)
