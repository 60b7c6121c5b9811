"""The answer of a suite as the table that `dprec run` ends with."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tasks.stages.common import RESULTS
from tasks.stages.report import standings


def show(suite: str) -> None:
    """The answer in ten lines; nothing for a pipeline without results of its own."""
    if not (RESULTS / suite / "results.json").is_file():
        return
    utility, systems = standings(suite)
    table = Table(box=None, pad_edge=False)
    table.add_column("system", no_wrap=True)
    for name in (utility, "accounted ε", "proved ε"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for of in systems:
        level = "" if of.utility is None else f"{of.utility:.3f}"
        proved = "" if of.proved is None else f"≥ {of.proved:.3g}"
        cells = (of.system.label, level, of.budget, proved, of.verdict)
        table.add_row(*map(escape, cells), style="red" if of.refuted else None)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
