"""What all suites on a data set spend together, as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from tasks.stages.composed import COLUMNS


def show(rows: Iterable[Sequence[str]]) -> None:
    """Print rows of `tasks.stages.composed.rows`."""
    table = Table(title="ε of all settings and seeds of all suites on a data set, composed", title_justify="left")
    for column in COLUMNS:
        table.add_column(column, justify="right" if column == "releases" or "ε" in column else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 200).print(table)
