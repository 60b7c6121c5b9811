"""What people see of a run: in a terminal one view that is kept up to date, elsewhere one line for each event."""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from flows.cost import kind_and_name
from flows.execution import say
from flows.plan import Plan, Step

UNKNOWN_SECONDS = 5.0
"""Expected of a stage where nothing is on record."""
Event = Literal["starts", "line", "run", "cached", "failed", "left", "unit"]
ENDS = ("run", "cached", "failed")
FORMS = {"starts": "starts ({})", "line": "| {}", "failed": "failed: {}"}
_UNIT = re.compile(r"\((\d+)/(\d+)\)")
_STEP = re.compile(r"(?<![\d/(])(\d+)/(\d+)(?![\d/)])")


class Lines(AbstractContextManager[Any]):
    """One line for each event, for logs."""

    def __exit__(self, *_: object) -> None:
        """Nothing is left to do."""

    def show(self, event: Event, name: str, text: str) -> None:
        """What happens to a stage (it starts, prints a line, ends or is left), or a unit of one."""
        say(name, FORMS.get(event, "{}").format(text))


class Live(Lines):
    """The stages done of all, a bar for each that runs, and the time left. Only failures stay on the screen."""

    def __init__(self, todo: Plan, clock: Clock, console: Console) -> None:
        rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # what the other columns leave
        text = TextColumn("{task.fields[text]}", markup=False, table_column=rest)
        name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
        elapsed = TimeElapsedColumn(Column(no_wrap=True, min_width=len("0:00:00")))
        columns = (name, BarColumn(20), elapsed, _Left(clock), text)
        self._progress = Progress(*columns, console=console, transient=True, expand=True)
        self._clock, self._todo = clock, todo
        self._ended: dict[str, str] = {}
        self._rows: dict[str, TaskID] = {}
        self._all = self._progress.add_task(todo.target, total=len(todo.steps), text=self._counts())
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        """Begin to show."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """One line remains."""
        self._progress.stop()
        took = timedelta(seconds=round(time.monotonic() - self._began))
        say(self._todo.target, f"{self._counts()} in {took}")

    def show(self, event: Event, name: str, text: str) -> None:
        """A stage has a row while it runs, whose bar moves without an end until its lines say how far it is."""
        if event == "starts":
            self._clock.starts(name)
            self._ended.pop(name, None)  # it is tried again
            self._rows[name] = self._progress.add_task(name, total=None, text=text)
        elif event == "line":
            self._progress.update(self._rows[name], text=text)
            if (share := fraction(text)) is not None:
                self._clock.reaches(name, share)
                self._progress.update(self._rows[name], total=1.0, completed=share)
        elif event in ENDS:
            self._clock.ends(name)
            if name in self._rows:
                self._progress.remove_task(self._rows.pop(name))
            self._ended[name] = event
        if event in ("failed", "left"):
            super().show(event, name, text)
        self._progress.update(self._all, completed=len(self._ended), text=self._counts())

    def _counts(self) -> str:
        ways = Counter(self._ended.values())
        counts = ", ".join(f"{ways[how]} {how}" for how in ENDS if ways[how])
        return f"{len(self._ended)} of {len(self._todo.steps)} stages" + (f" ({counts})" if counts else "")


@dataclass
class Clock:
    """How long a run takes, from how long its stages took before."""

    steps: Mapping[str, Step]
    """Those that will or may run, by name."""
    seconds: Mapping[str, float]
    """Expected of each."""
    jobs: int
    now: Callable[[], float] = time.monotonic
    _started: dict[str, float] = field(default_factory=dict)
    _shares: dict[str, float] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)

    def starts(self, name: str) -> None:
        """A stage begins, perhaps again."""
        self._started[name] = self.now()
        self._shares.pop(name, None)
        self._ended.discard(name)

    def reaches(self, name: str, share: float) -> None:
        """A stage is so far, in [0, 1]."""
        self._shares[name] = share

    def ends(self, name: str) -> None:
        """A stage has nothing more to do."""
        self._ended.add(name)

    def remaining(self) -> float:
        """Seconds: the longest chain of stages that wait for one another, or all work shared by the jobs if more."""
        remaining = {name: self._remaining(name) for name in self.steps}
        chains: dict[str, float] = {}
        for name, step in self.steps.items():  # each after what it needs
            chains[name] = remaining[name] + max((chains.get(other, 0.0) for other in step.needs), default=0.0)
        return max(*chains.values(), sum(remaining.values()) / self.jobs, 0.0)

    def _remaining(self, name: str) -> float:
        if name in self._ended:
            return 0.0
        expected = self.seconds.get(name, UNKNOWN_SECONDS)
        if name not in self._started:
            return expected
        elapsed, share = self.now() - self._started[name], self._shares.get(name, 0.0)
        return elapsed * (1 - share) / share if share > 0.05 else max(expected - elapsed, 0.0)


class _Left(ProgressColumn):
    """Time left of the run, in its own row."""

    max_refresh = 1.0

    def __init__(self, clock: Clock) -> None:
        super().__init__(Column(no_wrap=True, min_width=len("0:00:00 left")))
        self._clock = clock

    def render(self, task: Task) -> Text:
        if task.id != 0 or task.finished:
            return Text()
        return Text(f"{timedelta(seconds=round(self._clock.remaining()))} left", style="progress.remaining")


def view(todo: Plan, recorded: Mapping[tuple[str, str], float], jobs: int, force: bool) -> Lines:
    """The live view in a terminal; lines where output goes elsewhere, with --debug, and under Prefect's own runner.

    Args:
        todo: what is to be run.
        recorded: `flows.cost.kind_and_name` -> seconds of earlier runs.
        jobs: stages that run at the same time.
        force: whether all of them run.
    """
    console = Console(file=sys.stdout)
    plain = not console.is_terminal or console.is_dumb_terminal
    if plain or os.environ.get("DPREC_DEBUG") == "1" or "PREFECT__FLOW_RUN_ID" in os.environ:
        return Lines()
    steps = {step.name: step for step in todo.steps if force or not step.cached}
    return Live(todo, Clock(steps, expected_seconds(steps, recorded), jobs), console)


def show_up_to_date(todo: Plan) -> None:
    """What a run shows that has nothing to do."""
    if sys.stdout.isatty():
        say(todo.target, f"{len(todo.steps)} stages, all up to date")
        return
    for step in todo.steps:
        Lines().show("cached", step.name, "cached")


def expected_seconds(names: Mapping[str, object], recorded: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Seconds of stages: as they took before, or as stages of their kind did."""
    by_kind: dict[str, list[float]] = {}
    for (kind, _), seconds in recorded.items():
        by_kind.setdefault(kind, []).append(seconds)
    medians = {kind: statistics.median(values) for kind, values in by_kind.items()}
    expected = {}
    for stage in names:
        kind, _, name = stage.partition("@")
        kind, name = kind_and_name(kind, name)
        expected[stage] = recorded.get((kind, name), medians.get(kind, UNKNOWN_SECONDS))
    return expected


def fraction(text: str) -> float | None:
    """How far a stage is by a line of `tasks.stages.screen`, such as `(2/3)  epoch 5/10`; None: no such line."""
    step = _STEP.search(text)
    if step is None or not int(step[2]):
        return None
    share = min(int(step[1]) / int(step[2]), 1.0)
    unit = _UNIT.search(text)
    return (int(unit[1]) - 1 + share) / int(unit[2]) if unit and int(unit[1]) <= int(unit[2]) else share
