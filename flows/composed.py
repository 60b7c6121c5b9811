"""What all suites on a data set spend together, as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from tasks.reporting.core import ledger
from tasks.reporting.sections.composition import Together

HEADINGS = ("suites", "protects", "neighbouring inputs", "releases", "largest ε of one", "ε of all together")


def show(sources: Iterable[tuple[str, Sequence[str], Sequence[Together]]]) -> None:
    """Print a row for each kind of release of each data set (`tasks.stages.composed.by_source`)."""
    table = Table(title="ε of all settings and seeds of all suites on a data set, composed", title_justify="left")
    table.add_column("data set", no_wrap=True)
    for place, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if place > 2 else "left")
    for source, suites, groups in sources:
        for group in groups:
            towards = f", towards {group.observer}" if group.observer else ""
            table.add_row(
                source,
                ", ".join(suites),
                f"{group.protects}{towards}",
                group.neighbouring,
                str(group.releases),
                ledger.shown(group.largest),
                ledger.shown(group.epsilon, group.delta),
            )
    Console(width=None if sys.stdout.isatty() else 200).print(table)
