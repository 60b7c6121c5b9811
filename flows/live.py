"""What people see of a run: in a terminal one view that is kept up to date, elsewhere one line for each event."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Literal, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from flows.cost import kind_and_name
from flows.execution import say
from flows.plan import Plan

UNKNOWN_SECONDS = 5.0
"""Expected of a stage where nothing is on record."""
Event = Literal["starts", "line", "run", "cached", "failed", "left", "unit"]
ENDS = ("run", "cached", "failed")
FORMS = {"starts": "starts ({})", "line": "| {}", "failed": "failed: {}"}


class Lines:
    """One line for each event, for logs: with the time of day and, where a stage has run, what is left of the run.

    seconds: expected of each stage that will or may run; jobs: stages that run at the same time.
    """

    def __init__(self, todo: Plan, seconds: Mapping[str, float], jobs: int) -> None:
        self._todo, self._seconds, self._jobs = todo, seconds, jobs
        self._ended: dict[str, str] = {}
        self._started: dict[str, float] = {}
        self._shares: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._say(self._todo.target, f"{self._counts()}, {self._left()}")
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to do."""

    def show(self, event: Event, name: str, text: str) -> None:
        """What happens to a stage (it starts, prints a line, ends or is left), or a unit of one."""
        self._note(event, name)
        left = f", {len(self._ended)} of {len(self._todo.steps)} stages, {self._left()}" if event == "run" else ""
        self._say(name, FORMS.get(event, "{}").format(text) + left)

    def progress(self, name: str, share: float) -> None:
        """How much of the work of a stage is done."""
        self._shares[name] = share

    def _say(self, name: str, text: str) -> None:
        say(name, f"{time.strftime('%H:%M:%S')}  {text}")

    def _note(self, event: Event, name: str) -> None:
        if event == "starts":
            self._ended.pop(name, None)  # it is tried again
            self._shares.pop(name, None)
            self._started[name] = time.monotonic()
        elif event in ENDS:
            self._ended[name] = event

    def _left(self) -> str:
        return f"{timedelta(seconds=round(self.remaining()))} left"

    def _counts(self) -> str:
        endings = Counter(self._ended.values())
        counts = ", ".join(f"{endings[how]} {how}" for how in ENDS if endings[how])
        return f"{len(self._ended)} of {len(self._todo.steps)} stages" + (f" ({counts})" if counts else "")

    def remaining(self) -> float:
        """Seconds: the longest chain of stages that wait for one another, or all work shared by the jobs if more."""
        total, chains = 0.0, dict[str, float]()
        for step in self._todo.steps:  # each after what it needs
            left = self._remaining(step.name)
            chains[step.name] = left + max((chains.get(other, 0.0) for other in step.needs), default=0.0)
            total += left
        return max(*chains.values(), total / self._jobs)

    def _remaining(self, name: str) -> float:
        """Seconds: what it took before less what has passed; by its progress where that is less, or it runs longer."""
        if name in self._ended or name not in self._seconds:
            return 0.0
        if name not in self._started:
            return self._seconds[name]
        elapsed, share = time.monotonic() - self._started[name], self._shares.get(name, 0.0)
        expected = max(self._seconds[name] - elapsed, 0.0)
        shown = elapsed * (1 - share) / share if share > 0.05 else expected
        return min(shown, expected) or shown


class Live(Lines):
    """The stages done of all, a bar for each that runs, and the time left. Only failures stay on the screen."""

    def __init__(self, todo: Plan, seconds: Mapping[str, float], jobs: int, console: Console) -> None:
        super().__init__(todo, seconds, jobs)
        text_column = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # what the other columns leave
        text = TextColumn("{task.fields[text]}", markup=False, table_column=text_column)
        name = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
        elapsed = TimeElapsedColumn(Column(no_wrap=True, min_width=len("0:00:00")))
        columns = (name, BarColumn(20), elapsed, _Left(self._left), text)
        self._progress = Progress(*columns, console=console, transient=True, expand=True)
        self._rows: dict[str, TaskID] = {}
        self._all = self._progress.add_task(todo.target, total=len(todo.steps), text=self._counts())
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        say(self._todo.target, f"{self._counts()} in {timedelta(seconds=round(time.monotonic() - self._began))}")

    def show(self, event: Event, name: str, text: str) -> None:
        """A stage has a row while it runs, whose bar moves without an end until its lines say how far it is."""
        self._note(event, name)
        if event == "starts":
            self._rows[name] = self._progress.add_task(name, total=None, text=text)
        elif event == "line":
            self._progress.update(self._rows[name], text=text)
            if name in self._shares:
                self._progress.update(self._rows[name], total=1.0, completed=self._shares[name])
        elif event in ENDS and name in self._rows:
            self._progress.remove_task(self._rows.pop(name))
        if event in ("failed", "left"):
            say(name, FORMS.get(event, "{}").format(text))
        self._progress.update(self._all, completed=len(self._ended), text=self._counts())


class _Left(ProgressColumn):
    max_refresh = 1.0

    def __init__(self, left: Callable[[], str]) -> None:
        super().__init__(Column(no_wrap=True, min_width=len("0:00:00 left")))
        self._left = left

    def render(self, task: Task) -> Text:
        if task.id != 0 or task.finished:
            return Text()
        return Text(self._left(), style="progress.remaining")


def view(todo: Plan, recorded: Mapping[tuple[str, str], float], jobs: int) -> Lines:
    """The live view in a terminal; lines where output goes elsewhere, with --debug, and under Prefect's own runner.

    recorded: `flows.cost.kind_and_name` -> seconds of earlier runs.
    """
    console = Console(file=sys.stdout)
    plain = not console.is_terminal or console.is_dumb_terminal
    seconds = expected_seconds([step.name for step in todo.pending], recorded)
    if plain or os.environ.get("DPREC_DEBUG") == "1" or "PREFECT__FLOW_RUN_ID" in os.environ:
        return Lines(todo, seconds, jobs)
    return Live(todo, seconds, jobs, console)


def show_up_to_date(todo: Plan) -> None:
    """What a run shows that has nothing to do."""
    if sys.stdout.isatty():
        say(todo.target, f"{len(todo.steps)} stages, all up to date")
        return
    for step in todo.steps:
        say(step.name, "cached")


def expected_seconds(names: Iterable[str], recorded: Mapping[tuple[str, str], float]) -> dict[str, float]:
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
