"""What suites took to run: time and memory, from the provenance of their stages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks.reporting.core.layout import Cell, Heading, Row, Table, count, missing_cell, number
from tasks.reporting.core.results import Run

HOUR = 3600.0


@dataclass(frozen=True)
class Cost:
    """Of a suite."""

    suite: str
    cpu_hours: float
    """Of all stages that train, attack and audit, in all processes."""
    hours: float | None
    """By the clock, from the first of these stages to the end of the last; None where not all ran at one revision."""
    longest: str
    """The stage that took most of it, `train@gerai-gcn`."""
    longest_hours: float
    peak_memory_mb: int


def cost(suite: str, runs: Sequence[Run]) -> Cost | None:
    """What a suite took; None without a record of its stages."""
    if not runs:
        return None
    longest = max(runs, key=lambda run: run.cpu_seconds)
    return Cost(
        suite,
        sum(run.cpu_seconds for run in runs) / HOUR,
        _clock(runs),
        f"{longest.stage}@{longest.name}",
        longest.cpu_seconds / HOUR,
        max(run.peak_memory_mb for run in runs),
    )


def _clock(runs: Sequence[Run]) -> float | None:
    if len({run.revision for run in runs}) > 1:
        return None
    began = [datetime.fromisoformat(run.started) for run in runs]
    ended = [start + timedelta(seconds=run.seconds) for start, run in zip(began, runs, strict=True)]
    return (max(ended) - min(began)).total_seconds() / HOUR


def table(costs: Sequence[tuple[str, Cost | None]], cores: Collection[int] = ()) -> Table:
    """A row per suite, its name given, and one of all of them together; dashes without a record of its stages.

    cores: of the machines that they ran on; nothing is said of them where none are known.
    """
    known = [cost for _, cost in costs if cost is not None]
    rows = [Row(title, _cells(cost)) for title, cost in costs]
    if len(known) > 1:
        together = number(sum(cost.cpu_hours for cost in known), 2)
        most = max(cost.peak_memory_mb for cost in known)
        name = f"Together, {len(known)} of {len(costs)} suites"
        rows.append(Row(name, [Cell(together), missing_cell(), Cell("", kind=""), missing_cell(), Cell(f"{most:,}")]))
    headings = ["Suite", "CPU hours", "hours by the clock", "longest stage", "its CPU hours", "peak memory (MB)"]
    kinds = [Heading(text, "" if place in (0, 3) else "number") for place, text in enumerate(headings)]
    what = "CPU time of all processes, time by the clock, and peak memory of a process"
    return Table(f"What suites took{_machines(cores)}: {what}", kinds, rows)


def _machines(cores: Collection[int]) -> str:
    """How many cores they ran on, after a space."""
    if not cores:
        return ""
    least, most = min(cores), max(cores)
    return f" on {count(most, 'core')}" if least == most else f" on {least} to {most} cores"


def _cells(cost: Cost | None) -> list[Cell]:
    if cost is None:
        return [missing_cell("not recorded"), missing_cell(), Cell("", kind=""), missing_cell(), missing_cell()]
    return [
        Cell(number(cost.cpu_hours, 2)),
        missing_cell() if cost.hours is None else Cell(number(cost.hours, 2)),
        Cell(cost.longest, kind=""),
        Cell(number(cost.longest_hours, 2)),
        Cell(f"{cost.peak_memory_mb:,}"),
    ]
