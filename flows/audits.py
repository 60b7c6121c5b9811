"""Audits as a table on the terminal, with a bar while they run."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

NUMBERS = ("claimed", "accounted", "δ", "proved", "largest provable", "detects")


def show(records: Iterable[dict[str, Any]], total: int) -> bool:
    """Print a row for each record; returns whether none proves more than is accounted.

    Args:
        records: as they end (`tasks.stages.audit_mechanisms.run`); total: how many there will be.
    """
    ended = []
    bar = Progress(
        TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn(), console=Console(stderr=True)
    )
    with bar:
        task = bar.add_task("audits", total=total)
        for record in records:
            ended.append(record)
            bar.update(task, advance=1, description=f"audits, last {record['audit']}")
    table = Table(
        title="ε: proved is a lower bound; detects is the smallest true ε that an audit refutes in nine of ten runs",
        title_justify="left",
    )
    table.add_column("system", no_wrap=True)
    for name in NUMBERS:
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for record in sorted(ended, key=lambda record: str(record["audit"])):
        numbers = (
            record["epsilon_claimed"],
            record["epsilon_accounted"],
            record["delta"],
            record["audited_epsilon"],
            record["provable"],
            record["power"],
        )
        table.add_row(
            record["audit"], *("-" if number is None else f"{number:.3g}" for number in numbers), _verdict(record)
        )
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return not any(record["fault"] for record in ended)


def _verdict(record: dict[str, Any]) -> str:
    if record["fault"]:
        return "[red]refuted[/red]"
    if record["verdict"] == "refuted":
        return "published claim refuted"
    return str(record["verdict"])
