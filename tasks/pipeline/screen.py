"""How far a stage is: for people, and for the run that it is part of (see `flows.execution.progress`)."""

from __future__ import annotations

import json
import os
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tasks.pipeline.parent import RUN

DECIDES_NOTHING = True
SECONDS_BETWEEN_LINES = 5.0


class Screen:
    """A progress bar on a terminal; elsewhere (a log) a plain line every few seconds."""

    def __init__(self, label: str, runs: int) -> None:
        self._label = label
        self._runs = runs
        self._run = 0
        self._last_line = 0.0
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task(label)

    def __enter__(self) -> Screen:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar:
            self._bar.stop()

    def next(self) -> None:
        """The next run: a unit, or a trial."""
        self._run += 1

    def begin(self, name: str, steps: int) -> None:
        """Of a run, what takes so many steps (epochs) starts."""
        self._began = time.monotonic()
        self._name = f"{self._label} {name} ({self._run}/{self._runs})"
        self._steps = steps
        if self._bar:
            self._bar.reset(self._task, total=steps, description=self._name)

    def step(self, done: int, figures: str = "", seconds_left: float | None = None) -> None:
        """So many steps are done; figures: of the last one; seconds_left: None as the steps so far took."""
        name = f"{self._name}  {figures}" if figures else self._name
        if self._bar:
            self._bar.update(self._task, completed=done, description=name)
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES or done == self._steps:
            self._last_line = time.monotonic()
            if seconds_left is None:
                seconds_left = (time.monotonic() - self._began) / done * (self._steps - done)
            text = f"{name}  {done}/{self._steps}  {seconds_left:.0f} s left"
            share = (max(self._run, 1) - 1 + done / self._steps) / self._runs
            line = json.dumps({"text": text, "share": share}) if RUN in os.environ else text
            print(line, file=sys.stderr, flush=True)
