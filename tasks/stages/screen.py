"""How far a stage is, for people."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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

    def skip(self) -> None:
        """A run that needs no epochs: finished before, or a model without any."""
        self._run += 1

    def begin(self, run: str, epochs: int) -> None:
        """A new run (setting and seed) of `epochs` epochs, or steps, starts."""
        self._run += 1
        self._began = time.monotonic()
        self._name = f"{self._label} {run} ({self._run}/{self._runs})"
        self._epochs = epochs
        if self._bar:
            self._bar.reset(self._task, total=epochs, description=self._name)

    def step(self, done: int) -> None:
        """Of a run without epochs, so many of its steps are done."""
        if self._bar:
            self._bar.update(self._task, completed=done)
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES or done == self._epochs:
            self._last_line = time.monotonic()
            left = (time.monotonic() - self._began) / done * (self._epochs - done)
            print(f"{self._name}  {done}/{self._epochs}  {left:.0f} s left", file=sys.stderr, flush=True)

    def epoch(self, done: int, loss: float, valid: str, seconds_left: float) -> None:
        """An epoch ended; `valid` is empty where nothing validates, `seconds_left` is for this run."""
        figures = f"loss {loss:.4f}  valid {valid}" if valid else f"loss {loss:.4f}"
        if self._bar:
            self._bar.update(self._task, completed=done, description=f"{self._name}  {figures}")
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES or done == self._epochs:
            self._last_line = time.monotonic()
            line = f"{self._name}  epoch {done}/{self._epochs}  {figures}  {seconds_left:.0f} s left"
            print(line, file=sys.stderr, flush=True)
